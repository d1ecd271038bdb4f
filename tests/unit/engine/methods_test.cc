// Every method's reply as a client decodes it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/engine_harness.h"
#include "wire/json.h"
#include "wire/rows.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::EngineReply;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::RulesJson;
using testing::TokenRequest;
using wire::Method;
using wire::OutputBuffer;

nlohmann::ordered_json JsonOf(const EngineReply& reply) {
  CHECK(reply.ErrorText() == "ok");
  const auto json = wire::JsonFromMessagePack(reply.result);
  REQUIRE(json.status().ToString() == "ok");
  return *json;
}

template <typename Row>
wire::Page<Row> Rows(const EngineReply& reply) {
  CHECK(reply.ErrorText() == "ok");
  Result<wire::Page<Row>> page = [&] {
    if constexpr (std::is_same_v<Row, wire::TokenRow>) return wire::DecodeTokenPage(reply.result);
    if constexpr (std::is_same_v<Row, wire::FlowRow>) return wire::DecodeFlowPage(reply.result);
    if constexpr (std::is_same_v<Row, wire::HistoryRow>) {
      return wire::DecodeHistoryPage(reply.result);
    }
    if constexpr (std::is_same_v<Row, wire::SessionRow>) {
      return wire::DecodeSessionPage(reply.result);
    }
  }();
  REQUIRE(page.status().ToString() == "ok");
  return std::move(page).value();
}

// Two flows, a named client with two tokens, an unnamed one with one.
struct MethodServer {
  MethodServer() : h({}, {{.flow = 1, .count = 5}, {.flow = 2, .count = 2.5, .avg_local = true}}) {
    named = h.Connect("127.0.0.1:1");
    h.Call(named, HelloRequest(1, "default", "a"));
    unnamed = h.Connect("127.0.0.1:2");
    for (const auto& [connection, flow, count] :
         {std::tuple{named, 1, 2}, {unnamed, 1, 1}, {named, 2, 3}}) {
      acquired.push_back(h.Call(connection, AcquireRequest(9, flow, count)).acquire());
      h.Sleep(100);
    }
  }
  EngineReply Call(const OutputBuffer& request) { return h.Call(named, request.view()); }

  EngineHarness h;
  ConnectionId named = 0;
  ConnectionId unnamed = 0;
  std::vector<wire::AcquireReply> acquired;
};

TEST_CASE("acquire, keep and release answer with all their fields") {
  MethodServer s;
  const wire::AcquireReply& granted = s.acquired[0];
  CHECK(granted.status == TokenStatus::kOk);
  CHECK(granted.now_calls == 2);
  CHECK(granted.level == 5);
  CHECK(granted.hold_ms == 4000);
  CHECK(granted.refused_by == RefusedBy::kNone);
  CHECK(s.acquired[1].fence > granted.fence);
  const wire::AcquireReply refused = s.h.Call(s.named, AcquireRequest(1, 1, 3)).acquire();
  CHECK(refused.status == TokenStatus::kBlocked);
  CHECK(refused.now_calls == 3);
  CHECK(refused.level == 5);
  const wire::KeepReply kept =
      s.h.Call(s.named, TokenRequest(2, Method::kKeep, granted.token_id)).keep();
  CHECK(kept.status == TokenStatus::kOk);
  CHECK(kept.hold_ms == 4000);
  CHECK(s.h.Call(s.named, TokenRequest(3, Method::kRelease, granted.token_id)).status() ==
        TokenStatus::kReleaseOk);
  CHECK(s.h.Call(s.named, TokenRequest(4, Method::kRelease, granted.token_id)).status() ==
        TokenStatus::kAlreadyRelease);
}

