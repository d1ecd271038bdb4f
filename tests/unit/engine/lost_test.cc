// Who is told of tokens that were taken back, and when.
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/engine_harness.h"
#include "unit/wire/pack.h"

namespace nowcalls::engine {
namespace {

using testing::EngineHarness;
using testing::HelloRequest;
using testing::TokenRequest;
using wire::Method;

std::vector<testing::RuleOptions> OneRule() {
  return {{.flow = 1, .count = 10, .resource_timeout_ms = 1000, .client_offline_ms = 1000}};
}

// hello of client "a", which wants to hear of its losses.
std::string ListeningHello() {
  return wire::PackArray(0, 1, "hello",
                         wire::Raw{wire::PackArray(1, "app", "a", wire::PackMap("lost", true))});
}

std::string Reclaim(uint64_t token) {
  wire::OutputBuffer out;
  wire::EncodeReclaimRequest(9, {.token_id = token, .reason = "test"}, &out);
  return std::string(out.view());
}

// What has been written to the connection, each message as msgpack-c prints it.
std::vector<std::string> Written(EngineHarness* h, ConnectionId id) {
  std::vector<std::string> messages;
  const std::string bytes = std::exchange(h->driver().socket(id).written, "");
  for (size_t at = 0; at < bytes.size();) {
    const msgpack::object_handle message = msgpack::unpack(bytes.data(), bytes.size(), at);
    std::ostringstream text;
    text << message.get();
    messages.push_back(text.str());
  }
  return messages;
}

TEST_CASE("a token that an administrator takes is told of, when the record is durable") {
  EngineHarness h({}, OneRule());
  const ConnectionId a = h.Connect();
  const ConnectionId admin = h.Connect("127.0.0.1:2");
  h.Call(a, ListeningHello());
  const uint64_t token = h.Take(a);
  Written(&h, a);
  h.Send(admin, Reclaim(token));
  h.Turn();
  CHECK(Written(&h, a).empty());
  REQUIRE(h.BeginCommit());
  h.Turn();
  CHECK(Written(&h, a).empty());
  h.FinishCommit();
  h.Turn();
  CHECK(Written(&h, a) ==
        std::vector<std::string>{"[2,\"lost\",[" + std::to_string(token) + ",1,\"admin\"]]"});
}

TEST_CASE("a token that was held too long is told of; one that its holder released is not") {
  EngineHarness h({}, OneRule());
  const ConnectionId a = h.Connect();
  h.Call(a, ListeningHello());
  const uint64_t released = h.Take(a);
  const uint64_t forgotten = h.Take(a);
  h.Call(a, TokenRequest(5, Method::kRelease, released));
  h.Pass(1500);
  const uint64_t released_late = h.Take(a);
  h.Pass(1500);
  CHECK(Written(&h, a) == std::vector<std::string>{"[2,\"lost\",[" + std::to_string(forgotten) +
                                                   ",1,\"resource_timeout\"]]"});
  CHECK(h.Call(a, TokenRequest(6, Method::kRelease, released_late)).status() ==
        TokenStatus::kReleaseOk);
  h.Settle();
  CHECK(Written(&h, a).empty());
}

TEST_CASE("each connection that asked is told, no other one, and none that has left") {
  EngineHarness h({}, OneRule());
  const ConnectionId a = h.Connect();
  const ConnectionId also_a = h.Connect("127.0.0.1:2");
  const ConnectionId quiet_a = h.Connect("127.0.0.1:3");
  const ConnectionId gone_a = h.Connect("127.0.0.1:4");
  const ConnectionId b = h.Connect("127.0.0.1:5");
  for (const ConnectionId id : {a, also_a, gone_a}) h.Call(id, ListeningHello());
  h.Call(quiet_a, HelloRequest(1, "app", "a"));
  h.Call(b, HelloRequest(1, "app", "b"));
  const uint64_t token = h.Take(a);
  h.Disconnect(gone_a);
  for (const ConnectionId id : {a, also_a, quiet_a}) Written(&h, id);
  h.Call(b, Reclaim(token));
  CHECK(Written(&h, a).size() == 1);
  CHECK(Written(&h, also_a).size() == 1);
  CHECK(Written(&h, quiet_a).empty());
}

}  // namespace
}  // namespace nowcalls::engine
