// Two rules of one flow id over both protocols: listings, cursors, acts of administrators, frames.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/rules/rule_json.h"
#include "support/engine_harness.h"
#include "wire/admin_messages.h"
#include "wire/client_messages.h"
#include "wire/json.h"
#include "wire/rows.h"
#include "wire/sentinel/client_frames.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using wire::OutputBuffer;

// Flow ids 1 and 3 have both rules, 2 has the one of the flow, 4 the one by value.
std::vector<core::RuleSet> BothKinds() {
  std::vector<testing::RuleOptions> options;
  for (const auto& [flow, by_value] :
       {std::pair{1, false}, {1, true}, {2, false}, {3, false}, {3, true}, {4, true}}) {
    options.push_back({.flow = flow, .count = by_value ? 2.0 : 1.0});
    if (by_value) options.back().param.emplace();
  }
  core::RuleSet set{.name_space = "default",
                    .parsed = core::ParseRules(testing::RulesJson(options)).value()};
  return {std::move(set)};
}

class Server {
 public:
  Server() : h(Limits(), {}) {
    REQUIRE(h.engine().LoadRules(BothKinds(), h.now()).ok());
    h.Settle();
    connection = h.Connect();
  }

  template <typename Encode>
  testing::EngineReply Call(Encode encode) {
    OutputBuffer out;
    encode(&out);
    return h.Call(connection, out.view());
  }
  std::string Acquire(int64_t flow, std::string_view value = "") {
    const auto reply = Call([&](OutputBuffer* out) {
      wire::AcquireParams params{.flow_id = flow, .count = 1};
      if (!value.empty()) params.param = Param{ParamType::kString, value};
      wire::EncodeAcquireRequest(1, params, out);
    });
    const wire::AcquireReply answer = reply.acquire();
    return std::string(TokenStatusName(answer.status)) + " " +
           std::string(RefusedByName(answer.refused_by));
  }
  // "1 2/value": the flow ids of a page, with what is not the rule of the flow, and its cursor.
  std::pair<std::string, uint64_t> Page(uint32_t limit, uint64_t cursor) {
    const auto reply = Call([&](OutputBuffer* out) {
      wire::EncodePageRequest(1, wire::Method::kFlows, {.limit = limit, .cursor = cursor}, out);
    });
    const auto page = wire::DecodeFlowPage(reply.result);
    REQUIRE(page.ok());
    std::string text;
    for (const wire::FlowRow& row : page->rows) {
      text += (text.empty() ? "" : " ") + std::to_string(row.flow_id) +
              (row.kind == "flow" ? "" : "/" + row.kind);
    }
    return {text, page->next_cursor};
  }
  wire::FlowRow Flow(const wire::FlowParams& params) {
    const auto reply = Call([&](OutputBuffer* out) { wire::EncodeFlowRequest(1, params, out); });
    auto row = wire::DecodeFlowRow(reply.result);
    REQUIRE(row.status().ToString() == "ok");
    return *std::move(row);
  }

  EngineHarness h;
  ConnectionId connection = 0;
};

TEST_CASE("a listing has a row for each rule of a flow id, whatever the pages") {
  Server server;
  CHECK(server.Page(100, 0) ==
        std::pair<std::string, uint64_t>("1 1/value 2 3 3/value 4/value", 0));
  for (const uint32_t limit : {1U, 2U, 3U, 4U, 5U}) {
    CAPTURE(limit);
    std::string all;
    uint64_t cursor = 0;
    do {
      const auto [text, next] = server.Page(limit, cursor);
      all += (all.empty() ? "" : " ") + text;
      cursor = next;
    } while (cursor != 0);
    CHECK(all == "1 1/value 2 3 3/value 4/value");
  }
}

TEST_CASE("a cursor stays good when the row that it names, or the one behind it, goes") {
  Server server;
  const auto [text, between] = server.Page(1, 0);
  CHECK(text == "1");
  CHECK(between == (uint64_t{1} << 63) + 1);
  auto without = BothKinds();
  without[0].parsed.rules.erase(without[0].parsed.rules.begin());
  REQUIRE(server.h.engine().LoadRules(without, server.h.now()).ok());
  CHECK(server.Page(1, between).first == "1/value");
  without[0].parsed.rules.erase(without[0].parsed.rules.begin());
  REQUIRE(server.h.engine().LoadRules(without, server.h.now()).ok());
  CHECK(server.Page(1, between).first == "2");
  // A plain id begins behind both rules of it, as it always did.
  CHECK(server.Page(2, 2).first == "3 3/value");
  CHECK(server.Page(9, 3).first == "4/value");
  CHECK(server.Page(9, UINT64_MAX).first.empty());
}

TEST_CASE("rules_list tells the kind of each rule, and one call fetches both of a flow id") {
  Server server;
  const auto reply = server.Call([](OutputBuffer* out) {
    wire::EncodeRulesListRequest(1, {.name_space = {}, .page = {.limit = 2, .cursor = 2}}, out);
  });
  const auto page = wire::JsonFromMessagePack(reply.result).value();
  REQUIRE(page[0].size() == 2);
  CHECK(page[0][0]["kind"] == "flow");
  CHECK(page[0][1]["kind"] == "value");
  CHECK(page[0][1]["clusterConfig"]["flowId"] == 3);
  CHECK(page[1] == 3);
}

