// Very many tokens that are due at once: they are spread over batches, and hold nobody up.
#include <doctest/doctest.h>

#include <vector>

#include "support/engine_harness.h"

namespace nowcalls::engine {
namespace {

using testing::AcquireRequest;
using testing::AcquireRequests;
using testing::EngineHarness;
using testing::HelloRequest;
using testing::Ids;

constexpr uint32_t kTokens = 20'000;
constexpr uint32_t kDuePerMs = 700;

// Of flow 1, all due and more than 10,000 of them left, of which none may end at this moment;
// `away`: because their client is gone, otherwise because nobody kept them. The open batch is new.
void MakeTokensDue(EngineHarness* h, bool away) {
  const ConnectionId c = h->Connect();
  h->Send(c, HelloRequest(1, "default", "client"));
  for (uint32_t first = 1; first <= kTokens; first += 1000) {
    h->Send(c, AcquireRequests(first, first + 999));
    h->Settle();
  }
  REQUIRE(h->core().books().tokens().size() == kTokens);
  if (away) h->Disconnect(c);
  h->Settle();
  h->Sleep(60'000);
  for (int i = 0; i < 20; ++i) h->Turn();
  REQUIRE(h->core().books().tokens().size() > 10'000);
  REQUIRE(h->BeginCommit());
  h->FinishCommit();
}

std::vector<testing::RuleOptions> Rules(bool away) {
  return {{.flow = 1,
           .count = 1e6,
           .resource_timeout_ms = away ? 1'000'000 : 1000,
           .client_offline_ms = away ? 1000 : 1'000'000},
          {.flow = 2, .count = 10}};
}

// How many ended in so many turns.
uint32_t EndedIn(int turns, EngineHarness* h) {
  const uint32_t before = h->core().books().tokens().size();
  for (int i = 0; i < turns; ++i) h->Turn();
  return before - h->core().books().tokens().size();
}

TEST_CASE("so many due tokens end in a millisecond, however many turns and batches it has") {
  for (const bool away : {false, true}) {
    CAPTURE(away);
    EngineHarness h(Limits(), Rules(away));
    MakeTokensDue(&h, away);
    CHECK(EndedIn(10, &h) == 0);
    CHECK(h.engine().NextDeadline() == h.now() + 1);
    h.Sleep(1);
    CHECK(h.engine().NextDeadline() <= h.now());
    CHECK(EndedIn(10, &h) == kDuePerMs);
    CHECK(h.engine().NextDeadline() == h.now() + 1);
    REQUIRE(h.BeginCommit());
    CHECK(EndedIn(10, &h) == 0);
    h.Sleep(3);
    CHECK(EndedIn(20, &h) == 3 * kDuePerMs);
  }
}

TEST_CASE("what a pause has left to end does not end at once") {
  EngineHarness h(Limits(), Rules(true));
  MakeTokensDue(&h, true);
  h.Sleep(10'000);
  CHECK(EndedIn(100, &h) == 5 * kDuePerMs);
  h.Pass(1000);
  CHECK(h.core().books().tokens().size() == 0);
}

TEST_CASE("a batch has a last due token, and the next goes on") {
  EngineHarness h(Limits(), Rules(true));
  MakeTokensDue(&h, true);
  h.Sleep(1);
  CHECK(EndedIn(10, &h) == kDuePerMs);
  REQUIRE(h.BeginCommit());
  uint32_t ended = 0;
  for (int i = 0; i < 30; ++i) {
    h.Sleep(1);
    ended += EndedIn(2, &h);
    CHECK_FALSE(h.BeginCommit());
  }
  CHECK(ended == 4000);
  CHECK(h.engine().NextDeadline() > h.now() + 1000);
  h.FinishCommit();
  CHECK(h.engine().NextDeadline() > h.now() + 1000);
  REQUIRE(h.BeginCommit());
  CHECK(h.engine().NextDeadline() <= h.now());
  CHECK(EndedIn(10, &h) > 0);
}

TEST_CASE("others are granted in the millisecond that has no room for due tokens") {
  EngineHarness h(Limits(), Rules(true));
  MakeTokensDue(&h, true);
  const ConnectionId d = h.Connect("127.0.0.1:2");
  CHECK(EndedIn(10, &h) == 0);
  h.Send(d, AcquireRequest(1, 2));
  REQUIRE(h.BeginCommit());
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(d) == Ids(1, 1));
}

}  // namespace
}  // namespace nowcalls::engine
