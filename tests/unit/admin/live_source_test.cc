#include "admin/live_source.h"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "core/rules/rule_json.h"
#include "support/fake_server.h"
#include "unit/admin/ledger_builder.h"
#include "wire/json.h"
#include "wire/namespace_rows.h"

namespace nowcalls::admin {
namespace {

using nlohmann::ordered_json;
using wire::Envelope;
using wire::FlowRow;
using wire::Method;
using wire::OutputBuffer;
using wire::SessionRow;
using wire::TokenRow;

constexpr int64_t kSourcePatientMs = 30'000;

using RawAnswer = std::function<void(const Envelope& request, OutputBuffer* out)>;

// A live source whose server answers as a test says.
class Live {
 public:
  explicit Live(const RawAnswer& answer)
      : server_([answer](testing::FakeServer::Peer* peer) {
          Envelope request;
          while (peer->Take(&request)) {
            peer->Answer([&](OutputBuffer* out) { answer(request, out); });
          }
        }),
        client_(Connect(server_.address())),
        progress_(false, "rows", [](std::string_view) {}),
        source_(client_.get(), &progress_) {}

  LiveSource* operator->() { return &source_; }

 private:
  static std::unique_ptr<client::BlockingClient> Connect(const std::string& address) {
    auto client = client::BlockingClient::Connect(address, kSourcePatientMs);
    REQUIRE_MESSAGE(client.ok(), client.status().ToString());
    return *std::move(client);
  }