TEST_CASE("reclaim takes any token back, needs a reason, and is logged") {
  MethodServer s;
  s.h.driver().TakeLog();
  const auto reclaim = [&](uint64_t token, std::string_view reason) {
    OutputBuffer out;
    wire::EncodeReclaimRequest(1, {token, reason}, &out);
    return s.Call(out);
  };
  CHECK(reclaim(s.acquired[1].token_id, "").ErrorText().starts_with("BAD_PARAMS: reclaim: reason"));
  CHECK(reclaim(s.acquired[1].token_id, "a\nb").ErrorText().starts_with("BAD_PARAMS: reclaim: "));
  CHECK(reclaim(s.acquired[1].token_id, std::string(257, 'r'))
            .ErrorText()
            .starts_with("BAD_PARAMS: reclaim: reason"));
  CHECK(reclaim(s.acquired[1].token_id, "stuck").status() == TokenStatus::kReleaseOk);
  CHECK(reclaim(s.acquired[1].token_id, "stuck").status() == TokenStatus::kAlreadyRelease);
  CHECK(s.h.driver().TakeLog() == "info: administrator 127.0.0.1:1 reclaimed token " +
                                      std::to_string(s.acquired[1].token_id) +
                                      " of flow 1 from client @127.0.0.1:2: stuck\n");
  CHECK(s.h.driver().last_topic_and_fields().starts_with("act"));
}

TEST_CASE("tokens shows each token whole, oldest first, page by page") {
  MethodServer s;
  OutputBuffer out;
  wire::TokensParams params;
  params.page.limit = 2;
  wire::EncodeTokensRequest(1, params, &out);
  const auto first = Rows<wire::TokenRow>(s.Call(out));
  REQUIRE(first.rows.size() == 2);
  REQUIRE(first.next_cursor != 0);
  const int64_t issued_ms = s.h.now().ms - 300;
  wire::TokenRow expected;
  expected.token_id = s.acquired[0].token_id;
  expected.flow_id = 1;
  expected.name_space = "default";
  expected.client_id = "a";
  expected.session = first.rows[0].session;
  expected.count = 2;
  expected.fence = s.acquired[0].fence;
  expected.issued_ms = issued_ms;
  expected.deadline_ms = issued_ms + 4000;
  expected.online = true;
  CHECK(first.rows[0] == expected);
  CHECK(first.rows[1].client_id == "@127.0.0.1:2");

  out.Clear();
  params.page.cursor = first.next_cursor;
  wire::EncodeTokensRequest(1, params, &out);
  const auto second = Rows<wire::TokenRow>(s.Call(out));
  REQUIRE(second.rows.size() == 1);
  CHECK(second.rows[0].token_id == s.acquired[2].token_id);
  CHECK(second.next_cursor == 0);
  CHECK(
      s.Call(out).ErrorText() ==
      "BAD_PARAMS: tokens: cursor " + std::to_string(first.next_cursor) +
          " is none of this connection, or is used up or forgotten; list again from the beginning");
}

TEST_CASE("tokens filters by flow, client and age") {
  MethodServer s;
  const auto count = [&](const wire::TokensParams& params) {
    OutputBuffer out;
    wire::EncodeTokensRequest(1, params, &out);
    return Rows<wire::TokenRow>(s.Call(out)).rows.size();
  };
  wire::TokensParams params;
  CHECK(count(params) == 3);
  params.flow_id = 1;
  CHECK(count(params) == 2);
  params.client_id = "a";
  CHECK(count(params) == 1);
  params = {};
  params.min_age_ms = 200;
  CHECK(count(params) == 2);
}

TEST_CASE("flow shows level, nowCalls, sessions and counters") {
  MethodServer s;
  s.h.Call(s.named, AcquireRequest(1, 2, 4));
  s.h.Call(s.named, TokenRequest(1, Method::kKeep, s.acquired[2].token_id));
  OutputBuffer out;
  wire::EncodeFlowRequest(1, {2}, &out);
  const auto row = wire::DecodeFlowRow(s.Call(out).result);
  REQUIRE(row.status().ToString() == "ok");
  CHECK(row->flow_id == 2);
  CHECK(row->name_space == "default");
  CHECK(row->resource == "r2");
  CHECK_FALSE(row->removed);
  CHECK(row->level == 5);
  CHECK(row->now_calls == 3);
  CHECK(row->tokens == 1);
  CHECK(row->waiters == 0);
  CHECK(row->sessions == 2);
  CHECK(row->oldest_issued_ms == s.h.now().ms - 100);
  REQUIRE(row->counters.has_value());
  CHECK(row->counters->granted == 1);
  CHECK(row->counters->refused[static_cast<size_t>(RefusedBy::kLevel)] == 1);
  CHECK(row->counters->kept == 1);

  out.Clear();
  wire::EncodeFlowRequest(1, {77}, &out);
  CHECK(s.Call(out).ErrorText() == "BAD_PARAMS: flow: flow_id 77 has neither a rule nor tokens");
}