TEST_CASE("a flow answers with the row of its rule of the flow, and with that by value within") {
  Server server;
  CHECK(server.Acquire(1) == "OK ");
  CHECK(server.Acquire(1) == "BLOCKED level");
  CHECK(server.Acquire(1, "x") == "OK ");
  CHECK(server.Acquire(1, "y") == "OK ");
  const wire::FlowRow both = server.Flow({1});
  CHECK(both.kind == "flow");
  CHECK(both.now_calls == 1);
  CHECK(both.counters->refused[static_cast<size_t>(RefusedBy::kLevel)] == 1);
  REQUIRE(both.by_value.size() == 1);
  CHECK(both.by_value[0].kind == "value");
  CHECK(both.by_value[0].now_calls == 2);
  CHECK(both.by_value[0].keys == 2);
  CHECK(server.Flow({1, FlowKind::kFlow}).by_value.empty());
  CHECK(server.Flow({1, FlowKind::kValue}).now_calls == 2);
  CHECK(server.Flow({4}).kind == "value");
  CHECK(
      server.Call([](OutputBuffer* out) {
              wire::EncodeFlowRequest(1, {4, FlowKind::kFlow}, out);
            })
          .ErrorText() ==
      "BAD_PARAMS: flow: flow_id 4 has neither a rule of kind flow nor tokens of one");
}

TEST_CASE("an administrator drains and takes back the rule of a flow id that is named") {
  Server server;
  server.Acquire(1);
  server.Acquire(1, "x");
  const auto drain = [&](std::optional<FlowKind> kind) {
    const auto reply = server.Call([&](OutputBuffer* out) {
      wire::EncodeDrainRequest(1, {.flow_id = 1, .on = true, .kind = kind}, out);
    });
    return *wire::DecodeDrainReply(reply.result);
  };
  CHECK(drain(FlowKind::kValue) == wire::DrainReply{TokenStatus::kOk, 1, 1});
  CHECK(server.Acquire(1, "y") == "BLOCKED draining");
  CHECK(server.Acquire(1) == "BLOCKED level");
  CHECK(drain(std::nullopt) == wire::DrainReply{TokenStatus::kOk, 2, 2});
  const auto reclaim = [&](std::optional<FlowKind> kind) {
    const auto reply = server.Call([&](OutputBuffer* out) {
      wire::EncodeReclaimFlowRequest(1, {.flow_id = 1, .reason = "why", .kind = kind}, out);
    });
    return *wire::DecodeReclaimedReply(reply.result);
  };
  CHECK(reclaim(FlowKind::kFlow) == wire::ReclaimedReply{1, false});
  CHECK(reclaim(std::nullopt) == wire::ReclaimedReply{1, false});
}

TEST_CASE("tokens and waiters are listed of both rules of a flow id, or of one kind") {
  Server server;
  server.Acquire(1);
  server.Acquire(1, "x");
  server.Acquire(4, "x");
  const auto tokens = [&](const wire::TokensParams& params) {
    const auto reply =
        server.Call([&](OutputBuffer* out) { wire::EncodeTokensRequest(1, params, out); });
    const auto page = wire::DecodeTokenPage(reply.result);
    REQUIRE(page.ok());
    std::string text;
    for (const wire::TokenRow& row : page->rows) {
      text += std::to_string(row.flow_id) + (row.param ? "/" + row.param->bytes : "") + " ";
    }
    return text;
  };
  CHECK(tokens({.flow_id = 1, .page = {100, 0}}) == "1 1/x ");
  CHECK(tokens({.flow_id = 1, .page = {100, 0}, .kind = FlowKind::kValue}) == "1/x ");
  CHECK(tokens({.page = {100, 0}, .kind = FlowKind::kValue}) == "1/x 4/x ");
  CHECK(tokens({.page = {100, 0}, .kind = FlowKind::kFlow}) == "1 ");
}

TEST_CASE("Sentinel's FLOW and PARAM_FLOW of one flowId count apart") {
  using wire::sentinel::RequestType;
  Server server;
  const ConnectionId sentinel = server.h.Connect("127.0.0.1:2000");
  const auto ask = [&](const auto& encode) {
    OutputBuffer out;
    encode(&out);
    server.h.Send(sentinel, out.view());
    server.h.Settle();
    const std::string bytes = std::exchange(server.h.driver().socket(sentinel).written, {});
    std::string_view rest = bytes;
    wire::sentinel::Response response;
    REQUIRE(wire::sentinel::TakeResponse(&rest, &response) == wire::sentinel::Answer::kWhole);
    return std::string(TokenStatusName(response.status));
  };
  const auto flow = [&](int64_t id) {
    return ask([&](OutputBuffer* out) {
      wire::sentinel::EncodeCallRequest(7, RequestType::kFlow, {id, 1, false}, out);
    });
  };
  const auto param_flow = [&](int64_t id, std::string_view value) {
    const Param param{ParamType::kString, value};
    return ask([&](OutputBuffer* out) {
      wire::sentinel::EncodeParamCallRequest(8, id, 1, {&param, 1}, out);
    });
  };
  CHECK(flow(1) == "OK");
  CHECK(flow(1) == "BLOCKED");
  CHECK(param_flow(1, "x") == "OK");
  CHECK(param_flow(1, "x") == "OK");
  CHECK(param_flow(1, "x") == "BLOCKED");
  CHECK(param_flow(1, "y") == "OK");
  CHECK(param_flow(2, "x") == "BAD_REQUEST");
  CHECK(flow(4) == "BAD_REQUEST");
  CHECK(flow(9) == "NO_RULE_EXISTS");
}

}  // namespace
}  // namespace nowcalls::engine
