// What src/wire/PROTOCOL.md says about the edges of types, lengths and namespaces.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "integration/calls.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr size_t kStrBytesMax = 4096;
constexpr int64_t kIntMin = INT64_MIN;
constexpr uint64_t kPastInt = uint64_t{1} << 63;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a method name beyond 4096 bytes ends the connection, one of 4096 does not") {
  TestServer server;
  RpcClient client = server.Connect();
  const Reply unknown = client.Call(std::string(kStrBytesMax, 'm'));
  CHECK(unknown.error_code == kErrorUnknownMethod);
  client.Send(std::string(kStrBytesMax + 1, 'm'));
  CHECK(client.SeesEof());
}

TEST_CASE("a parameter beyond 4096 bytes is refused by name, and the connection goes on") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  const std::string too_long(kStrBytesMax + 1, 'x');
  const Reply name_space = ErrorOf(&client, "hello", {1, too_long});
  CHECK(name_space.error_code == kErrorBadParams);
  CHECK(name_space.error_message == "hello: namespace of 4097 bytes exceeds 4096");
  const Reply key = ErrorOf(&client, "acquire", {1, 1, {{too_long, 1}}});
  CHECK(key.error_code == kErrorBadParams);
  CHECK(Contains(key.error_message, "is not known"));
  const Reply filter = ErrorOf(&client, "tokens", Json::array({{{"client_id", too_long}}}));
  CHECK(filter.error_code == kErrorBadParams);
  CHECK(Acquire(&client, 1).status == kStatusOk);
}

TEST_CASE("the rules of rules_load may be longer than 4096 bytes") {
  TestServer server;
  RpcClient client = server.Connect();
  const Json rules = Json::array({RuleJson(1, 5)});
  const std::string padded = std::string(2 * kStrBytesMax, ' ') + rules.dump();
  CHECK(ResultOf(&client, "rules_load", {"default", padded}) == Json::array({1}));
}

TEST_CASE("a parameter too many is refused even if it is nil") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  for (const char* method : {"ping", "info"}) {
    CAPTURE(method);
    const Reply reply = ErrorOf(&client, method, Json::array({nullptr}));
    CHECK(reply.error_code == kErrorBadParams);
    CHECK(reply.error_message == std::string(method) + " takes at most 0 parameters, got 1");
  }
  CHECK(ErrorOf(&client, "release", {5, nullptr}).error_code == kErrorBadParams);
  // A known one may be nil.
  CHECK(ResultOf(&client, "acquire", {1, 1, nullptr}).at(0) == kStatusOk);
}

TEST_CASE("a flow_id or count that is no int is an error, one out of range a status") {
  TestServer server({RuleJson(1, 10)});
  RpcClient client = server.Connect();
  CHECK(Acquire(&client, 0).status == kStatusBadRequest);
  CHECK(Acquire(&client, kIntMin).status == kStatusBadRequest);
  CHECK(Acquire(&client, 1, 0).status == kStatusBadRequest);
  CHECK(Acquire(&client, 1, int64_t{INT32_MAX} + 1).status == kStatusBadRequest);
  CHECK(Acquire(&client, INT64_MAX).status == kStatusNoRuleExists);
  const Reply flow = ErrorOf(&client, "acquire", {kPastInt, 1});
  CHECK(flow.error_code == kErrorBadParams);
  CHECK(flow.error_message == "acquire: flow_id must fit a signed 64-bit integer");
  CHECK(ErrorOf(&client, "acquire", {1, kPastInt}).error_code == kErrorBadParams);
  CHECK(ErrorOf(&client, "flow", Json::array({kPastInt})).error_code == kErrorBadParams);
}

TEST_CASE("a session may acquire under a rule of any namespace") {
  TestServer server;
  RpcClient shop = server.Connect("alice", "shop");
  LoadRules(&shop, RuleSet(RuleJson(1, 10)), "shop");
  LoadRules(&shop, RuleSet(RuleJson(2, 3, {{"thresholdType", 0}})), "bank");
  CHECK(Acquire(&shop, 1).status == kStatusOk);
  // AVG_LOCAL counts the sessions of the rule's namespace, and nobody is online in this one.
  const Grant refused = Acquire(&shop, 2);
  CHECK(refused.status == kStatusBlocked);
  CHECK(refused.level == 0);
  RpcClient bank = server.Connect("bob", "bank");
  const Grant granted = Acquire(&shop, 2);
  CHECK(granted.status == kStatusOk);
  CHECK(granted.level == 3);
  const auto rows = ListAll(&shop, "tokens", Json::array({nullptr}));
  REQUIRE(rows.size() == 2);
  // Shown is the holder's namespace.
  CHECK(rows[1].at("flow_id") == 2);
  CHECK(rows[1].at("namespace") == "shop");
}

}  // namespace
}  // namespace nowcalls::testing