TEST_CASE("a flow whose rule was removed is shown as removed while tokens are out") {
  MethodServer s;
  REQUIRE(s.h.engine().LoadRules({{"default", {}}}, s.h.now()).ok());
  OutputBuffer out;
  wire::EncodeFlowRequest(1, {1}, &out);
  const auto row = wire::DecodeFlowRow(s.Call(out).result);
  REQUIRE(row.status().ToString() == "ok");
  CHECK(row->removed);
  CHECK(row->name_space == "default");
  CHECK(row->resource == "r1");
  CHECK_FALSE(row->level.has_value());
  CHECK(row->now_calls == 3);
  CHECK_FALSE(row->level.has_value());
}

TEST_CASE("flows and sessions are listed in order, page by page") {
  MethodServer s;
  OutputBuffer out;
  wire::EncodePageRequest(1, Method::kFlows, {.limit = 1, .cursor = 0}, &out);
  const auto flows = Rows<wire::FlowRow>(s.Call(out));
  REQUIRE(flows.rows.size() == 1);
  CHECK(flows.rows[0].flow_id == 1);
  REQUIRE(flows.next_cursor != 0);
  out.Clear();
  wire::EncodePageRequest(1, Method::kFlows, {.limit = 1, .cursor = flows.next_cursor}, &out);
  const auto rest = Rows<wire::FlowRow>(s.Call(out));
  REQUIRE(rest.rows.size() == 1);
  CHECK(rest.rows[0].flow_id == 2);
  CHECK(rest.next_cursor == 0);
  out.Clear();
  // Behind all flow ids there may be.
  wire::EncodePageRequest(1, Method::kFlows, {.limit = 9, .cursor = UINT64_MAX}, &out);
  CHECK(Rows<wire::FlowRow>(s.Call(out)).rows.empty());

  s.h.Disconnect(s.unnamed);
  out.Clear();
  wire::EncodePageRequest(1, Method::kSessions, {}, &out);
  const auto sessions = Rows<wire::SessionRow>(s.Call(out));
  REQUIRE(sessions.rows.size() == 2);
  CHECK(sessions.rows[0].client_id == "a");
  CHECK(sessions.rows[0].kind == "named");
  CHECK(sessions.rows[0].online == true);
  CHECK(sessions.rows[0].connections == 1);
  CHECK(sessions.rows[0].tokens == 2);
  CHECK(sessions.rows[0].now_calls == 5);
  CHECK_FALSE(sessions.rows[0].offline_since_ms.has_value());
  CHECK(sessions.rows[1].client_id == "@127.0.0.1:2");
  CHECK(sessions.rows[1].kind == "connection");
  CHECK(sessions.rows[1].online == false);
  CHECK(sessions.rows[1].offline_since_ms == s.h.now().ms);
}

TEST_CASE("a session tells of how many hosts it is online from, if they are several") {
  MethodServer s;
  const auto hosts = [&] {
    OutputBuffer out;
    wire::EncodePageRequest(1, Method::kSessions, {}, &out);
    return Rows<wire::SessionRow>(s.Call(out)).rows.at(0).hosts;
  };
  const auto come = [&](std::string_view peer) {
    const ConnectionId id = s.h.Connect(peer);
    s.h.Call(id, HelloRequest(1, "default", "a"));
    return id;
  };
  come("127.0.0.1:77");
  CHECK_FALSE(hosts().has_value());
  const ConnectionId second = come("10.0.0.9:1");
  const ConnectionId again = come("10.0.0.9:2");
  CHECK(hosts() == 2);
  come("[::1]:5");
  CHECK(hosts() == 3);
  s.h.Disconnect(second);
  CHECK(hosts() == 3);
  s.h.Disconnect(again);
  CHECK(hosts() == 2);
}

