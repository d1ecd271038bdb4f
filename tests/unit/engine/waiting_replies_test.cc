// Invariant 8 while the disk stalls: what waits for a commit is bounded over all connections, those
// who ask for little go on, and nobody is closed for it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/engine_harness.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::AcquireRequests;
using testing::EngineHarness;
using testing::Ids;
using testing::PlainRequest;
using testing::TokenPageRequests;
using testing::TokenRequest;
using wire::Method;

constexpr size_t kTotalMax = 2 * 1024 * 1024;
constexpr size_t kShare = kTotalMax / 4;

Limits SmallTotal() {
  Limits limits;
  limits.output_total_bytes_max = kTotalMax;
  return limits;
}

// A thousand tokens are out, one by one's own acquire is being committed, and the disk takes its
// time: replies that depend on it wait.
struct StalledDisk {
  explicit StalledDisk(const Limits& limits = SmallTotal())
      : h(limits, {{.flow = 1, .count = 1e6, .resource_timeout_ms = 600'000}}),
        holder(h.Connect("127.0.0.1:1")) {
    h.Send(holder, AcquireRequests(1, 1000));
    h.Settle();
    h.TakeIds(holder);
    h.Send(holder, TokenPageRequests(1, 1));
    h.Settle();
    page = h.driver().socket(holder).written.size();
    h.TakeIds(holder);
    h.Send(holder, AcquireRequest(1, 1));
    REQUIRE(h.BeginCommit());
  }

  std::vector<ConnectionId> ConnectMany(int count) {
    std::vector<ConnectionId> ids;
    while (count-- > 0) ids.push_back(h.Connect("127.0.0.1:" + std::to_string(100 + count)));
    return ids;
  }

  void Turns(int count) {
    while (count-- > 0) h.Turn();
  }

  // The first batch is on the disk: how many bytes had waited for it.
  size_t Finish(const std::vector<ConnectionId>& ids) {
    h.FinishCommit();
    h.engine().TurnEnd();
    size_t bytes = 0;
    for (const ConnectionId id : ids) bytes += h.driver().socket(id).written.size();
    return bytes;
  }

  EngineHarness h;
  ConnectionId holder;
  size_t page = 0;
};

TEST_CASE("listings that wait for a commit have a bound together, and the rest wait in line") {
  StalledDisk disk;
  EngineHarness& h = disk.h;
  const auto ids = disk.ConnectMany(100);
  REQUIRE(100 * disk.page > 2 * kTotalMax);
  for (const ConnectionId id : ids) h.Send(id, TokenPageRequests(1, 1));
  disk.Turns(50);

  const ConnectionId honest = h.Connect("127.0.0.1:2");
  h.Send(honest, AcquireRequests(1, 50));
  CHECK(h.core().books().tokens().size() == 1051);
  h.Send(honest, PlainRequest(51, Method::kInfo));
  h.Turn();
  CHECK(h.TakeIds(honest) == Ids(51, 51));
  CHECK(h.engine().input_held());
  CHECK(h.engine().NextDeadline() > h.now());  // Only the disk can bring news.

  const size_t waited = disk.Finish(ids);
  CHECK(waited >= kShare);
  CHECK(waited <= kShare + disk.page);
  h.Settle();
  CHECK(h.TakeIds(honest) == Ids(1, 50));
  for (const ConnectionId id : ids) {
    CHECK(h.TakeIds(id) == Ids(1, 1));
    CHECK(h.driver().socket(id).reading);
    CHECK_FALSE(h.driver().socket(id).closed);
  }
  CHECK(h.driver().TakeLog().empty());
  CHECK_FALSE(h.engine().input_held());
}

TEST_CASE("a turn has its bound for those who waited for a commit and go on with other requests") {
  StalledDisk disk;
  EngineHarness& h = disk.h;
  for (const ConnectionId id : disk.ConnectMany(30)) h.Send(id, TokenPageRequests(1, 1));
  disk.Turns(50);
  wire::OutputBuffer flow;
  wire::EncodeFlowRequest(1, {1}, &flow);
  std::string requests(flow.view());
  for (uint32_t i = 2; i < 400; ++i) requests += PlainRequest(i, Method::kPing);
  const auto many = disk.ConnectMany(600);
  for (const ConnectionId id : many) {
    h.Send(id, requests);
    h.Turn();
  }
  disk.Turns(50);
  const auto answered = [&] {
    size_t count = 0;
    for (const ConnectionId id : many) count += h.TakeIds(id).size();
    return count;
  };
  h.FinishCommit();
  answered();
  size_t in_all = 0;
  for (int turn = 0; turn < 3; ++turn) {
    h.engine().ResumeInput(h.now());
    h.engine().TurnEnd();
    const size_t in_turn = answered();
    CHECK(in_turn <= 10'000);
    in_all += in_turn;
  }
  CHECK(in_all > 5'000);
}

TEST_CASE("replies that wait for a commit leave each connection its part, however small they are") {
  Limits limits = SmallTotal();
  limits.output_total_bytes_max = 64 * 1024;
  limits.connections_max = 102;
  StalledDisk disk(limits);
  EngineHarness& h = disk.h;
  const size_t share = limits.output_total_bytes_max / 4;
  const size_t part = share / limits.connections_max;
  std::string keeps;
  for (uint32_t id = 1; id <= 400; ++id) keeps += TokenRequest(id, Method::kKeep, id);
  const auto ids = disk.ConnectMany(100);
  for (const ConnectionId id : ids) h.Send(id, keeps);
  disk.Turns(50);
  const ConnectionId honest = h.Connect("127.0.0.1:2");
  h.Send(honest, AcquireRequests(1, 4));
  CHECK(h.core().books().tokens().size() == 1005);
  CHECK(h.engine().NextDeadline() > h.now());

  constexpr size_t kReplyMax = 16;
  const size_t waited = disk.Finish(ids);
  CHECK(waited >= 2 * share);
  CHECK(waited <= 2 * share + 100 * (part + kReplyMax));
  h.Settle();
  CHECK(h.TakeIds(honest) == Ids(1, 4));
  for (const ConnectionId id : ids) {
    CHECK(h.TakeIds(id) == Ids(1, 400));
    CHECK(h.driver().socket(id).reading);
  }
  CHECK(h.driver().TakeLog().empty());
}

TEST_CASE("what a client asks behind a listing that waits is done behind it") {
  StalledDisk disk;
  EngineHarness& h = disk.h;
  const auto ids = disk.ConnectMany(20);
  const std::string requests = TokenPageRequests(1, 1) + AcquireRequest(2, 1) +
                               PlainRequest(3, Method::kPing) + TokenPageRequests(4, 4);
  for (const ConnectionId id : ids) h.Send(id, requests);
  disk.Turns(20);
  const uint32_t done = h.core().books().tokens().size() - 1001;
  CHECK(done >= 1);
  CHECK(done < 10);
  for (const ConnectionId id : ids) {
    const bool pinged = !h.TakeIds(id).empty();
    CHECK(pinged == (id < ids[done]));  // They came in this order.
  }
  h.Settle();
  for (const ConnectionId id : ids) CHECK(h.TakeIds(id).size() == (id < ids[done] ? 3 : 4));
  CHECK(h.core().books().tokens().size() == 1021);
}

TEST_CASE("who waits to list while the disk stalls is before those who come later") {
  StalledDisk disk;
  EngineHarness& h = disk.h;
  const auto first = disk.ConnectMany(40);
  for (const ConnectionId id : first) h.Send(id, TokenPageRequests(1, 1));
  disk.Turns(10);
  size_t answered = 0;
  const auto count = [&](const std::vector<ConnectionId>& ids) {
    size_t replies = 0;
    for (const ConnectionId id : ids) replies += h.TakeIds(id).size();
    return replies;
  };
  for (int commits = 0; answered < first.size(); ++commits) {
    REQUIRE(commits < 20);
    const auto later = disk.ConnectMany(10);
    for (const ConnectionId id : later) h.Send(id, TokenPageRequests(1, 1));
    h.Send(disk.holder, AcquireRequest(2, 1));
    disk.Turns(10);
    h.BeginCommit();
    if (h.driver().commit != nullptr) h.FinishCommit();
    h.engine().TurnEnd();
    const size_t more = count(first);
    CHECK(more > 0);
    answered += more;
    if (answered < first.size()) CHECK(count(later) == 0);
  }
  h.Settle();
}

TEST_CASE("more who wait to list than a turn moves are answered in their order") {
  StalledDisk disk;
  EngineHarness& h = disk.h;
  const auto ids = disk.ConnectMany(1500);
  for (const ConnectionId id : ids) h.Send(id, TokenPageRequests(1, 1));
  size_t answered = 0;
  for (int commits = 0; commits < 30; ++commits) {
    h.Send(disk.holder, AcquireRequest(2, 1));
    disk.Turns(1);
    h.BeginCommit();
    if (h.driver().commit != nullptr) h.FinishCommit();
    h.engine().TurnEnd();
    while (answered < ids.size() && !h.TakeIds(ids[answered]).empty()) ++answered;
    for (size_t i = answered; i < ids.size(); ++i) REQUIRE(h.TakeIds(ids[i]).empty());
  }
  CHECK(answered > 0);
  h.Settle();
}

TEST_CASE("replies whose connections are gone wait for no commit") {
  StalledDisk disk;
  EngineHarness& h = disk.h;
  for (int i = 0; i < 100; ++i) {
    const ConnectionId id = h.Connect("127.0.0.1:2");
    h.Send(id, TokenPageRequests(1, 1));
    h.Turn();
    REQUIRE_FALSE(h.engine().input_held());
    h.Disconnect(id);
  }
  const auto ids = disk.ConnectMany(20);
  for (const ConnectionId id : ids) h.Send(id, TokenPageRequests(1, 1));
  disk.Turns(10);
  CHECK(h.engine().input_held());
  for (const ConnectionId id : ids) h.Disconnect(id);
  CHECK_FALSE(h.engine().input_held());
  h.Settle();
  CHECK(h.TakeIds(disk.holder) == Ids(1, 1));
}

TEST_CASE("beside replies that peers do not read fewer wait for the disk, and nobody is closed") {
  StalledDisk disk;
  EngineHarness& h = disk.h;
  h.FinishCommit();
  h.Settle();
  size_t kept = 0;
  for (const ConnectionId id : disk.ConnectMany(100)) {
    if (kept + 3 * disk.page > kTotalMax) break;
    h.driver().socket(id).stuck = true;
    h.Send(id, TokenPageRequests(1, 1));
    h.Settle();
    kept += h.driver().socket(id).kept;
  }
  h.Send(disk.holder, AcquireRequest(2, 1));
  REQUIRE(h.BeginCommit());
  const auto ids = disk.ConnectMany(20);
  for (const ConnectionId id : ids) h.Send(id, TokenPageRequests(1, 1));
  for (const ConnectionId id : ids) h.driver().socket(id).stuck = true;
  disk.Turns(20);
  CHECK(disk.Finish(ids) <= kTotalMax - kept);
  CHECK(h.driver().TakeLog().empty());
}

}  // namespace
}  // namespace nowcalls::engine
