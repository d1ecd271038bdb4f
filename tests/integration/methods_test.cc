// Every method of the protocol with good parameters and with bad ones.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

Json TwoFlows() { return {RuleJson(1, 10), RuleJson(2, 5)}; }

TEST_CASE("hello tells the version, the session, who is online and what was resumed") {
  TestServer server(TwoFlows());
  RpcClient alice(server.address());
  const Json hello = ResultOf(&alice, "hello", {1, "default", "alice"});
  REQUIRE(hello.size() == 4);
  CHECK_FALSE(hello[0].get<std::string>().empty());
  CHECK(hello[1].get<uint64_t>() > 0);
  CHECK(hello[2] == 1);
  CHECK(hello[3] == 0);
  RpcClient bob(server.address());
  const Json second = ResultOf(&bob, "hello", {1, "default", "bob"});
  CHECK(second[1] != hello[1]);
  CHECK(second[2] == 2);
}

TEST_CASE("hello refuses bad parameters and names them") {
  TestServer server(TwoFlows());
  const std::string too_long(129, 'n');
  const std::string too_long_id(129, 'c');
  const struct {
    Json params;
    int64_t code;
    std::string named;
  } cases[] = {
      {{"1", "default", "alice"}, kErrorBadParams, "protocol"},
      {{2, "default", "alice"}, kErrorUnsupported, "protocol"},
      {Json::array({1}), kErrorBadParams, "namespace"},
      {{1, nullptr, "alice"}, kErrorBadParams, "namespace"},
      {{1, "", "alice"}, kErrorBadParams, "namespace"},
      {{1, 7, "alice"}, kErrorBadParams, "namespace"},
      {{1, too_long, "alice"}, kErrorBadParams, "namespace"},
      {{1, "a\nb", "alice"}, kErrorBadParams, "namespace"},
      {{1, "default", ""}, kErrorBadParams, "client_id"},
      {{1, "default", 9}, kErrorBadParams, "client_id"},
      {{1, "default", "@alice"}, kErrorBadParams, "client_id"},
      {{1, "default", too_long_id}, kErrorBadParams, "client_id"},
      {{1, "default", "alice", {{"colour", "red"}}}, kErrorBadParams, "colour"},
      {{1, "default", "alice", 5}, kErrorBadParams, "options"},
      {{1, "default", "alice", nullptr, 1}, kErrorBadParams, "parameters"},
  };
  RpcClient client = server.Connect();
  for (const auto& bad : cases) {
    const Reply error = ErrorOf(&client, "hello", bad.params);
    CAPTURE(bad.params.dump());
    CAPTURE(error.ToString());
    CHECK(error.error_code == bad.code);
    CHECK(Names(error, bad.named));
  }
  CHECK(client.Call("hello", {1, "default", "alice"}).ok());
}

TEST_CASE("ping tells the ledger clock, which does not go back") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect();
  const auto first = ResultOf(&client, "ping").at(0).get<uint64_t>();
  CHECK(ResultOf(&client, "ping").at(0).get<uint64_t>() >= first);
  CHECK(first > 1'600'000'000'000);
  CHECK(ErrorOf(&client, "ping", Json::array({1})).error_code == kErrorBadParams);
}

TEST_CASE("acquire grants up to the level and says what refused it beyond") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  const Grant first = Acquire(&client, 1, 7);
  CHECK(first.status == kStatusOk);
  CHECK(first.token_id > 0);
  CHECK(first.token_id <= static_cast<uint64_t>(INT64_MAX));
  CHECK(first.fence > 0);
  CHECK(first.now_calls == 7);
  CHECK(first.level == 10);
  CHECK(first.hold_ms == 120'000);
  CHECK(first.refused_by.empty());
  const Grant refused = Acquire(&client, 1, 4);
  CHECK(refused.status == kStatusBlocked);
  CHECK(refused.token_id == 0);
  CHECK(refused.fence == 0);
  CHECK(refused.now_calls == 7);
  CHECK(refused.level == 10);
  CHECK(refused.refused_by == "level");
  const Grant second = Acquire(&client, 1, 3);
  CHECK(second.status == kStatusOk);
  CHECK(second.token_id != first.token_id);
  CHECK(second.fence > first.fence);
  CHECK(NowCalls(&client, 1) == 10);
  CHECK(NowCalls(&client, 2) == 0);
}

TEST_CASE("acquire answers an unknown flow and a bad count with a status") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  CHECK(Acquire(&client, 99).status == kStatusNoRuleExists);
  CHECK(Acquire(&client, 0).status == kStatusBadRequest);
  CHECK(Acquire(&client, -1).status == kStatusBadRequest);
  CHECK(Acquire(&client, 1, 0).status == kStatusBadRequest);
  CHECK(Acquire(&client, 1, -5).status == kStatusBadRequest);
  CHECK(Acquire(&client, 1, int64_t{1} << 31).status == kStatusBadRequest);
  CHECK(Acquire(&client, 1, INT32_MAX).status == kStatusBlocked);
  CHECK(NowCalls(&client, 1) == 0);
}