TEST_CASE("rows tell the instance of a session where its client id has several") {
  MethodServer s;
  // Behind those of the server's two clients.
  const auto session = [&](size_t place) {
    OutputBuffer out;
    wire::EncodePageRequest(1, Method::kSessions, {}, &out);
    return Rows<wire::SessionRow>(s.Call(out)).rows.at(2 + place);
  };
  const auto come = [&](uint64_t instance) {
    const ConnectionId id = s.h.Connect("127.0.0.1:77");
    OutputBuffer out;
    wire::EncodeHelloRequest(1, {.name_space = "default", .client_id = "w", .instance = instance},
                             &out);
    s.h.Call(id, std::string(out.view()));
    s.h.Call(id, AcquireRequest(9, 1, 1));
    return id;
  };
  const auto tokens = [&] {
    OutputBuffer out;
    wire::EncodeTokensRequest(1, {.client_id = "w", .page = {}}, &out);
    return Rows<wire::TokenRow>(s.Call(out)).rows;
  };
  come(5);
  CHECK(session(0).instance == 5);
  CHECK_FALSE(session(0).instances.has_value());
  CHECK_FALSE(tokens().at(0).instance.has_value());
  const ConnectionId second = come(6);
  CHECK(session(1).instance == 6);
  CHECK(session(0).instances == 2);
  CHECK(session(1).instances == 2);
  CHECK(tokens().at(0).instance == 5);
  CHECK(tokens().at(1).instance == 6);
  come(0);
  CHECK_FALSE(session(2).instance.has_value());
  CHECK(session(2).instances == 3);
  s.h.Disconnect(second);
  CHECK(session(0).instances == 3);  // It still holds a token.
}

TEST_CASE("a session tells its addresses, and when it was heard last") {
  MethodServer s;
  const auto session = [&] {
    OutputBuffer out;
    wire::EncodePageRequest(1, Method::kSessions, {}, &out);
    return Rows<wire::SessionRow>(s.Call(out)).rows.at(2);
  };
  const auto come = [&](const std::string& peer) {
    const ConnectionId id = s.h.Connect(peer);
    s.h.Call(id, HelloRequest(1, "default", "w"));
    return id;
  };
  const ConnectionId first = come("127.0.0.1:77");
  const int64_t came_ms = s.h.now().ms;
  CHECK(session().addresses == std::vector<std::string>{"127.0.0.1:77"});
  s.h.Sleep(500);
  CHECK(session().last_message_ms == came_ms);
  OutputBuffer ping;
  wire::EncodePlainRequest(2, Method::kPing, &ping);
  s.h.Call(first, ping.view());
  CHECK(session().last_message_ms == came_ms + 500);
  for (int port = 10; port < 20; ++port) come("10.0.0.9:" + std::to_string(port));
  CHECK(session().connections == 11);
  CHECK(session().addresses->size() == 8);
}

TEST_CASE("the address of a connection without hello is its name, while it is online") {
  MethodServer s;
  const auto session = [&] {
    OutputBuffer out;
    wire::EncodePageRequest(1, Method::kSessions, {}, &out);
    return Rows<wire::SessionRow>(s.Call(out)).rows.at(1);
  };
  CHECK(session().addresses == std::vector<std::string>{"127.0.0.1:2"});
  CHECK(session().last_message_ms.has_value());
  s.h.Disconnect(s.unnamed);
  CHECK_FALSE(session().addresses.has_value());
  CHECK(session().last_message_ms.has_value());
}

