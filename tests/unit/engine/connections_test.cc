// Connections and sessions: who is who, what a disconnect leaves, how slots are used again.
#include <doctest/doctest.h>

#include "core/books.h"
#include "support/engine_harness.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::EngineHarness;
using testing::HelloRequest;
using testing::PlainRequest;
using testing::TokenRequest;
using wire::Method;
using MsgIds = std::vector<uint32_t>;

TEST_CASE("a disconnect with replies waiting loses the replies and keeps the tokens") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Call(c, HelloRequest(1, "default", "a"));
  h.Send(c, AcquireRequest(2, 1) + AcquireRequest(3, 1));
  h.Turn();
  REQUIRE(h.BeginCommit());
  h.Send(c, AcquireRequest(4, 1));
  h.Disconnect(c);
  h.FinishCommit();
  h.Settle();
  CHECK(h.driver().socket(c).written.empty());
  const ConnectionId again = h.Connect();
  CHECK(h.Call(again, HelloRequest(1, "default", "a")).hello().resumed_tokens == 3);
}

TEST_CASE("a new connection in the slot of an old one gets none of its replies") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequest(1, 1));
  REQUIRE(h.BeginCommit());
  h.Send(c, AcquireRequest(2, 1));               // Waits for the open batch,
  h.Send(c, PlainRequest(3, Method::kPing));     // for the end of the turn,
  h.Send(c, AcquireRequest(4, 1).substr(0, 5));  // and for its own rest.
  h.Disconnect(c);
  const ConnectionId d = h.Connect("127.0.0.1:2");
  REQUIRE(d == c);
  h.Turn();
  CHECK(h.driver().socket(d).written.empty());
  h.Send(d, AcquireRequest(10, 1));
  h.Turn();
  h.FinishCommit();
  h.Turn();
  CHECK(h.driver().socket(d).written.empty());  // Its own batch is not durable yet.
  h.Settle();
  CHECK(h.TakeIds(d) == MsgIds{10});
}

TEST_CASE("a new connection in the slot of a paused one reads, and is not resumed twice") {
  Limits limits;
  limits.requests_in_flight_max = 1;
  limits.batch_bytes_max = 300;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  for (uint32_t id = 1; id < 20; ++id) h.Send(c, AcquireRequest(id, 1));
  REQUIRE_FALSE(h.driver().socket(c).reading);
  h.Disconnect(c);
  const ConnectionId d = h.Connect("127.0.0.1:2");
  REQUIRE(d == c);
  CHECK(h.driver().socket(d).reading);
  h.Settle();
  CHECK(h.driver().socket(d).written.empty());
  CHECK(h.Call(d, AcquireRequest(30, 1)).acquire().status == TokenStatus::kOk);
}

TEST_CASE("a connection without hello has a session of its own that ends with it") {
  EngineHarness h;
  const ConnectionId c = h.Connect("10.0.0.1:77");
  CHECK(h.core().books().sessions().size() == 0);
  const uint64_t token = h.Take(c);
  REQUIRE(h.core().books().sessions().size() == 1);
  const auto& session =
      h.core().books().sessions().at(h.core().books().sessions().by_id().begin()->second);
  CHECK(session.client_id == "@10.0.0.1:77");
  CHECK(session.kind == ledger::SessionKind::kConnection);
  CHECK(h.core().flows().name_space(session.name_space).name == "default");
  const ConnectionId other = h.Connect("10.0.0.1:77");
  CHECK(h.Call(other, TokenRequest(1, Method::kRelease, token)).status() ==
        TokenStatus::kAlreadyRelease);
  h.Disconnect(c);
  h.Pass(1950);
  CHECK(h.core().books().tokens().size() == 1);
  h.Pass(50);  // clientOfflineTime
  CHECK(h.core().books().tokens().size() == 0);
}

TEST_CASE("a session with a client id survives its connection, and a restart") {
  EngineHarness h;
  const ConnectionId c = h.Connect("10.0.0.1:77");
  const wire::HelloReply first = h.Call(c, HelloRequest(1, "default", "a")).hello();
  CHECK(first.server_version == "9.9.9");
  CHECK(first.sessions_online == 1);
  CHECK(first.resumed_tokens == 0);
  const uint64_t token = h.Take(c);
  h.Disconnect(c);
  h.Settle();
  const ConnectionId d = h.Connect("10.0.0.2:88");
  const wire::HelloReply second = h.Call(d, HelloRequest(1, "default", "a")).hello();
  CHECK(second.session == first.session);
  CHECK(second.resumed_tokens == 1);
  h.Restart();
  const ConnectionId e = h.Connect();
  CHECK(h.Call(e, HelloRequest(1, "default", "a")).hello().session == first.session);
  CHECK(h.Call(e, TokenRequest(2, Method::kRelease, token)).status() == TokenStatus::kReleaseOk);
}

TEST_CASE("two connections share a client id: either may release, and either keeps it online") {
  EngineHarness h;
  const ConnectionId c = h.Connect("127.0.0.1:1");
  const ConnectionId d = h.Connect("127.0.0.1:2");
  h.Call(c, HelloRequest(1, "default", "a"));
  CHECK(h.Call(d, HelloRequest(1, "default", "a")).hello().sessions_online == 1);
  const uint64_t one = h.Take(c);
  h.Take(c);
  CHECK(h.Call(d, TokenRequest(1, Method::kRelease, one)).status() == TokenStatus::kReleaseOk);
  h.Disconnect(c);
  h.Pass(3900);
  CHECK(h.core().books().tokens().size() == 1);
  h.Disconnect(d);
  h.Settle();
  CHECK(h.core().books().tokens().size() == 1);
  h.Pass(5000);
  CHECK(h.core().books().tokens().size() == 0);
  CHECK(h.core().books().sessions().size() == 0);
}