  testing::FakeServer server_;
  std::unique_ptr<client::BlockingClient> client_;
  Progress progress_;
  LiveSource source_;
};

// What was asked, written down on the server's thread: "1000 from 0".
class Questions {
 public:
  void Add(const wire::PageParams& page) {
    const std::lock_guard lock(mutex_);
    pages_.push_back(std::to_string(page.limit) + " from " + std::to_string(page.cursor));
  }
  std::vector<std::string> pages() const {
    const std::lock_guard lock(mutex_);
    return pages_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> pages_;
};
using Pages = std::vector<std::string>;

template <typename Row>
RowSink<Row> Into(std::vector<Row>* rows) {
  return [rows](const Row& row) {
    rows->push_back(row);
    return Status::Ok();
  };
}

TokenRow MakeToken(uint64_t id, const std::string& name_space = "shop") {
  TokenRow row;
  row.token_id = id;
  row.name_space = name_space;
  return row;
}

wire::TokensParams TokensParamsOf(const Envelope& request) {
  wire::TokensParams params;
  wire::RequestError error;
  CHECK(request.method == Method::kTokens);
  CHECK(wire::DecodeTokens(request.params, &params, &error));
  return params;
}

// Endless pages, as full as they are asked for; every third token is of namespace "shop".
RawAnswer EndlessTokens(Questions* asked) {
  return [asked](const Envelope& request, OutputBuffer* out) {
    const wire::PageParams page = TokensParamsOf(request).page;
    asked->Add(page);
    std::vector<TokenRow> rows;
    for (uint64_t id = page.cursor; id < page.cursor + page.limit; ++id) {
      rows.push_back(MakeToken(id, id % 3 == 0 ? "shop" : "bank"));
    }
    wire::EncodeTokenPage(request.msgid, rows, page.cursor + page.limit, out);
  };
}

TEST_CASE("live tokens come page by page, empty ones too, until the last") {
  Questions asked;
  Live live([&asked](const Envelope& request, OutputBuffer* out) {
    const wire::PageParams page = TokensParamsOf(request).page;
    asked.Add(page);
    if (page.cursor == 0) {
      return wire::EncodeTokenPage(request.msgid, {MakeToken(1), MakeToken(2)}, 7, out);
    }
    if (page.cursor == 7) return wire::EncodeTokenPage(request.msgid, {}, 8, out);
    return wire::EncodeTokenPage(request.msgid, {MakeToken(3)}, 0, out);
  });
  std::vector<TokenRow> rows;
  CHECK(live->Tokens({}, Into(&rows)).ok());
  CHECK(rows == std::vector{MakeToken(1), MakeToken(2), MakeToken(3)});
  CHECK(asked.pages() == Pages{"1000 from 0", "1000 from 7", "1000 from 8"});
}

TEST_CASE("live values of a parameter are asked for once, and shown as the server orders them") {
  const std::vector<wire::ParamRow> values = {
      {.param = {ParamType::kString, "b"}, .now_calls = 2, .tokens = 1, .level = 4, .waiters = 3},
      {.param = {ParamType::kInt, std::string("\0\0\0\5", 4)}, .passed = 6, .blocked = 7}};
  Live live([&values](const Envelope& request, OutputBuffer* out) {
    if (request.method == Method::kFlow) return wire::EncodeFlow(request.msgid, {}, out);
    wire::ValuesParams params;
    wire::RequestError error;
    CHECK(wire::DecodeParams(request.params, &params, &error));
    CHECK(params.flow_id == 101);
    CHECK(params.limit == 20);
    wire::EncodeParamRows(request.msgid, values, out);
  });
  std::vector<wire::ParamRow> rows;
  CHECK(live->Params(101, 20, /*by_minute=*/false, Into(&rows)).ToString() == "ok");
  CHECK(rows == values);
}

TEST_CASE("the server is asked for what the filter says, and namespaces are told apart here") {
  Live live([](const Envelope& request, OutputBuffer* out) {
    const wire::TokensParams params = TokensParamsOf(request);
    CHECK(params.flow_id == 101);
    CHECK(params.client_id == "cart-1");
    CHECK(params.min_age_ms == 90'000);
    wire::EncodeTokenPage(request.msgid, {MakeToken(1, "bank"), MakeToken(2, "shop")}, 0, out);
  });
  std::vector<TokenRow> rows;
  const RowFilter filter{
      .flow_id = 101, .client_id = "cart-1", .name_space = "shop", .min_age_ms = 90'000};
  CHECK(live->Tokens(filter, Into(&rows)).ok());
  CHECK(rows == std::vector{MakeToken(2, "shop")});
}

TEST_CASE("no more of the oldest live tokens are asked for than are wanted") {
  Questions asked;
  Live live(EndlessTokens(&asked));
  std::vector<TokenRow> rows;
  CHECK(live->OldestTokens({}, 1500, Into(&rows)).ok());
  CHECK(rows.size() == 1500);
  CHECK(rows.back().token_id == 1499);
  CHECK(asked.pages() == Pages{"1000 from 0", "500 from 1000"});
}

TEST_CASE("the oldest live tokens of a namespace are looked for in full pages") {
  Questions asked;
  Live live(EndlessTokens(&asked));
  std::vector<TokenRow> rows;
  RowFilter filter;
  filter.name_space = "shop";
  CHECK(live->OldestTokens(filter, 400, Into(&rows)).ok());
  CHECK(rows.size() == 400);
  CHECK(rows.back().token_id == 3 * 399);
  CHECK(asked.pages() == Pages{"1000 from 0", "1000 from 1000"});
}

TEST_CASE("a listing whose server leads nowhere ends, and says so") {
  // The same cursor for ever, or a new one each time and never a row.
  for (const bool moves : {false, true}) {
    CAPTURE(moves);
    Live live([moves, next = uint64_t{7}](const Envelope& request, OutputBuffer* out) mutable {
      next += moves ? 1 : 0;
      switch (request.method) {
        case Method::kFlows: return wire::EncodeFlowPage(request.msgid, {}, next, out);
        case Method::kSessions: return wire::EncodeSessionPage(request.msgid, {}, next, out);
        case Method::kHistory: return wire::EncodeHistoryPage(request.msgid, {}, next, out);
        case Method::kNamespaces: return wire::EncodeNamespacePage(request.msgid, {}, next, out);
        case Method::kTokens: return wire::EncodeTokenPage(request.msgid, {}, next, out);
        default: return wire::EncodeJsonPage(request.msgid, {}, next, out);
      }
    });
    const auto ended = [moves](const Status& status, const std::string& method) {
      CHECK(status.code() == StatusCode::kOutcomeUnknown);
      CHECK(status.message().starts_with("the server's answers to " + method + " lead nowhere: "));
      const bool stood = status.message().find("cursor 7 and says to go on") != std::string::npos;
      CHECK(stood == !moves);
    };
    std::vector<FlowRow> flows;
    ended(live->Flows(Into(&flows)), "flows");
    std::vector<SessionRow> sessions;
    ended(live->Sessions(Into(&sessions)), "sessions");
    std::vector<wire::HistoryRow> history;
    ended(live->History({}, 10, Into(&history)), "history");
    std::vector<RuleRow> rules;
    ended(live->Rules(std::nullopt, Into(&rules)), "rules_list");
    std::vector<wire::NamespaceRow> namespaces;
    ended(live->Namespaces(Into(&namespaces)), "namespaces");
    std::vector<TokenRow> tokens;
    ended(live->Tokens({}, Into(&tokens)), "tokens");
  }
}

TEST_CASE("live flows and sessions come page by page") {
  Live live([](const Envelope& request, OutputBuffer* out) {
    wire::PageParams page;
    wire::RequestError error;
    CHECK(wire::DecodePage(request.method, request.params, &page, &error));
    CHECK(page.limit == kListRowsMax);
    const uint64_t next = page.cursor == 0 ? 5 : 0;
    FlowRow flow;
    flow.flow_id = static_cast<int64_t>(page.cursor) + 1;
    SessionRow session;
    session.session = page.cursor + 1;
    if (request.method == Method::kFlows) {
      return wire::EncodeFlowPage(request.msgid, {flow}, next, out);
    }
    CHECK(request.method == Method::kSessions);
    return wire::EncodeSessionPage(request.msgid, {session}, next, out);
  });
  std::vector<FlowRow> flows;
  CHECK(live->Flows(Into(&flows)).ok());
  REQUIRE(flows.size() == 2);
  CHECK(flows[1].flow_id == 6);
  std::vector<SessionRow> sessions;
  CHECK(live->Sessions(Into(&sessions)).ok());
  REQUIRE(sessions.size() == 2);
  CHECK(sessions[1].session == 6);
}

TEST_CASE("live history comes page by page, filtered here, and no further than wanted") {
  Questions asked;
  Live live([&asked](const Envelope& request, OutputBuffer* out) {
    wire::PageParams page;
    wire::RequestError error;
    CHECK(request.method == Method::kHistory);
    CHECK(wire::DecodePage(request.method, request.params, &page, &error));
    asked.Add(page);
    const uint64_t newest = page.cursor == 0 ? 3000 : page.cursor - 1;
    std::vector<wire::HistoryRow> rows;
    for (uint64_t n = newest; n > newest - page.limit; --n) {
      wire::HistoryRow row;
      row.sequence = n;
      row.reason = n % 3 == 0 ? "admin" : "client_offline";
      rows.push_back(row);
    }
    const uint64_t oldest = newest - page.limit + 1;
    wire::EncodeHistoryPage(request.msgid, rows, oldest > 1 ? oldest : 0, out);
  });
  std::vector<wire::HistoryRow> rows;
  CHECK(live->History({.reason = "admin"}, 400, Into(&rows)).ok());
  REQUIRE(rows.size() == 400);
  CHECK(rows.front().sequence == 3000);
  CHECK(rows.back().sequence == 3000 - 3 * 399);
  CHECK(asked.pages() == Pages{"1000 from 0", "1000 from 2001"});
  rows.clear();
  CHECK(live->History({}, 1'000'000, Into(&rows)).ok());
  CHECK(rows.size() == 3000);
}

TEST_CASE("live history of an age ends at the first entry that is too old") {
  Questions asked;
  Live live([&asked](const Envelope& request, OutputBuffer* out) {
    if (request.method == Method::kPing) return wire::EncodePing(request.msgid, 100'000, out);
    wire::PageParams page;
    wire::RequestError error;
    CHECK(wire::DecodePage(request.method, request.params, &page, &error));
    asked.Add(page);
    std::vector<wire::HistoryRow> rows;
    for (int i = 0; i < 5; ++i) {
      wire::HistoryRow row;
      row.sequence = (page.cursor == 0 ? 100 : page.cursor) - 1 - static_cast<uint64_t>(i);
      row.ended_ms = static_cast<int64_t>(row.sequence) * 1000;
      rows.push_back(row);
    }
    wire::EncodeHistoryPage(request.msgid, rows, rows.back().sequence, out);
  });
  std::vector<wire::HistoryRow> rows;
  CHECK(live->History({.max_age_ms = 8'000, .min_age_ms = 3'000}, 100, Into(&rows)).ok());
  REQUIRE(rows.size() == 6);
  CHECK(rows.front().sequence == 97);
  CHECK(rows.back().sequence == 92);
  CHECK(asked.pages() == Pages{"1000 from 0", "1000 from 95"});
}

TEST_CASE("a flow that a server does not know is told in the operator's words") {
  Live live([](const Envelope& request, OutputBuffer* out) {
    wire::EncodeError(
        request.msgid,
        {wire::ErrorCode::kBadParams, "flow: flow_id 7 has neither a rule nor tokens"}, out);
  });
  CHECK(live->Flow(FlowId{7}).status().ToString() ==
        "not_found: flow 7 has neither a rule nor tokens");
}

ordered_json RuleObject(const std::string& name_space, int64_t flow_id) {
  ordered_json object = {{"namespace", name_space}};
  object.update(ordered_json::parse(core::RuleToJson(GlobalRule(flow_id, 10.5))));
  return object;
}

TEST_CASE("live rules come with their namespace, page by page") {
  Live live([](const Envelope& request, OutputBuffer* out) {
    wire::RulesListParams params;
    wire::RequestError error;
    CHECK(wire::DecodeRulesList(request.params, &params, &error));
    CHECK(params.name_space == "shop");
    CHECK(params.page.limit == kListRowsMax);
    if (params.page.cursor == 0) {
      return wire::EncodeJsonPage(request.msgid, {RuleObject("shop", 101)}, 9, out);
    }
    CHECK(params.page.cursor == 9);
    return wire::EncodeJsonPage(request.msgid, {RuleObject("shop", 102)}, 0, out);
  });
  std::vector<RuleRow> rules;
  CHECK(live->Rules("shop", Into(&rules)).ok());
  REQUIRE(rules.size() == 2);
  CHECK(rules[0].name_space == "shop");
  CHECK(rules[0].rule.flow_id == FlowId(101));
  CHECK(rules[0].rule.count == 10.5);
  CHECK(rules[1].rule.flow_id == FlowId(102));
}

TEST_CASE("an answer that is no page of rules is told, and no rule is made up") {
  const std::pair<ordered_json, std::string> answers[] = {
      {ordered_json::object(), "it is no page of rows"},
      {ordered_json::array({ordered_json::array()}), "it is no page of rows"},
      {ordered_json::array({5, nullptr}), "it is no page of rows"},
      {ordered_json::array({ordered_json::array({5}), nullptr}), "a row is no map"},
      {ordered_json::array({ordered_json::array({ordered_json::object()}), nullptr}),
       "a row names no namespace"},
  };
  for (const auto& bad : answers) {
    const ordered_json& answer = bad.first;
    CAPTURE(answer.dump());
    Live live([&answer](const Envelope& request, OutputBuffer* out) {
      wire::EncodeJsonResult(request.msgid, answer, out);
    });
    std::vector<RuleRow> rules;
    const Status status = live->Rules(std::nullopt, Into(&rules));
    CHECK(status.code() == StatusCode::kOutcomeUnknown);
    CHECK(status.message() ==
          "the server's answer to rules_list was not understood: " + bad.second);
    CHECK(rules.empty());
  }
}

TEST_CASE("a sink that fails ends a live listing at once") {
  Questions asked;
  Live live(EndlessTokens(&asked));
  int rows = 0;
  const Status status = live->Tokens({}, [&rows](const TokenRow&) {
    ++rows;
    return Status::IoError("full");
  });
  CHECK(status.ToString() == "io_error: full");
  CHECK(rows == 1);
  CHECK(asked.pages().size() == 1);
}

TEST_CASE("a live listing that the server refuses halfway ends with its reason") {
  Live live([](const Envelope& request, OutputBuffer* out) {
    if (TokensParamsOf(request).page.cursor == 0) {
      return wire::EncodeTokenPage(request.msgid, {MakeToken(1)}, 7, out);
    }
    return wire::EncodeError(request.msgid,
                             {wire::ErrorCode::kBadParams, "tokens: cursor is not known"}, out);
  });
  std::vector<TokenRow> rows;
  const Status status = live->Tokens({}, Into(&rows));
  CHECK(status.ToString() == "invalid_argument: BAD_PARAMS: tokens: cursor is not known");
  CHECK(rows.size() == 1);
}

TEST_CASE("now is the server's, and a flow is asked for by its id") {
  Live live([](const Envelope& request, OutputBuffer* out) {
    if (request.method == Method::kPing) return wire::EncodePing(request.msgid, 77, out);
    wire::FlowParams params;
    wire::RequestError error;
    CHECK(wire::DecodeFlow(request.params, &params, &error));
    FlowRow flow;
    flow.flow_id = params.flow_id;
    return wire::EncodeFlow(request.msgid, flow, out);
  });
  CHECK(*live->NowMs() == 77);
  CHECK(live->Flow(FlowId{101})->at(0).flow_id == 101);
}

TEST_CASE("a flow is found by its resource as the server says it") {
  std::string why;
  Live source([&](const Envelope& request, OutputBuffer* out) {
    wire::FlowParams params;
    wire::RequestError error;
    REQUIRE(wire::DecodeFlow(request.params, &params, &error));
    CHECK(params.flow_name == "checkout");
    if (!why.empty()) {
      return wire::EncodeError(request.msgid, {wire::ErrorCode::kBadParams, why}, out);
    }
    FlowRow row;
    row.flow_id = 7;
    row.kind = "value";
    wire::EncodeFlow(request.msgid, row, out);
  });
  const Result<FlowChoice> choice = source->FindFlow("checkout", std::nullopt);
  REQUIRE(choice.ok());
  CHECK(choice->id == FlowId{7});
  CHECK(choice->kind == FlowKind::kValue);
  why = "flow: flow_id 'checkout' has neither a rule nor tokens";
  CHECK(source->FindFlow("checkout", std::nullopt).status().message() ==
        "flow 'checkout' has neither a rule nor tokens");
  why = "flow: flow_id 'checkout' is the resource of several rules: 7 of namespace shop";
  CHECK(source->FindFlow("checkout", std::nullopt).status().message() == "BAD_PARAMS: " + why);
}

}  // namespace
}  // namespace nowcalls::admin