TEST_CASE("acquire refuses parameters of another form and names them") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  const struct {
    Json params;
    int64_t code;
    std::string named;
  } cases[] = {
      {Json::array(), kErrorBadParams, "flow_id"},
      {Json::array({1}), kErrorBadParams, "count"},
      {{nullptr, 1}, kErrorBadParams, "flow_id"},
      {{"", 1}, kErrorBadParams, "flow_id"},
      {{1.5, 1}, kErrorBadParams, "flow_id"},
      {{uint64_t{1} << 63, 1}, kErrorBadParams, "flow_id"},
      {{1, "1"}, kErrorBadParams, "count"},
      {{1, 1.0}, kErrorBadParams, "count"},
      {{1, true}, kErrorBadParams, "count"},
      {{1, 1, {{"prioritized", "yes"}}}, kErrorBadParams, "prioritized"},
      {{1, 1, {{"priority", true}}}, kErrorBadParams, "priority"},
      {{1, 1, {{"wait_ms", 3'600'001}}}, kErrorBadParams, "wait_ms"},
      {{1, 1, {{"wait_ms", "1s"}}}, kErrorBadParams, "wait_ms"},
      {{1, 1, {{"request_id", -5}}}, kErrorBadParams, "request_id"},
      {{1, 1, {{"param", Json::array({1})}}}, kErrorBadParams, "param"},
      {{1, 1, "options"}, kErrorBadParams, "options"},
      {{1, 1, nullptr, nullptr}, kErrorBadParams, "parameters"},
  };
  for (const auto& bad : cases) {
    const Reply error = ErrorOf(&client, "acquire", bad.params);
    CAPTURE(bad.params.dump());
    CAPTURE(error.ToString());
    CHECK(error.error_code == bad.code);
    CHECK(Names(error, bad.named));
  }
  CHECK(NowCalls(&client, 1) == 0);
  CHECK(Acquire(&client, 1).status == kStatusOk);
  CHECK(ResultOf(&client, "acquire", {1, 1, {{"prioritized", true}}}).at(0) == kStatusOk);
}

TEST_CASE("release frees a token once") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  const Grant grant = Acquire(&client, 1, 4);
  const Grant other = Acquire(&client, 1, 2);
  CHECK(Release(&client, grant.token_id) == kStatusReleaseOk);
  CHECK(NowCalls(&client, 1) == 2);
  CHECK(Release(&client, grant.token_id) == kStatusAlreadyRelease);
  CHECK(Release(&client, 0) == kStatusAlreadyRelease);
  CHECK(Release(&client, 123'456'789) == kStatusAlreadyRelease);
  CHECK(Release(&client, UINT64_MAX) == kStatusAlreadyRelease);
  CHECK(NowCalls(&client, 1) == 2);
  CHECK(Release(&client, other.token_id) == kStatusReleaseOk);
}

TEST_CASE("release, keep and reclaim refuse parameters of another form and name them") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  for (const char* method : {"release", "keep", "reclaim"}) {
    for (const Json& params :
         {Json::array(), Json::array({"5"}), Json::array({-5}), Json::array({nullptr})}) {
      const Reply error = ErrorOf(&client, method, params);
      CAPTURE(error.ToString());
      CHECK(error.error_code == kErrorBadParams);
      CHECK(Names(error, "token_id"));
    }
    CHECK(ErrorOf(&client, method, {5, "reason", 1}).error_code == kErrorBadParams);
  }
  for (const Json& reason : {Json(nullptr), Json(7), Json(""), Json(std::string(257, 'x'))}) {
    CHECK(Names(ErrorOf(&client, "reclaim", {5, reason}), "reason"));
  }
}