TEST_CASE("hello comes once, before the first acquire") {
  EngineHarness h;
  const std::string late =
      "HELLO_STATE: hello: this connection has a session already; hello comes "
      "once, before the first acquire";
  const ConnectionId c = h.Connect();
  h.Call(c, HelloRequest(1, "default", "a"));
  CHECK(h.Call(c, HelloRequest(2, "default", "a")).ErrorText() == late);
  const ConnectionId d = h.Connect();
  h.Take(d);
  CHECK(h.Call(d, HelloRequest(1, "default", "b")).ErrorText() == late);
  // Release, keep and listings need no session, so hello may follow them.
  const ConnectionId e = h.Connect();
  h.Call(e, TokenRequest(1, Method::kRelease, 5));
  h.Call(e, PlainRequest(2, Method::kInfo));
  CHECK(h.Call(e, HelloRequest(3, "default", "c")).ErrorText() == "ok");
}

TEST_CASE("hello refuses names that cannot be one, and the connection may try again") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  const auto error = [&](std::string_view name_space, std::optional<std::string_view> client_id) {
    return h.Call(c, HelloRequest(1, name_space, client_id)).ErrorText();
  };
  CHECK(error("", "a").starts_with("BAD_PARAMS: hello: namespace must "));
  CHECK(error(std::string(129, 'n'), "a").starts_with("BAD_PARAMS: hello: namespace must "));
  CHECK(error("default", "").starts_with("BAD_PARAMS: hello: client_id must "));
  CHECK(error("default", "@a").starts_with("BAD_PARAMS: hello: client_id must "));
  CHECK(error("default", "a\n").starts_with("BAD_PARAMS: hello: client_id must "));
  CHECK(error("default", "\xff").starts_with("BAD_PARAMS: hello: client_id must "));
  CHECK(h.core().books().sessions().size() == 0);
  CHECK(error("default", "a") == "ok");
}

TEST_CASE("hello refuses a protocol that this server does not speak") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  std::string request = HelloRequest(1, "default", "a");
  const size_t protocol = request.find("hello") + 6;  // Behind the head of the parameters.
  REQUIRE(request[protocol] == 1);
  request[protocol] = 2;
  CHECK(h.Call(c, request).ErrorText().starts_with("UNSUPPORTED: hello: protocol"));
}

TEST_CASE("beyond connections_max a connection is refused until another ends") {
  Limits limits;
  limits.connections_max = 2;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  h.Connect("127.0.0.1:2");
  CHECK_FALSE(h.engine().OnConnect({.name = "127.0.0.1:3"}, h.now()).has_value());
  h.Disconnect(c);
  CHECK(h.engine().OnConnect({.name = "127.0.0.1:3"}, h.now()).has_value());
}

TEST_CASE("beyond sessions_max hello and the first acquire are told OVERLOADED") {
  Limits limits;
  limits.sessions_max = 1;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  h.Call(c, HelloRequest(1, "default", "a"));
  const ConnectionId d = h.Connect("127.0.0.1:2");
  const std::string full = "OVERLOADED: the server holds 1 sessions already (sessions_max)";
  CHECK(h.Call(d, HelloRequest(1, "default", "b")).ErrorText() == full);
  CHECK(h.Call(d, AcquireRequest(2, 1)).ErrorText() == full);
  h.Disconnect(c);
  CHECK(h.Call(d, AcquireRequest(3, 1)).acquire().status == TokenStatus::kOk);
}

TEST_CASE("beyond tokens_max an acquire is refused as a result, not as an error") {
  Limits limits;
  limits.tokens_max = 1;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  h.Take(c);
  const wire::AcquireReply reply = h.Call(c, AcquireRequest(2, 1)).acquire();
  CHECK(reply.status == TokenStatus::kTooManyRequest);
  CHECK(reply.refused_by == RefusedBy::kTokenLimit);
}

TEST_CASE("a quiet connection is alive for ever") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Call(c, HelloRequest(1, "default", "a"));
  h.Sleep(1'000'000'000);
  h.Settle();
  CHECK_FALSE(h.driver().socket(c).closed);
  CHECK(h.Call(c, PlainRequest(2, Method::kPing)).number() == static_cast<uint64_t>(h.now().ms));
}

TEST_CASE("thousands of short connections leave nothing behind") {
  EngineHarness h;
  for (uint32_t i = 0; i < 3000; ++i) {
    const ConnectionId c = h.Connect("127.0.0.1:" + std::to_string(i));
    CHECK(c == 0);
    if (i % 2 == 0) h.Send(c, HelloRequest(1, "space-" + std::to_string(i), "a"));
    if (i % 3 == 0) h.Send(c, AcquireRequest(2, 1));
    if (i % 7 == 0) h.Turn();
    h.Disconnect(c);
    if (i % 50 == 0) h.Settle();
  }
  h.Pass(10'100);  // They look cut off: the guard gives them five times as long.
  CHECK(h.core().books().sessions().size() == 0);
  CHECK(h.core().books().tokens().size() == 0);
  CHECK(h.core().flows().namespaces() == 1);
  CHECK(testing::ReadLedger(&h.store()).sessions.empty());
}

}  // namespace
}  // namespace nowcalls::engine