TEST_CASE("a release as a notification says how its call ended, too") {
  MethodServer s;
  OutputBuffer out;
  wire::EncodeReleaseRequest(1, s.acquired[0].token_id, CallOutcome::kFailed, &out);
  CHECK(s.Call(out).status() == TokenStatus::kReleaseOk);
  OutputBuffer second;
  wire::EncodeReleaseRequest(1, s.acquired[2].token_id, CallOutcome::kTimeout, &second);
  // [0, 1, ... becomes [2, ...
  const std::string notification = "\x93\x02" + std::string(second.view().substr(3));
  s.h.Send(s.named, notification);
  OutputBuffer history;
  wire::EncodePageRequest(3, Method::kHistory, {}, &history);
  const auto rows = Rows<wire::HistoryRow>(s.Call(history)).rows;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].outcome == "timeout");
  CHECK(rows[1].outcome == "failed");
  CHECK(rows[1].reason == "released");
  OutputBuffer flow;
  wire::EncodeFlowRequest(4, {1}, &flow);
  const auto row = wire::DecodeFlowRow(s.Call(flow).result);
  REQUIRE(row.ok());
  CHECK(row->counters->outcomes[static_cast<size_t>(CallOutcome::kFailed)] == 1);
  CHECK(row->counters->outcomes[static_cast<size_t>(CallOutcome::kTimeout)] == 0);
}

TEST_CASE("rules_load replaces a set, rules_list shows it as Sentinel writes it") {
  MethodServer s;
  OutputBuffer out;
  wire::EncodeRulesLoadRequest(1, "other", RulesJson({{.flow = 7, .count = 3}, {.flow = 8}}), &out);
  CHECK(s.Call(out).number() == 2);
  out.Clear();
  wire::RulesListParams params;
  params.name_space = "other";
  wire::EncodeRulesListRequest(1, params, &out);
  const auto json = JsonOf(s.Call(out));
  REQUIRE(json.size() == 2);
  REQUIRE(json[0].size() == 2);
  CHECK(json[1].is_null());
  CHECK(json[0][0]["namespace"] == "other");
  CHECK(json[0][0]["resource"] == "r7");
  CHECK(json[0][0]["count"] == 3.0);
  CHECK(json[0][0]["clusterConfig"]["flowId"] == 7);
  CHECK(json[0][0]["clusterConfig"]["thresholdType"] == 1);
  out.Clear();
  wire::EncodeRulesListRequest(1, {}, &out);
  CHECK(JsonOf(s.Call(out))[0].size() == 4);
}

TEST_CASE("a page of rules_list ends early where rules are long, and all come in the end") {
  MethodServer s;
  constexpr int kRules = 400;
  for (int first = 100; first < 100 + kRules; first += 40) {
    std::string rules = RulesJson({});
    for (int flow = first; flow < first + 40; ++flow) {
      const std::string name = "\"r" + std::to_string(flow) + "\"";
      std::string rule = RulesJson({{.flow = flow}});
      rule.replace(rule.find(name), name.size(), '"' + std::string(1024, 'r') + '"');
      rules.insert(rules.size() - 1,
                   (rules.size() > 2 ? "," : "") + rule.substr(1, rule.size() - 2));
    }
    OutputBuffer out;
    wire::EncodeRulesLoadRequest(1, "long" + std::to_string(first), rules, &out);
    REQUIRE(s.Call(out).number() == 40);
  }
  wire::RulesListParams params;
  params.page.limit = 1000;
  size_t rows = 0;
  size_t pages = 0;
  do {
    OutputBuffer out;
    wire::EncodeRulesListRequest(1, params, &out);
    const auto json = JsonOf(s.Call(out));
    rows += json[0].size();
    ++pages;
    params.page.cursor = json[1].is_null() ? 0 : json[1].get<uint64_t>();
  } while (params.page.cursor != 0);
  CHECK(rows == kRules + 2);
  CHECK(pages > 1);
}

TEST_CASE("rules_load says which rule and field is wrong, or who owns a flowId") {
  MethodServer s;
  const auto load = [&](std::string_view name_space, const std::string& json) {
    OutputBuffer out;
    wire::EncodeRulesLoadRequest(1, name_space, json, &out);
    return s.Call(out).ErrorText();
  };
  CHECK(load("default", RulesJson({{.flow = 1, .count = -1}})) ==
        "BAD_PARAMS: rules_load: rule 1 (resource \"r1\", flowId 1): count must be >= 0");
  CHECK(load("other", RulesJson({{.flow = 1}}))
            .starts_with("CONFLICT: rules_load: namespace other: rule of resource"));
  CHECK(load("default", "[").starts_with("BAD_PARAMS: rules_load: not valid JSON: "));
  CHECK(load("", "[]").starts_with("BAD_PARAMS: rules_load: namespace"));
  CHECK(s.h.core().flows().rules() == 2);
}