TEST_CASE("keep tells how long the token may be held") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  const Grant grant = Acquire(&client, 1);
  const Json kept = ResultOf(&client, "keep", Json::array({grant.token_id}));
  CHECK(kept == Json({kStatusOk, 120'000}));
  CHECK(Release(&client, grant.token_id) == kStatusReleaseOk);
  const Json gone = ResultOf(&client, "keep", Json::array({grant.token_id}));
  CHECK(gone == Json({kStatusAlreadyRelease, 0}));
}

TEST_CASE("reclaim takes any client's token back, once") {
  TestServer server(TwoFlows());
  RpcClient alice = server.Connect("alice");
  RpcClient operator_client = server.Connect();
  const Grant grant = Acquire(&alice, 1, 4);
  const Json params = {grant.token_id, "stuck job 17"};
  CHECK(ResultOf(&operator_client, "reclaim", params) == Json::array({kStatusReleaseOk}));
  CHECK(ResultOf(&operator_client, "reclaim", params) == Json::array({kStatusAlreadyRelease}));
  CHECK(NowCalls(&alice, 1) == 0);
  CHECK(Release(&alice, grant.token_id) == kStatusAlreadyRelease);
  const Json flow = ResultOf(&alice, "flow", Json::array({1}));
  CHECK(flow.at("counters").at("ended").at("admin") == 1);
}

TEST_CASE("flow and flows show level, calls, sessions and counters") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  const Grant grant = Acquire(&client, 1, 4);
  Acquire(&client, 1, 7);
  Keep(&client, grant.token_id);
  Acquire(&client, 2, 1);
  const Json flow = ResultOf(&client, "flow", Json::array({1}));
  CAPTURE(flow.dump());
  CHECK(flow.at("flow_id") == 1);
  CHECK(flow.at("namespace") == "default");
  CHECK(flow.at("resource") == "resource-1");
  CHECK(flow.at("level") == 10);
  CHECK(flow.at("now_calls") == 4);
  CHECK(flow.at("tokens") == 1);
  CHECK(flow.at("waiters") == 0);
  CHECK(flow.at("sessions") == 1);
  CHECK(flow.at("removed") == false);
  CHECK(flow.at("counters").at("granted") == 1);
  CHECK(flow.at("counters").at("refused").at("level") == 1);
  CHECK(flow.at("counters").at("kept") == 1);
  const auto rows = ListAll(&client, "flows", Json::array(), 1);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == flow);
  CHECK(rows[1].at("flow_id") == 2);
  CHECK(rows[1].at("now_calls") == 1);
  CHECK(Names(ErrorOf(&client, "flow", Json::array({99})), "99"));
  CHECK(Names(ErrorOf(&client, "flow", Json::array({"1"})), "flow_id"));
  CHECK(Names(ErrorOf(&client, "flow", Json::array()), "flow_id"));
}

