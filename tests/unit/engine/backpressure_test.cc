// Invariant 8 at the border: what one client may have in flight, and what happens when it is more.
#include <doctest/doctest.h>

#include "core/books.h"
#include "support/engine_harness.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::AcquireRequests;
using testing::EngineHarness;
using testing::FakeDriver;
using testing::Ids;
using testing::PlainRequest;
using testing::TokenPageRequests;
using testing::TokenRequest;
using wire::Method;

TEST_CASE("beyond requests_in_flight_max reading stops, goes on, and each request has one answer") {
  Limits limits;
  limits.requests_in_flight_max = 10;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  const FakeDriver::Socket& socket = h.driver().socket(c);
  h.Send(c, AcquireRequests(1, 10));
  CHECK(socket.reading);
  h.Send(c, AcquireRequests(11, 35));
  CHECK_FALSE(socket.reading);
  CHECK(h.core().books().tokens().size() == 10);
  h.Turn();
  REQUIRE(h.BeginCommit());
  h.Turn();
  CHECK_FALSE(socket.reading);
  CHECK(h.core().books().tokens().size() == 10);
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(c) == Ids(1, 10));
  CHECK(h.core().books().tokens().size() == 20);
  CHECK_FALSE(socket.reading);
  h.Settle();
  CHECK(socket.reading);
  CHECK(h.TakeIds(c) == Ids(11, 35));
  CHECK(h.core().books().tokens().size() == 35);
  h.Send(c, AcquireRequests(36, 36));
  h.Settle();
  CHECK(h.TakeIds(c) == Ids(36, 36));
}

TEST_CASE("one client that floods does not stop another") {
  Limits limits;
  limits.requests_in_flight_max = 5;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  const ConnectionId d = h.Connect("127.0.0.1:2");
  h.Send(c, AcquireRequests(1, 50));
  h.Send(d, AcquireRequests(100, 102));
  CHECK(h.driver().socket(d).reading);
  REQUIRE(h.BeginCommit());
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(d) == Ids(100, 102));
  CHECK(h.TakeIds(c) == Ids(1, 5));
  h.Settle();
  CHECK(h.TakeIds(c) == Ids(6, 50));
}

TEST_CASE("requests in flight in both batches count together") {
  Limits limits;
  limits.requests_in_flight_max = 4;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequests(1, 2));
  REQUIRE(h.BeginCommit());
  h.Send(c, AcquireRequests(3, 6));
  CHECK(h.core().books().tokens().size() == 4);
  CHECK_FALSE(h.driver().socket(c).reading);
  h.FinishCommit();
  h.Turn();
  CHECK(h.core().books().tokens().size() == 6);
  CHECK(h.TakeIds(c) == Ids(1, 2));
  h.Settle();
  CHECK(h.TakeIds(c) == Ids(3, 6));
  CHECK(h.driver().socket(c).reading);
}

TEST_CASE("a full batch stops everybody's input until the next one opens") {
  Limits limits;
  limits.batch_bytes_max = 1000;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  const ConnectionId d = h.Connect("127.0.0.1:2");
  h.Send(c, AcquireRequests(1, 100));
  const uint32_t granted = h.core().books().tokens().size();
  CHECK(granted >= 5);
  CHECK(granted < 40);
  CHECK_FALSE(h.driver().socket(c).reading);
  h.Send(d, AcquireRequests(101, 103));
  CHECK(h.core().books().tokens().size() == granted);
  CHECK_FALSE(h.driver().socket(d).reading);
  CHECK(h.engine().NextDeadline() == h.core().NextMark());
  CHECK_FALSE(h.engine().BeginScan(h.now() + 1'000'000).has_value());
  h.Turn();
  CHECK(h.TakeIds(d).empty());

  REQUIRE(h.BeginCommit());
  h.Turn();
  CHECK(h.core().books().tokens().size() > granted);
  h.FinishCommit();
  h.Settle();
  CHECK(h.TakeIds(c) == Ids(1, 100));
  CHECK(h.TakeIds(d) == Ids(101, 103));
  CHECK(h.driver().socket(c).reading);
  CHECK(h.driver().socket(d).reading);
}

TEST_CASE("a batch that fills again while the one before is in flight stops input again") {
  Limits limits;
  limits.batch_bytes_max = 600;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequests(1, 200));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(h.BeginCommit());
    h.Turn();
    CHECK_FALSE(h.driver().socket(c).reading);
    CHECK(h.core().books().tokens().size() < 200);
    h.FinishCommit();
    h.Turn();
  }
  h.Settle();
  CHECK(h.TakeIds(c) == Ids(1, 200));
  CHECK(h.driver().socket(c).reading);
}