TEST_CASE("rules of an embedding program are loaded, checked and committed like any other") {
  EngineHarness h({}, {});
  const auto set = [](std::string name_space) {
    return core::RuleSet{std::move(name_space), core::ParseRules(RulesJson({{.flow = 1}})).value()};
  };
  CHECK(h.engine()
            .LoadRules({set("default"), set("other")}, h.now())
            .ToString()
            .ends_with("flowId 1 is also in the set of namespace default"));
  CHECK(h.driver().TakeLog().empty());
  REQUIRE(h.engine().LoadRules({set("default")}, h.now()).ok());
  CHECK(h.driver().TakeLog() ==
        "info: namespace default: 1 rule, 1 new or changed, 0 removed, 0 skipped\n");
  h.Settle();
  h.Restart();
  CHECK(h.core().flows().rules() == 1);
}

TEST_CASE("info tells version, ledger, counts and limits") {
  Limits limits;
  limits.connections_max = 123;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  h.Take(c);
  h.Sleep(5000);
  h.Send(c, PlainRequest(5, Method::kInfo));
  h.Turn();
  const auto replies = h.TakeReplies(c);
  REQUIRE(replies.size() == 1);
  const auto info = JsonOf(replies[0]);
  CHECK(info["version"] == "9.9.9");
  CHECK(info["uptime_ms"] == 5000);
  CHECK(info["ledger"]["data_dir"] == "/data\\xff");
  CHECK(info["ledger"]["durability"] == "sync");
  CHECK(info["ledger"]["format"] == 4);
  CHECK(info["ledger"]["ledger_ms"] == h.now().ms);
  CHECK(info["ledger"]["batches"] == h.core().books().batch_number());
  CHECK(info["ledger"]["next_fence"] == h.core().books().next_fence());
  CHECK(info["counts"]["connections"] == 1);
  CHECK(info["totals"]["granted"] == 1);
  CHECK(info["totals"]["refused"]["level"] == 0);
  CHECK(info["totals"]["ended"]["released"] == 0);
  CHECK(info["counts"]["sessions"] == 1);
  CHECK(info["counts"]["rules"] == 1);
  CHECK(info["limits"]["connections_max"] == 123);
  CHECK(info["limits"]["message_bytes_max"] == 65536);
}

TEST_CASE("an unknown method is named in the error, and the connection goes on") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  std::string request = PlainRequest(3, Method::kPing);
  request.replace(request.find("ping"), 4, "pong");
  CHECK(h.Call(c, request).ErrorText() ==
        "UNKNOWN_METHOD: method 'pong' is not known to this server");
  CHECK(h.Call(c, PlainRequest(4, Method::kPing)).number() > 0);
}

TEST_CASE("wrong parameters are named in the error, and the connection goes on") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  CHECK(h.Call(c, TokenRequest(1, Method::kPing, 5)).ErrorText() ==
        "BAD_PARAMS: ping takes at most 0 parameters, got 1");
  for (const Method method : {Method::kRelease, Method::kKeep, Method::kFlow}) {
    const std::string name(wire::MethodName(method));
    CHECK(h.Call(c, PlainRequest(1, method)).ErrorText().starts_with("BAD_PARAMS: " + name + ": "));
  }
  CHECK(h.Call(c, PlainRequest(4, Method::kPing)).number() > 0);
}

TEST_CASE("two requests with one msgid get one answer each") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequest(5, 1) + AcquireRequest(5, 1));
  h.Settle();
  const auto replies = h.TakeReplies(c);
  REQUIRE(replies.size() == 2);
  CHECK(replies[0].acquire().token_id != replies[1].acquire().token_id);
}

}  // namespace
}  // namespace nowcalls::engine
