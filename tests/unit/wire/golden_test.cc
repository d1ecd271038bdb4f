// The vectors of data/golden/wire_*.hex, encoded and decoded: the bytes that PROTOCOL.md quotes.
#include <doctest/doctest.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/hex.h"
#include "test_paths.h"
#include "unit/wire/golden_vectors.h"
#include "wire/client_messages.h"
#include "wire/json.h"
#include "wire/messages.h"
#include "wire/rows.h"

namespace nowcalls::wire {
namespace {

constexpr uint64_t kGoldenToken = 0x1122334455667788;
constexpr char kRulesJson[] =
    R"([{"resource":"db","count":2,"clusterMode":true,"clusterConfig":{"flowId":111}}])";

TokenRow SampleToken() {
  TokenRow row;
  row.token_id = kGoldenToken;
  row.flow_id = 111;
  row.name_space = "shop";
  row.client_id = "worker-7";
  row.session = 12;
  row.count = 2;
  row.fence = 13;
  row.issued_ms = 1'700'000'000'123;
  row.deadline_ms = 1'700'000'004'123;
  row.online = true;
  return row;
}

FlowRow SampleFlow() {
  FlowRow row;
  row.flow_id = 111;
  row.name_space = "shop";
  row.resource = "db";
  row.draining = true;
  row.level = 2;
  row.now_calls = 2;
  row.tokens = 1;
  row.sessions = 1;
  row.oldest_issued_ms = 1'700'000'000'123;
  row.waiters = 1;
  row.waiting_since_ms = 1'700'000'000'200;
  row.counters.emplace();
  row.counters->granted = 7;
  row.counters->refused[static_cast<size_t>(RefusedBy::kLevel)] = 3;
  row.counters->refused[static_cast<size_t>(RefusedBy::kDraining)] = 2;
  row.counters->refused[static_cast<size_t>(RefusedBy::kClientCap)] = 2;
  row.counters->shadow_refused[static_cast<size_t>(RefusedBy::kLevel)] = 5;
  row.counters->queued = 6;
  row.counters->granted_from_queue = 4;
  row.counters->longest_wait_ms = 900;
  row.counters->kept = 1;
  row.counters->held.p50_ms = 10;
  row.counters->held.p90_ms = 200;
  row.counters->held.p99_ms = 3000;
  row.counters->held.longest_ms = 3001;
  row.counters->held.sum_ms = 3374;
  row.counters->held.count = 6;
  row.counters->held.upto = {2, 3, 5, 6, 6, 6, 6};
  row.counters->waited.p50_ms = 100;
  row.counters->waited.p90_ms = 800;
  row.counters->waited.p99_ms = 900;
  row.counters->waited.sum_ms = 70'000;
  row.counters->waited.count = 300;
  row.counters->waited.upto = {0, 200, 300, 300, 300, 300, 300};
  row.counters->ended[static_cast<size_t>(EndReason::kReleased)] = 4;
  row.counters->ended[static_cast<size_t>(EndReason::kReleasedLate)] = 1;
  row.counters->ended[static_cast<size_t>(EndReason::kAdmin)] = 1;
  return row;
}

FlowRow RemovedFlow() {
  FlowRow row;
  row.flow_id = 222;
  row.name_space = "shop";
  row.resource = "old";
  row.removed = true;
  row.now_calls = 1;
  row.tokens = 1;
  row.waiters = 0;
  return row;
}

FlowRow FlowOfBothKinds() {
  FlowRow row = RemovedFlow();
  row.by_value.push_back(row);
  row.by_value.front().kind = "value";
  row.by_value.front().now_calls = 2;
  return row;
}

SessionRow OnlineSession() {
  SessionRow row;
  row.session = 12;
  row.name_space = "shop";
  row.client_id = "worker-7";
  row.kind = "named";
  row.online = true;
  row.connections = 1;
  row.tokens = 1;
  row.now_calls = 2;
  row.opened_ms = 1'700'000'000'000;
  return row;
}

SessionRow OfflineSession() {
  SessionRow row = OnlineSession();
  row.session = 9;
  row.client_id = "worker-2";
  row.online = false;
  row.connections = 0;
  row.now_calls = 1;
  row.opened_ms = 1'699'999'990'000;
  row.offline_since_ms = 1'699'999'999'000;
  return row;
}

AcquireReply Granted() {
  return {.status = TokenStatus::kOk,
          .token_id = kGoldenToken,
          .fence = 13,
          .now_calls = 1,
          .level = 2,
          .hold_ms = 4000};
}

ParamRow HeldValue() {
  return {.param = {ParamType::kString, "key-7"},
          .now_calls = 2,
          .tokens = 1,
          .level = 2,
          .waiters = 1};
}

ParamRow AskedValue() {
  return {.param = {ParamType::kString, "key-8"},
          .level = 2,
          .waiters = 0,
          .passed = 2,
          .blocked = 9,
          .minute_passed = 30,
          .minute_blocked = 40};
}

WaiterRow WaitingCall() {
  return {.flow_id = 111,
          .name_space = "shop",
          .client_id = "worker-7",
          .count = 2,
          .prioritized = true,
          .place = 1,
          .since_ms = 1000,
          .deadline_ms = 2500,
          .param = ParamValue(ParamType::kString, "key-7")};
}

TEST_CASE("a client's hello is the golden bytes") {
  using Out = OutputBuffer;
  const auto check = [](const char* name, const std::function<void(Out*)>& encode) {
    CheckBytes(Requests(), name, encode);
  };
  check("hello",
        [](Out* o) { EncodeHelloRequest(1, {.name_space = "shop", .client_id = "worker-7"}, o); });
  check("hello_without_client_id",
        [](Out* o) { EncodeHelloRequest(1, {.name_space = "shop"}, o); });
  check("hello_of_instance", [](Out* o) {
    EncodeHelloRequest(
        1, {.name_space = "shop", .client_id = "worker-7", .instance = 0x1122334455667788}, o);
  });
  check("hello_of_terms", [](Out* o) {
    EncodeHelloRequest(1, {.name_space = "shop", .client_id = "worker-7", .terms = true}, o);
  });
}

TEST_CASE("a client's requests are the golden bytes") {
  using Out = OutputBuffer;
  const auto check = [](const char* name, const std::function<void(Out*)>& encode) {
    CheckBytes(Requests(), name, encode);
  };
  check("ping", [](Out* o) { EncodePlainRequest(2, Method::kPing, o); });
  check("acquire", [](Out* o) { EncodeAcquireRequest(3, {111, 1}, o); });
  check("acquire_by_name",
        [](Out* o) { EncodeAcquireRequest(3, {.count = 1, .flow_name = "checkout"}, o); });
  check("acquire_prioritized", [](Out* o) { EncodeAcquireRequest(4, {111, 2, true}, o); });
  check("acquire_waiting", [](Out* o) { EncodeAcquireRequest(17, {111, 2, true, 1500, 77}, o); });
  check("acquire_all", [](Out* o) {
    EncodeAcquireAllRequest(28, {.items = {{.flow_id = 111, .count = 1}, {112, 2}}}, o);
  });
  check("acquire_all_waiting", [](Out* o) {
    const Param key{ParamType::kString, "key-7"};
    EncodeAcquireAllRequest(29,
                            {.items = {{.flow_id = 113, .count = 1, .param = key}, {111, 1}},
                             .prioritized = true,
                             .wait_ms = 1500,
                             .request_id = 78,
                             .hold_ms = 250},
                            o);
  });
  check("acquire_all_rates", [](Out* o) {
    const Param key{ParamType::kString, "key-7"};
    EncodeAcquireAllRequest(30,
                            {.items = {{.flow_id = 113, .count = 1, .param = key},
                                       {.flow_id = 114, .count = 1, .param = key, .rate = true},
                                       {.flow_id = 115, .count = 2, .rate = true}}},
                            o);
  });
  check("acquire_param", [](Out* o) {
    AcquireParams acquire{.flow_id = 111, .count = 1};
    acquire.param = Param{ParamType::kString, "key-7"};
    EncodeAcquireRequest(26, acquire, o);
  });
  check("params_by_minute", [](Out* o) { EncodeParamsRequest(25, {111, 2, true}, o); });
  check("params", [](Out* o) { EncodeParamsRequest(25, {111, 2}, o); });
  check("waiters", [](Out* o) { EncodeWaitersRequest(27, {111, "worker-7", 100}, o); });
  check("cancel", [](Out* o) { EncodeCancelRequest(18, 77, o); });
  check("release", [](Out* o) { EncodeTokenRequest(5, Method::kRelease, kGoldenToken, o); });
  check("release", [](Out* o) { EncodeReleaseRequest(5, kGoldenToken, CallOutcome::kOk, o); });
  check("release_failed",
        [](Out* o) { EncodeReleaseRequest(5, kGoldenToken, CallOutcome::kFailed, o); });
  check("keep", [](Out* o) { EncodeTokenRequest(6, Method::kKeep, kGoldenToken, o); });
  check("reclaim", [](Out* o) { EncodeReclaimRequest(7, {kGoldenToken, "hung job"}, o); });
  check("flow", [](Out* o) { EncodeFlowRequest(8, {111}, o); });
  check("flow_of_kind", [](Out* o) { EncodeFlowRequest(8, {111, FlowKind::kValue}, o); });
  check("flows", [](Out* o) { EncodePageRequest(9, Method::kFlows, {2, 111}, o); });
  check("tokens", [](Out* o) { EncodeTokensRequest(10, {111, "worker-7", 60'000, {100, 0}}, o); });
  check("tokens_of_session", [](Out* o) {
    EncodeTokensRequest(17, {.page = {100, 0}, .session = 7}, o);
  });
  check("tokens_of_kind", [](Out* o) {
    EncodeTokensRequest(17, {.flow_id = 111, .page = {100, 0}, .kind = FlowKind::kValue}, o);
  });
  check("waiters_of_kind",
        [](Out* o) { EncodeWaitersRequest(27, {.limit = 100, .kind = FlowKind::kValue}, o); });
  check("tokens_all", [](Out* o) { EncodeTokensRequest(11, {}, o); });
  check("sessions", [](Out* o) { EncodePageRequest(12, Method::kSessions, {}, o); });
  check("rules_list", [](Out* o) { EncodeRulesListRequest(13, {"shop", {}}, o); });
  check("rules_load", [](Out* o) { EncodeRulesLoadRequest(14, "shop", kRulesJson, o); });
  check("info", [](Out* o) { EncodePlainRequest(16, Method::kInfo, o); });
}

TEST_CASE("the server reads the golden requests of calls") {
  RequestError error;
  HelloParams hello;
  REQUIRE(DecodeHello(Params("hello", Method::kHello), &hello, &error));
  CHECK(hello.name_space == "shop");
  CHECK(hello.client_id == "worker-7");
  REQUIRE(DecodeHello(Params("hello_without_client_id", Method::kHello), &hello, &error));
  CHECK_FALSE(hello.client_id.has_value());
  CHECK(hello.instance == 0);
  REQUIRE(DecodeHello(Params("hello_of_instance", Method::kHello), &hello, &error));
  CHECK(hello.instance == 0x1122334455667788);
  AcquireParams acquire;
  REQUIRE(DecodeAcquire(Params("acquire", Method::kAcquire), &acquire, &error));
  CHECK(acquire.flow_id == 111);
  CHECK(acquire.count == 1);
  CHECK(acquire.flow_name.empty());
  REQUIRE(DecodeAcquire(Params("acquire_by_name", Method::kAcquire), &acquire, &error));
  CHECK(acquire.flow_name == "checkout");
  CHECK(acquire.flow_id == 0);
  REQUIRE(DecodeAcquire(Params("acquire_prioritized", Method::kAcquire), &acquire, &error));
  CHECK(acquire.count == 2);
  CHECK(acquire.prioritized);
  REQUIRE(DecodeAcquire(Params("acquire_waiting", Method::kAcquire), &acquire, &error));
  CHECK(acquire.wait_ms == 1500);
  CHECK(acquire.request_id == 77);
  CHECK_FALSE(acquire.param.has_value());
  REQUIRE(DecodeAcquire(Params("acquire_param", Method::kAcquire), &acquire, &error));
  CHECK(acquire.param == Param{ParamType::kString, "key-7"});
  AcquireAllParams all;
  REQUIRE(DecodeAcquireAll(Params("acquire_all", Method::kAcquireAll), &all, &error));
  REQUIRE(all.items.size() == 2);
  CHECK(all.items[1].flow_id == 112);
  CHECK(all.items[1].count == 2);
  CHECK_FALSE(all.wait_ms.has_value());
  REQUIRE(DecodeAcquireAll(Params("acquire_all_waiting", Method::kAcquireAll), &all, &error));
  REQUIRE(all.items.size() == 2);
  CHECK(all.items[0].flow_id == 113);
  CHECK(all.items[0].param == Param{ParamType::kString, "key-7"});
  CHECK_FALSE(all.items[1].param.has_value());
  CHECK(all.prioritized);
  CHECK(all.wait_ms == 1500);
  CHECK(all.request_id == 78);
  CHECK(all.hold_ms == 250);
  REQUIRE(DecodeAcquireAll(Params("acquire_all_rates", Method::kAcquireAll), &all, &error));
  REQUIRE(all.items.size() == 3);
  CHECK_FALSE(all.items[0].rate);
  CHECK(all.items[1].rate);
  CHECK(all.items[1].param == Param{ParamType::kString, "key-7"});
  CHECK(all.items[2].rate);
  CHECK_FALSE(all.items[2].param.has_value());
}

TEST_CASE("the server reads the golden requests of listings and of tokens") {
  RequestError error;
  ValuesParams params;
  REQUIRE(DecodeParams(Params("params", Method::kParams), &params, &error));
  CHECK(params.flow_id == 111);
  CHECK(params.limit == 2);
  CHECK_FALSE(params.by_minute);
  REQUIRE(DecodeParams(Params("params_by_minute", Method::kParams), &params, &error));
  CHECK(params.by_minute);
  WaitersParams waiters;
  REQUIRE(DecodeWaiters(Params("waiters", Method::kWaiters), &waiters, &error));
  CHECK(waiters.flow_id == 111);
  CHECK(waiters.client_id == "worker-7");
  CHECK(waiters.limit == 100);
  CancelParams cancel;
  REQUIRE(DecodeCancel(Params("cancel", Method::kCancel), &cancel, &error));
  CHECK(cancel.request_id == 77);
  TokenParams token;
  for (const char* name : {"release", "release_notification"}) {
    REQUIRE(DecodeToken(Method::kRelease, Params(name, Method::kRelease), &token, &error));
    CHECK(token.token_id == kGoldenToken);
    CHECK(token.outcome == CallOutcome::kOk);
  }
  REQUIRE(
      DecodeToken(Method::kRelease, Params("release_failed", Method::kRelease), &token, &error));
  CHECK(token.token_id == kGoldenToken);
  CHECK(token.outcome == CallOutcome::kFailed);
  REQUIRE(DecodeToken(Method::kKeep, Params("keep", Method::kKeep), &token, &error));
  CHECK(token.token_id == kGoldenToken);
  CHECK(DecodeNoParams(Method::kPing, Params("ping", Method::kPing), &error));
  CHECK(DecodeNoParams(Method::kInfo, Params("info", Method::kInfo), &error));
}

TEST_CASE("the server reads the golden requests of operators") {
  RequestError error;
  ReclaimParams reclaim;
  REQUIRE(DecodeReclaim(Params("reclaim", Method::kReclaim), &reclaim, &error));
  CHECK(reclaim.token_id == kGoldenToken);
  CHECK(reclaim.reason == "hung job");
  FlowParams flow;
  REQUIRE(DecodeFlow(Params("flow", Method::kFlow), &flow, &error));
  CHECK(flow.flow_id == 111);
  CHECK_FALSE(flow.kind.has_value());
  REQUIRE(DecodeFlow(Params("flow_of_kind", Method::kFlow), &flow, &error));
  CHECK(flow.kind == FlowKind::kValue);
  PageParams page;
  REQUIRE(DecodePage(Method::kFlows, Params("flows", Method::kFlows), &page, &error));
  CHECK(page.limit == 2);
  CHECK(page.cursor == 111);
  REQUIRE(DecodePage(Method::kSessions, Params("sessions", Method::kSessions), &page, &error));
  CHECK(page.limit == 100);
  CHECK(page.cursor == 0);
  TokensParams tokens;
  REQUIRE(DecodeTokens(Params("tokens", Method::kTokens), &tokens, &error));
  CHECK(tokens.flow_id == 111);
  CHECK(tokens.client_id == "worker-7");
  CHECK(tokens.min_age_ms == 60'000);
  CHECK_FALSE(tokens.kind.has_value());
  REQUIRE(DecodeTokens(Params("tokens_of_kind", Method::kTokens), &tokens, &error));
  CHECK(tokens.flow_id == 111);
  CHECK(tokens.kind == FlowKind::kValue);
  WaitersParams waiters;
  REQUIRE(DecodeWaiters(Params("waiters_of_kind", Method::kWaiters), &waiters, &error));
  CHECK(waiters.kind == FlowKind::kValue);
  REQUIRE(DecodeTokens(Params("tokens_all", Method::kTokens), &tokens, &error));
  CHECK_FALSE(tokens.flow_id.has_value());
  RulesListParams list;
  REQUIRE(DecodeRulesList(Params("rules_list", Method::kRulesList), &list, &error));
  CHECK(list.name_space == "shop");
  for (const char* name : {"rules_load", "rules_load_maps"}) {
    RulesLoadParams load;
    REQUIRE(DecodeRulesLoad(Params(name, Method::kRulesLoad), &load, &error));
    CHECK(load.name_space == "shop");
    CHECK(load.json == kRulesJson);
  }
}

TEST_CASE("the server's replies to groups, and those that name a value, are the golden bytes") {
  using Out = OutputBuffer;
  const auto check = [](const char* name, const std::function<void(Out*)>& encode) {
    CheckBytes(Replies(), name, encode);
  };
  check("acquire_all_ok", [](Out* o) {
    EncodeAcquireAll(28,
                     {.status = TokenStatus::kOk,
                      .tokens = {{.token_id = kGoldenToken, .fence = 13, .hold_ms = 4000},
                                 {kGoldenToken + 1, 14, 4000}}},
                     o);
  });
  check("acquire_all_blocked", [](Out* o) {
    EncodeAcquireAll(28,
                     {.status = TokenStatus::kBlocked,
                      .refused_by = RefusedBy::kLevel,
                      .flow_id = 112,
                      .now_calls = 3,
                      .level = 4},
                     o);
  });
  check("acquire_all_full_value", [](Out* o) {
    EncodeAcquireAll(28,
                     {.status = TokenStatus::kBlocked,
                      .refused_by = RefusedBy::kParam,
                      .flow_id = 113,
                      .now_calls = 1,
                      .level = 1,
                      .value = Param{ParamType::kString, "key-7"}},
                     o);
  });
  check("acquire_all_rates", [](Out* o) {
    EncodeAcquireAll(
        30, {.status = TokenStatus::kOk, .tokens = {{kGoldenToken, 13, 4000}, {}, {0, 0, 100}}}, o);
  });
  check("acquire_full_value", [](Out* o) {
    EncodeAcquire(31,
                  {.status = TokenStatus::kBlocked,
                   .now_calls = 2,
                   .level = 2,
                   .refused_by = RefusedBy::kParam,
                   .value = Param{ParamType::kString, "key-7"}},
                  o);
  });
}

TEST_CASE("the server's replies are the golden bytes") {
  using Out = OutputBuffer;
  const auto check = [](const char* name, const std::function<void(Out*)>& encode) {
    CheckBytes(Replies(), name, encode);
  };
  check("hello", [](Out* o) { EncodeHello(1, {"1.0.0", 12, 1, 0}, o); });
  check("ping", [](Out* o) { EncodePing(2, 1'700'000'000'123, o); });
  check("acquire_ok", [](Out* o) { EncodeAcquire(3, Granted(), o); });
  check("acquire_terms", [](Out* o) {
    AcquireReply granted = Granted();
    granted.terms = Terms{2, 2000, 5000};
    EncodeAcquire(3, granted, o);
  });
  check("acquire_all_terms", [](Out* o) {
    EncodeAcquireAll(28,
                     {.status = TokenStatus::kOk,
                      .tokens = {{kGoldenToken, 13, 4000, Terms{2, 2000, 5000}}, {0, 0, 0}},
                      .flow_id = 0},
                     o);
  });
  check("acquire_blocked", [](Out* o) {
    EncodeAcquire(4, {TokenStatus::kBlocked, 0, 0, 1, 2, 0, RefusedBy::kLevel}, o);
  });
  check("acquire_no_rule",
        [](Out* o) { EncodeAcquire(3, {.status = TokenStatus::kNoRuleExists}, o); });
  check("release_ok", [](Out* o) { EncodeStatus(5, TokenStatus::kReleaseOk, o); });
  check("release_already", [](Out* o) { EncodeStatus(5, TokenStatus::kAlreadyRelease, o); });
  check("bad_request", [](Out* o) { EncodeStatus(5, TokenStatus::kBadRequest, o); });
  check("keep", [](Out* o) { EncodeKeep(6, {.status = TokenStatus::kOk, .hold_ms = 4000}, o); });
  check("keep_terms", [](Out* o) {
    EncodeKeep(6, {.status = TokenStatus::kOk, .hold_ms = 4000, .terms = Terms{2, 2000, 5000}}, o);
  });
  check("error_bad_params", [](Out* o) {
    EncodeError(3, {ErrorCode::kBadParams, "acquire: count must be an integer, got str"}, o);
  });
  check("flow", [](Out* o) { EncodeFlow(8, SampleFlow(), o); });
  check("flow_of_both_kinds", [](Out* o) { EncodeFlow(8, FlowOfBothKinds(), o); });
  check("flows", [](Out* o) { EncodeFlowPage(9, {SampleFlow(), RemovedFlow()}, 222, o); });
  check("tokens", [](Out* o) { EncodeTokenPage(10, {SampleToken()}, 0, o); });
  check("params", [](Out* o) { EncodeParamRows(25, {HeldValue(), AskedValue()}, o); });
  check("waiters", [](Out* o) { EncodeWaiterRows(27, {WaitingCall()}, o); });
  check("lost", [](Out* o) { EncodeLost(kGoldenToken, 111, EndReason::kAdmin, o); });
  check("sessions", [](Out* o) {
    EncodeSessionPage(12, {OfflineSession(), OnlineSession()}, 0, o);
  });
  check("rules_list", [](Out* o) {
    const auto rules = nlohmann::ordered_json::parse(kRulesJson);
    EncodeRulesPage(13, {{FlowKind::kFlow, "shop", rules[0].dump()}}, 0, o);
  });
  check("rules_load", [](Out* o) { EncodeRulesLoad(14, 1, o); });
}

TEST_CASE("a client reads the golden answers to calls") {
  const Result<HelloReply> hello = DecodeHelloReply(ResultOf("hello"));
  REQUIRE(hello.ok());
  CHECK(hello->server_version == "1.0.0");
  CHECK(hello->session == 12);
  CHECK(hello->sessions_online == 1);
  CHECK(hello->resumed_tokens == 0);
  CHECK(*DecodeUintReply(ResultOf("ping")) == 1'700'000'000'123);
  CHECK(*DecodeUintReply(ResultOf("rules_load")) == 1);
  const Result<AcquireReply> granted = DecodeAcquireReply(ResultOf("acquire_ok"));
  REQUIRE(granted.ok());
  CHECK(granted->status == TokenStatus::kOk);
  CHECK(granted->token_id == kGoldenToken);
  CHECK(granted->fence == 13);
  CHECK(granted->now_calls == 1);
  CHECK(granted->level == 2);
  CHECK(granted->hold_ms == 4000);
  CHECK(granted->refused_by == RefusedBy::kNone);
  const Result<AcquireReply> blocked = DecodeAcquireReply(ResultOf("acquire_blocked"));
  REQUIRE(blocked.ok());
  CHECK(blocked->status == TokenStatus::kBlocked);
  CHECK(blocked->refused_by == RefusedBy::kLevel);
  const Result<AcquireAllReply> all = DecodeAcquireAllReply(ResultOf("acquire_all_ok"));
  REQUIRE(all.ok());
  CHECK(all->status == TokenStatus::kOk);
  REQUIRE(all->tokens.size() == 2);
  CHECK(all->tokens[0].token_id == kGoldenToken);
  CHECK(all->tokens[1].fence == 14);
  CHECK(all->tokens[1].hold_ms == 4000);
  CHECK(all->refused_by == RefusedBy::kNone);
  const Result<AcquireAllReply> none = DecodeAcquireAllReply(ResultOf("acquire_all_blocked"));
  REQUIRE(none.ok());
  CHECK(none->status == TokenStatus::kBlocked);
  CHECK(none->tokens.empty());
  CHECK(none->refused_by == RefusedBy::kLevel);
  CHECK(none->flow_id == 112);
  CHECK(none->now_calls == 3);
  CHECK(none->level == 4);
  // A client of before values, and of before rates, reads what it knows.
  CHECK(DecodeAcquireAllReply(ResultOf("acquire_all_full_value"))->refused_by == RefusedBy::kParam);
  CHECK(DecodeAcquireReply(ResultOf("acquire_full_value"))->refused_by == RefusedBy::kParam);
  const Result<AcquireAllReply> rates = DecodeAcquireAllReply(ResultOf("acquire_all_rates"));
  REQUIRE(rates->tokens.size() == 3);
  CHECK(rates->tokens[1].token_id == 0);
  CHECK(rates->tokens[2].hold_ms == 100);
  CHECK(*DecodeStatusReply(ResultOf("release_ok")) == TokenStatus::kReleaseOk);
  CHECK(*DecodeStatusReply(ResultOf("release_already")) == TokenStatus::kAlreadyRelease);
  CHECK(*DecodeStatusReply(ResultOf("bad_request")) == TokenStatus::kBadRequest);
  const Result<KeepReply> keep = DecodeKeepReply(ResultOf("keep"));
  REQUIRE(keep.ok());
  CHECK(keep->status == TokenStatus::kOk);
  CHECK(keep->hold_ms == 4000);
}

TEST_CASE("a client reads the golden error") {
  const Result<Response> response = DecodeResponse(Replies().at("error_bad_params"));
  REQUIRE(response.ok());
  CHECK(response->msgid == 3);
  REQUIRE(response->error.has_value());
  CHECK(response->error->code == ErrorCode::kBadParams);
  CHECK(response->error->message == "acquire: count must be an integer, got str");
}

TEST_CASE("a client reads the golden listings") {
  const Result<FlowRow> flow = DecodeFlowRow(ResultOf("flow"));
  REQUIRE(flow.ok());
  CHECK(*flow == SampleFlow());
  const Result<Page<FlowRow>> flows = DecodeFlowPage(ResultOf("flows"));
  REQUIRE(flows.ok());
  CHECK(flows->rows == std::vector<FlowRow>{SampleFlow(), RemovedFlow()});
  CHECK(flows->next_cursor == 222);
  const Result<Page<TokenRow>> tokens = DecodeTokenPage(ResultOf("tokens"));
  REQUIRE(tokens.ok());
  CHECK(tokens->rows == std::vector<TokenRow>{SampleToken()});
  CHECK(tokens->next_cursor == 0);
  const Result<std::vector<ParamRow>> values = DecodeParamRows(ResultOf("params"));
  REQUIRE(values.ok());
  CHECK(*values == std::vector<ParamRow>{HeldValue(), AskedValue()});
  const Result<std::vector<WaiterRow>> waiting = DecodeWaiterRows(ResultOf("waiters"));
  REQUIRE(waiting.ok());
  CHECK(*waiting == std::vector<WaiterRow>{WaitingCall()});
  const Result<Page<SessionRow>> sessions = DecodeSessionPage(ResultOf("sessions"));
  REQUIRE(sessions.ok());
  CHECK(sessions->rows == std::vector<SessionRow>{OfflineSession(), OnlineSession()});
}

// The bytes at the end of a line of a code block, without spaces; empty when there are none.
std::string QuotedBytes(const std::string& line) {
  if (!line.starts_with("    ")) return "";
  const size_t gap = line.rfind("  ");
  std::string digits;
  for (const char c : line.substr(gap)) {
    if (c != ' ') digits += c;
  }
  const bool pairs = line.size() - gap - 2 == digits.size() / 2 * 3 - 1;
  return pairs && FromHex(digits).ok() ? digits : "";
}

TEST_CASE("PROTOCOL.md quotes golden bytes and no others") {
  std::set<std::string> golden;
  for (const Vectors* vectors : {&Requests(), &Replies()}) {
    for (const auto& [name, bytes] : *vectors) golden.insert(ToHex(bytes));
  }
  std::ifstream document(NOWCALLS_SOURCE_DIR "/src/wire/PROTOCOL.md");
  int quoted = 0;
  std::string message;  // May go on over several lines.
  for (std::string line; std::getline(document, line);) {
    message += QuotedBytes(line);
    if (!golden.contains(message)) continue;
    message.clear();
    ++quoted;
  }
  CHECK(message.empty());
  CHECK(quoted == 69);
}

}  // namespace
}  // namespace nowcalls::wire