TEST_CASE("a client that does not read its replies is closed when too much of them is kept") {
  Limits limits;
  limits.output_bytes_max = 1000;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  const ConnectionId d = h.Connect("127.0.0.1:2");
  h.driver().socket(c).stuck = true;
  for (uint32_t id = 1; id < 300 && !h.driver().socket(c).closed; ++id) {
    h.Send(c, PlainRequest(id, Method::kPing));
    h.Settle();
  }
  const FakeDriver::Socket& socket = h.driver().socket(c);
  CHECK(socket.closed);
  CHECK_FALSE(socket.flushed);
  CHECK(socket.kept > 1000);
  CHECK(socket.kept < 1100);
  CHECK(h.driver().TakeLog().find("warn: connection 127.0.0.1:1000 does not read its replies: ") !=
        std::string::npos);
  h.Send(c, PlainRequest(999, Method::kPing));  // What the driver had read already.
  h.Settle();
  h.Disconnect(c);
  CHECK(h.Call(d, PlainRequest(1, Method::kPing)).number() > 0);
}

TEST_CASE("a client that does not read its replies is not read either, until it does") {
  EngineHarness h({}, {{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000}});
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequests(1, 1000));
  h.Settle();
  h.TakeIds(c);
  FakeDriver::Socket& socket = h.driver().socket(c);
  socket.stuck = true;
  h.Send(c, TokenPageRequests(1, 20));
  h.Settle();
  const size_t answered = h.TakeIds(c).size();
  CHECK(answered >= 1);
  CHECK(answered < 8);
  CHECK(socket.kept >= 256 * 1024);
  CHECK(socket.kept < 768 * 1024);
  CHECK_FALSE(socket.reading);
  CHECK(h.engine().idle());

  h.engine().OnSent(c, socket.kept = 256 * 1024, h.now());  // Not enough.
  h.Settle();
  CHECK(h.TakeIds(c).empty());
  socket.stuck = false;
  h.engine().OnSent(c, socket.kept = 0, h.now());
  h.Settle();
  CHECK(h.TakeIds(c).size() == 20 - answered);
  CHECK(socket.reading);
}

TEST_CASE("a client that takes no byte of its replies for output_stalled_ms is closed") {
  Limits limits;
  limits.output_stalled_ms = 1000;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  FakeDriver::Socket& socket = h.driver().socket(c);
  socket.stuck = true;
  h.Send(c, PlainRequest(1, Method::kPing));
  h.Settle();
  h.Pass(900);
  h.engine().OnSent(c, --socket.kept, h.now());  // A byte is progress.
  h.Pass(500);
  h.Send(c, PlainRequest(2, Method::kPing));  // More to send is none.
  h.Settle();
  h.Pass(450);
  CHECK_FALSE(socket.closed);
  h.Pass(50);
  CHECK(socket.closed);
  CHECK_FALSE(socket.flushed);
  CHECK(h.driver().TakeLog() ==
        "warn: connection 127.0.0.1:1000 has read none of its replies for 1000 ms; closing it\n");
  CHECK(h.driver().last_topic_and_fields() ==
        "peer peer=127.0.0.1:1000 reason=has read none of its replies for 1000 ms");

  const ConnectionId d = h.Connect("127.0.0.1:2");
  h.driver().socket(d).stuck = true;
  h.Send(d, PlainRequest(1, Method::kPing));
  h.Settle();
  h.driver().socket(d).stuck = false;
  h.engine().OnSent(d, h.driver().socket(d).kept = 0, h.now());
  h.Pass(5000);
  CHECK_FALSE(h.driver().socket(d).closed);
}

TEST_CASE("when all connections keep too much together, the one that keeps most is closed") {
  Limits limits;
  limits.output_total_bytes_max = 600 * 1024;
  EngineHarness h(limits, {{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000}});
  const ConnectionId filler = h.Connect();
  h.Send(filler, AcquireRequests(1, 1000));
  h.Settle();
  std::vector<ConnectionId> ids;
  const auto keep = [&](uint32_t pages) {
    ids.push_back(h.Connect("127.0.0.1:" + std::to_string(ids.size())));
    h.driver().socket(ids.back()).stuck = true;
    h.Send(ids.back(), TokenPageRequests(1, pages));
    h.Settle();
    return h.driver().socket(ids.back()).kept;
  };
  const size_t one = keep(1);
  const size_t two = keep(2);
  REQUIRE(two > one);
  for (size_t total = one + two; total <= 600 * 1024; total += one) REQUIRE(keep(1) == one);
  for (const ConnectionId id : ids) CHECK(h.driver().socket(id).closed == (id == ids[1]));
  CHECK_FALSE(h.driver().socket(ids[1]).flushed);
  CHECK(h.driver().TakeLog() ==
        "warn: connection 127.0.0.1:1 does not read its replies: " + std::to_string(two) +
            " bytes wait, the most of all connections, which together "
            "exceed 614400; closing it\n");
  h.Disconnect(ids[1]);
  h.driver().socket(filler).stuck = true;
  h.Send(filler, PlainRequest(1, Method::kPing));
  h.Settle();
  CHECK_FALSE(h.driver().socket(filler).closed);
}

