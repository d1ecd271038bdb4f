// Who is told what a rule says of the end of its tokens: connections that asked for it in hello.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "support/engine_harness.h"
#include "unit/wire/pack.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using testing::TokenRequest;
using wire::Method;

std::string HelloForTerms(std::string_view client_id, bool terms) {
  return wire::PackArray(
      0, 1, "hello",
      wire::Raw{wire::PackArray(1, "app", client_id, wire::PackMap("terms", terms))});
}

std::vector<testing::RuleOptions> RuleThatKeeps() {
  return {{.flow = 1,
           .count = 1,
           .resource_timeout_ms = 1000,
           .client_offline_ms = 700,
           .timeout_strategy = 2}};
}

// A result as msgpack-c prints it, from element `first` on.
std::string Tail(std::string_view result, uint32_t first) {
  const msgpack::object_handle unpacked = msgpack::unpack(result.data(), result.size());
  const msgpack::object_array array = unpacked->via.array;
  std::ostringstream text;
  for (uint32_t i = first; i < array.size; ++i) text << (i > first ? "," : "") << array.ptr[i];
  return text.str();
}

TEST_CASE("a connection that asked for terms is told them by each grant and each keep") {
  EngineHarness h({}, RuleThatKeeps());
  const ConnectionId a = h.Connect();
  h.Call(a, HelloForTerms("a", true));
  const testing::EngineReply granted = h.Call(a, testing::AcquireRequest(2, 1));
  CHECK(Tail(granted.result, 5) == "2000,null,null,[2,1000,700]");
  const uint64_t token = granted.acquire().token_id;
  CHECK(Tail(h.Call(a, TokenRequest(3, Method::kKeep, token)).result, 0) == "0,2000,[2,1000,700]");
  const testing::EngineReply refused = h.Call(a, testing::AcquireRequest(4, 1));
  CHECK(Tail(refused.result, 5) == "0,\"level\"");
  CHECK(Tail(h.Call(a, TokenRequest(5, Method::kKeep, token + 1)).result, 0) == "7,0");
}

TEST_CASE("an acquire that waited, and a group, are told the terms too") {
  EngineHarness h({}, RuleThatKeeps());
  const ConnectionId a = h.Connect();
  const ConnectionId b = h.Connect("127.0.0.1:2");
  h.Call(a, HelloForTerms("a", true));
  h.Call(b, HelloForTerms("b", true));
  const uint64_t token = h.Take(a);
  wire::OutputBuffer wait;
  wire::EncodeAcquireRequest(2, {.flow_id = 1, .count = 1, .wait_ms = 5000}, &wait);
  h.Send(b, wait.view());
  h.Settle();
  h.Call(a, TokenRequest(3, Method::kRelease, token));
  const std::vector<testing::EngineReply> late = h.TakeReplies(b);
  REQUIRE(late.size() == 1);
  CHECK(Tail(late[0].result, 5) == "2000,null,null,[2,1000,700]");
  h.Call(b, TokenRequest(3, Method::kRelease, late[0].acquire().token_id));

  wire::OutputBuffer group;
  wire::AcquireAllParams params{.items = {{.flow_id = 1, .count = 1}}, .request_id = 5};
  wire::EncodeAcquireAllRequest(4, params, &group);
  for (int time = 0; time < 2; ++time) {  // Asked again, it is told the same.
    const std::string result = h.Call(a, group.view()).result;
    CHECK(Tail(result, 1).find(",2000,[2,1000,700]]],null,0,") != std::string::npos);
  }
}

TEST_CASE("a connection that did not ask for terms gets the answers of before") {
  EngineHarness h({}, RuleThatKeeps());
  const ConnectionId a = h.Connect();
  h.Call(a, HelloForTerms("a", false));
  const testing::EngineReply granted = h.Call(a, testing::AcquireRequest(2, 1));
  CHECK(Tail(granted.result, 5) == "2000,null");
  const uint64_t token = granted.acquire().token_id;
  CHECK(Tail(h.Call(a, TokenRequest(3, Method::kKeep, token)).result, 0) == "0,2000");
}

TEST_CASE("the next keep tells what a reloaded rule says") {
  EngineHarness h({}, RuleThatKeeps());
  const ConnectionId a = h.Connect();
  h.Call(a, HelloForTerms("a", true));
  const uint64_t token = h.Take(a);
  std::vector<testing::RuleOptions> rules = RuleThatKeeps();
  rules[0].timeout_strategy = 1;
  rules[0].client_offline_ms = 900;
  wire::OutputBuffer load;
  wire::EncodeRulesLoadRequest(3, "default", testing::RulesJson(rules), &load);
  h.Call(a, load.view());
  CHECK(Tail(h.Call(a, TokenRequest(4, Method::kKeep, token)).result, 0) == "0,2000,[1,1000,900]");
}

}  // namespace
}  // namespace nowcalls::engine