TEST_CASE("tokens lists the oldest first, page by page, with filters") {
  TestServer server(TwoFlows());
  RpcClient alice = server.Connect("alice");
  RpcClient bob = server.Connect("bob");
  std::vector<uint64_t> expected;
  expected.reserve(7);
  for (int i = 0; i < 4; ++i) expected.push_back(Acquire(&alice, 1, i % 2 + 1).token_id);
  for (int i = 0; i < 3; ++i) expected.push_back(Acquire(&bob, 2).token_id);
  std::vector<uint64_t> listed;
  listed.reserve(expected.size());
  for (const auto& row : ListAll(&alice, "tokens", Json::array({nullptr}), 2)) {
    listed.push_back(row.at("token_id").get<uint64_t>());
  }
  CHECK(listed == expected);
  const auto of_bob = ListAll(&alice, "tokens", Json::array({{{"client_id", "bob"}}}));
  REQUIRE(of_bob.size() == 3);
  CHECK(of_bob[0].at("client_id") == "bob");
  CHECK(of_bob[0].at("flow_id") == 2);
  CHECK(of_bob[0].at("namespace") == "default");
  CHECK(of_bob[0].at("count") == 1);
  CHECK(of_bob[0].at("online") == true);
  CHECK(of_bob[0].at("fence").get<uint64_t>() > 0);
  CHECK(of_bob[0].at("deadline_ms").get<int64_t>() ==
        of_bob[0].at("issued_ms").get<int64_t>() + 120'000);
  CHECK(ListAll(&alice, "tokens", Json::array({{{"flow_id", 1}}})).size() == 4);
  CHECK(ListAll(&alice, "tokens", Json::array({{{"flow_id", 1}, {"client_id", "bob"}}})).empty());
  CHECK(ListAll(&alice, "tokens", Json::array({{{"flow_id", 77}}})).empty());
  CHECK(ListAll(&alice, "tokens", Json::array({{{"min_age_ms", 3'600'000}}})).empty());
}

TEST_CASE("listings refuse bad filters, limits and cursors and name them") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  const struct {
    std::string method;
    Json params;
    std::string named;
  } cases[] = {
      {"tokens", Json::array({{{"flow_id", "x"}}}), "flow_id"},
      {"tokens", Json::array({{{"client_id", 5}}}), "client_id"},
      {"tokens", Json::array({{{"min_age_ms", -1}}}), "min_age_ms"},
      {"tokens", Json::array({{{"colour", 1}}}), "colour"},
      {"tokens", {nullptr, 0}, "limit"},
      {"tokens", {nullptr, 1001}, "limit"},
      {"tokens", {nullptr, "10"}, "limit"},
      {"tokens", {nullptr, 10, 987'654}, "cursor"},
      {"tokens", {nullptr, 10, "x"}, "cursor"},
      {"sessions", Json::array({-1}), "limit"},
      {"sessions", {10, "x"}, "cursor"},
      {"flows", Json::array({5000}), "limit"},
      {"rules_list", Json::array({7}), "namespace"},
      {"rules_list", {nullptr, 0}, "limit"},
  };
  for (const auto& bad : cases) {
    const Reply error = ErrorOf(&client, bad.method, bad.params);
    CAPTURE(bad.method);
    CAPTURE(error.ToString());
    CHECK(error.error_code == kErrorBadParams);
    CHECK(Names(error, bad.named));
  }
}

TEST_CASE("sessions shows who is connected and what they hold") {
  TestServer server(TwoFlows());
  RpcClient alice = server.Connect("alice");
  RpcClient anonymous = server.Connect();
  const std::string anonymous_id = "@" + anonymous.local_address();
  Acquire(&alice, 1, 4);
  Acquire(&anonymous, 2, 2);
  const auto rows = ListAll(&alice, "sessions", Json::array(), 1);
  REQUIRE(rows.size() == 2);
  CHECK(Column<std::string>(rows, "client_id") ==
        std::multiset<std::string>{"alice", anonymous_id});
  const Json& first = rows[0].at("client_id") == "alice" ? rows[0] : rows[1];
  const Json& second = rows[0].at("client_id") == "alice" ? rows[1] : rows[0];
  CHECK(first.at("kind") == "named");
  CHECK(first.at("namespace") == "default");
  CHECK(first.at("online") == true);
  CHECK(first.at("connections") == 1);
  CHECK(first.at("tokens") == 1);
  CHECK(first.at("now_calls") == 4);
  CHECK(second.at("kind") == "connection");
  CHECK(second.at("now_calls") == 2);
}

TEST_CASE("info tells version, durability, limits and counts") {
  TestServer server(TwoFlows(), {{"--durability", "interval:50"}, {}});
  RpcClient client = server.Connect("alice");
  Acquire(&client, 1, 4);
  const Json info = ResultOf(&client, "info");
  CAPTURE(info.dump());
  CHECK_FALSE(info.at("version").get<std::string>().empty());
  CHECK(info.at("uptime_ms").get<int64_t>() >= 0);
  CHECK(info.at("ledger").at("durability") == "interval:50");
  CHECK(info.at("counts").at("tokens") == 1);
  CHECK(info.at("counts").at("now_calls") == 4);
  CHECK(info.at("counts").at("rules") == 2);
  CHECK(info.at("counts").at("connections") == 1);
  CHECK(info.at("limits").at("requests_in_flight_max") == 1024);
  CHECK(info.at("limits").at("flows_max") == 400'000);
  CHECK(ErrorOf(&client, "info", Json::array({1})).error_code == kErrorBadParams);
}

TEST_CASE("an unknown method is an error that names it, and the connection goes on") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect();
  for (const char* method : {"aquire", "", "ACQUIRE", "acquire_half", "waiter"}) {
    const Reply error = ErrorOf(&client, method, {1, 1});
    CAPTURE(error.ToString());
    CHECK(error.error_code == kErrorUnknownMethod);
    CHECK(Names(error, method));
  }
  CHECK(client.Call("ping").ok());
}

TEST_CASE("a client that sends all it has and its end of the stream gets every answer") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  for (int i = 0; i < 100; ++i) client.Send("acquire", {2, 1});
  client.EndInput();
  int granted = 0;
  for (int i = 0; i < 100; ++i) {
    const Reply reply = client.Receive();
    REQUIRE_MESSAGE(reply.ok(), reply.ToString());
    granted += reply.result[0] == kStatusOk ? 1 : 0;
  }
  CHECK(granted == 5);
  CHECK(client.SeesEof());
}

TEST_CASE("replies to requests in flight carry their own msgids") {
  TestServer server(TwoFlows());
  RpcClient client = server.Connect("alice");
  std::vector<uint64_t> sent;
  sent.reserve(200);
  for (int i = 0; i < 200; ++i) {
    sent.push_back(i % 3 == 0 ? client.Send("ping") : client.Send("acquire", {2, 1}));
  }
  std::multiset<uint64_t> answered;
  int granted = 0;
  for (size_t i = 0; i < sent.size(); ++i) {
    const Reply reply = client.Receive();
    REQUIRE(reply.ok());
    answered.insert(reply.msgid);
    granted += reply.result.size() == 7 && reply.result[0] == kStatusOk ? 1 : 0;
  }
  CHECK(answered == std::multiset<uint64_t>(sent.begin(), sent.end()));
  CHECK(granted == 5);
  CHECK(NowCalls(&client, 2) == 5);
}

}  // namespace
}  // namespace nowcalls::testing