TEST_CASE("what is kept of a connection that is being flushed counts, and it may be ended") {
  Limits limits;
  limits.output_total_bytes_max = 600 * 1024;
  limits.output_stalled_ms = 1000;
  EngineHarness h(limits, {{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000}});
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequests(1, 1000));
  h.Settle();
  h.driver().socket(c).stuck = true;
  h.Send(c, TokenPageRequests(1, 1) + "x");
  h.Settle();
  CHECK(h.driver().socket(c).flushed);
  h.Pass(1500);  // The driver's business.
  CHECK(h.driver().socket(c).flushed);
  std::vector<ConnectionId> others;
  while (h.driver().socket(c).flushed) {
    REQUIRE(others.size() < 20);
    others.push_back(h.Connect("127.0.0.1:2"));
    h.driver().socket(others.back()).stuck = true;
    h.Send(others.back(), TokenPageRequests(1, 1, 900));
    h.Settle();
  }
  for (const ConnectionId id : others) CHECK_FALSE(h.driver().socket(id).closed);
}

TEST_CASE("an engine that shuts down answers what was read and begins nothing else") {
  EngineHarness h;
  const ConnectionId c = h.Connect();
  h.Take(c);
  h.Sleep(60'000);
  REQUIRE(h.engine().NextDeadline() <= h.now());
  h.Send(c, AcquireRequest(2, 1));
  h.engine().BeginShutdown(h.now());
  CHECK(h.engine().NextDeadline() == h.core().NextMark());
  CHECK_FALSE(h.engine().BeginScan(h.now()).has_value());
  h.Settle();
  CHECK(h.TakeIds(c) == Ids(2, 2));
  CHECK(h.core().books().tokens().size() == 2);
  h.Restart();
  h.Pass(10'100);
  CHECK(h.core().books().tokens().size() == 0);
}

TEST_CASE("a closed client's session ends with the close, not with the disconnect") {
  Limits limits;
  limits.output_bytes_max = 10;
  EngineHarness h(limits);
  const ConnectionId c = h.Connect();
  h.Take(c);
  h.driver().socket(c).stuck = true;
  h.Send(c, TokenRequest(5, Method::kRelease, 1) + PlainRequest(6, Method::kPing));
  h.Settle();
  REQUIRE(h.driver().socket(c).closed);
  CHECK_FALSE(
      h.core().books().sessions().at(h.core().books().sessions().by_id().begin()->second).online());
  h.Disconnect(c);
}

TEST_CASE("a flood of listings yields to others at the end of each turn") {
  EngineHarness h({}, {{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000}});
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequests(1, 1000));
  h.Settle();
  h.TakeIds(c);
  h.Send(c, TokenPageRequests(1, 40));
  CHECK_FALSE(h.driver().socket(c).reading);
  CHECK(h.engine().NextDeadline() <= h.now());
  std::vector<uint32_t> all;
  int turns = 0;
  for (; all.size() < 40; ++turns) {
    REQUIRE(turns < 100);
    h.Turn();
    const size_t bytes = h.driver().socket(c).written.size();
    CHECK(bytes > 0);
    CHECK(bytes < 600 * 1024);
    for (const uint32_t id : h.TakeIds(c)) all.push_back(id);
  }
  CHECK(turns >= 10);
  CHECK(all == Ids(1, 40));
  h.Settle();
  CHECK(h.driver().socket(c).reading);
  CHECK(h.engine().NextDeadline() > h.now());
}

TEST_CASE("listings that wait for a commit yield too and are all answered") {
  EngineHarness h({}, {{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000}});
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequests(1, 1000));
  h.Settle();
  h.TakeIds(c);
  h.Send(c, AcquireRequest(1, 1));
  h.Send(c, TokenPageRequests(2, 12));
  CHECK_FALSE(h.driver().socket(c).reading);
  h.Turn();
  CHECK(h.driver().socket(c).written.empty());
  h.Settle();
  CHECK(h.TakeIds(c) == Ids(1, 12));
  CHECK(h.driver().socket(c).reading);
}

TEST_CASE("requests that a paused client has sent are not forgotten when the engine goes idle") {
  EngineHarness h({}, {{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000}});
  const ConnectionId c = h.Connect();
  h.Send(c, AcquireRequests(1, 1000));
  h.Settle();
  h.TakeIds(c);
  h.Send(c, TokenPageRequests(1, 8));
  h.engine().TurnEnd();
  CHECK_FALSE(h.engine().idle());  // Answers are still due to what has been received.
  h.Settle();
  CHECK(h.TakeIds(c) == Ids(1, 8));
}

}  // namespace
}  // namespace nowcalls::engine
