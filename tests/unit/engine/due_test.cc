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

constexpr uint32_t kTokens = 10'000;
// What a batch takes in the millisecond in which it was opened.
constexpr uint32_t kDueAtOnce = 700;

// Of flow 1, all due, and a batch that has just been opened; `away`: because their client is gone,
// otherwise because nobody kept them.
void MakeTokensDue(EngineHarness* h, bool away) {
  const ConnectionId c = h->Connect();
  h->Send(c, HelloRequest(1, "default", "client"));
  for (uint32_t first = 1; first <= kTokens; first += 1000) {
    h->Send(c, AcquireRequests(first, first + 999));
    h->Settle();
  }
  REQUIRE(h->core().tokens().size() == kTokens);
  if (away) h->Disconnect(c);
  h->Settle();
  h->Sleep(60'000);
  h->Turn();
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
  const uint32_t before = h->core().tokens().size();
  for (int i = 0; i < turns; ++i) h->Turn();
  return before - h->core().tokens().size();
}

TEST_CASE("a batch takes due tokens by how long it has been open") {
  for (const bool away : {false, true}) {
    CAPTURE(away);
    EngineHarness h(Limits(), Rules(away));
    MakeTokensDue(&h, away);
    CHECK(h.engine().NextDeadline() <= h.now());
    CHECK(EndedIn(10, &h) == kDueAtOnce);
    CHECK(h.engine().NextDeadline() == h.now() + 1);
    h.Sleep(1);
    CHECK(EndedIn(10, &h) == kDueAtOnce);
    h.Sleep(3);
    CHECK(EndedIn(20, &h) == 3 * kDueAtOnce);
    REQUIRE(h.BeginCommit());
    CHECK(h.engine().NextDeadline() <= h.now());
    CHECK(EndedIn(10, &h) == kDueAtOnce);
  }
}

TEST_CASE("a batch that is given back takes no more due tokens than if it had not been begun") {
  EngineHarness h(Limits(), Rules(true));
  MakeTokensDue(&h, true);
  CHECK(EndedIn(10, &h) == kDueAtOnce);
  REQUIRE(h.BeginCommit());
  h.Sleep(1);
  CHECK(EndedIn(10, &h) == 2 * kDueAtOnce);
  REQUIRE(h.BeginCommit());
  CHECK(h.engine().NextDeadline() == h.now() + 1);
  CHECK(EndedIn(10, &h) == 0);
  CHECK(h.driver().commits.size() == 2);
  h.FinishCommit();
  CHECK(h.engine().NextDeadline() <= h.now());
  CHECK(EndedIn(10, &h) == kDueAtOnce);
}

TEST_CASE("a batch has a last due token, however long its commit has to wait") {
  EngineHarness h(Limits(), Rules(true));
  MakeTokensDue(&h, true);
  h.Sleep(10'000);
  const uint32_t ended = EndedIn(100, &h);
  CHECK(ended > 5 * kDueAtOnce);
  CHECK(ended < kTokens - 2 * kDueAtOnce);
  CHECK(h.engine().NextDeadline() > h.now() + 1000);
  h.Settle();
  CHECK(h.core().tokens().size() == 0);
}

TEST_CASE("others are granted in the batch that has no room for due tokens") {
  EngineHarness h(Limits(), Rules(true));
  MakeTokensDue(&h, true);
  const ConnectionId d = h.Connect("127.0.0.1:2");
  CHECK(EndedIn(10, &h) == kDueAtOnce);
  h.Send(d, AcquireRequest(1, 2));
  REQUIRE(h.BeginCommit());
  h.FinishCommit();
  h.Turn();
  CHECK(h.TakeIds(d) == Ids(1, 1));
}

}  // namespace
}  // namespace nowcalls::engine
