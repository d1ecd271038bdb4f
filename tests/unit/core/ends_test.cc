// Which ends of tokens the history tells of, and that it survives what the ledger survives.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "core/books.h"
#include "core/loading.h"
#include "support/core_harness.h"
#include "support/only_flow.h"

namespace nowcalls::core {
namespace {

using ledger::HistoryEntry;
using testing::CoreHarness;
using testing::HarnessOptions;
using testing::HistoryOf;
using testing::LoadCore;
using testing::ReadLedger;

// "1 admin, 2 client_offline": numbers and reasons, oldest first, in memory and in the ledger.
std::string Ends(CoreHarness* h) {
  const auto text = [](const auto& entries) {
    std::string all;
    for (const HistoryEntry& entry : entries) {
      all += (all.empty() ? "" : ", ") + std::to_string(entry.sequence) + " " +
             std::string(EndReasonName(entry.reason));
    }
    return all;
  };
  CHECK(text(HistoryOf(h->core())) == text(ReadLedger(&h->store()).history));
  return text(HistoryOf(h->core()));
}

CoreOptions WithHistory(uint32_t entries_max) {
  CoreOptions options = HarnessOptions();
  options.limits.history_max = entries_max;
  return options;
}

const AdminAct kEndingAct{"127.0.0.1:9", "stuck"};

TEST_CASE("a release in time leaves no entry, a late one does") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  h.Release(a, h.Take(a, 1));
  CHECK(Ends(&h) == "");
  const TokenId late = h.Take(a, 1);
  h.Sleep(2001);
  h.Release(a, late);
  CHECK(Ends(&h) == "1 released_late");
  CHECK(h.Ended(1, EndReason::kReleased) == 1);
  CHECK(h.Ended(1, EndReason::kReleasedLate) == 1);
}

TEST_CASE("an entry tells all that was known of the token") {
  CoreHarness h;
  h.Rules({{.flow = 7}}, "shop");
  const SessionSlot a = h.Hello("a", "orders");
  h.Take(a, 7);
  const AcquireAnswer token = h.Acquire(a, 7, 3);
  const int64_t issued_ms = h.now().ms;
  h.Sleep(1234);
  REQUIRE(h.core().Reclaim(h.step(), token.token_id, {"10.0.0.1:5", "hung job"}) ==
          TokenStatus::kReleaseOk);
  h.Commit();
  HistoryEntry expected;
  expected.sequence = 1;
  expected.ended_ms = issued_ms + 1234;
  expected.reason = EndReason::kAdmin;
  expected.token_id = token.token_id;
  expected.flow = FlowId(7);
  expected.session = h.core().books().sessions().at(a).id;
  expected.count = 3;
  expected.fence = token.fence;
  expected.issued_ms = issued_ms;
  expected.name_space = "orders";
  expected.client_id = "a";
  expected.note = "hung job";
  REQUIRE(ReadLedger(&h.store()).history.size() == 1);
  CHECK(ReadLedger(&h.store()).history[0] == expected);
  CHECK(HistoryOf(h.core())[0] == expected);
}

TEST_CASE("tokens of absent clients and timed out ones leave entries with their reasons") {
  CoreHarness h;
  h.Rules({{.flow = 1, .client_offline_ms = 500}});
  const SessionSlot a = h.Hello("a");
  const SessionSlot gone = h.HelloUnnamed("@127.0.0.1:77");
  h.Take(gone, 1);
  h.Take(a, 1);
  h.Goodbye(gone);
  h.Pass(600);
  CHECK(Ends(&h) == "1 client_offline");
  CHECK(HistoryOf(h.core())[0].client_id == "@127.0.0.1:77");
  CHECK(HistoryOf(h.core())[0].note == "");
  h.Pass(4000);
  CHECK(Ends(&h) == "1 client_offline, 2 resource_timeout");
  CHECK(h.Ended(1, EndReason::kClientOffline) == 1);
  CHECK(h.Ended(1, EndReason::kResourceTimeout) == 1);
}

TEST_CASE("the end of a flow's last token leaves its entry, though the flow goes with it") {
  CoreHarness h;
  h.Rules({{.flow = 1}, {.flow = 2}});
  const SessionSlot a = h.Hello("a");
  h.Take(a, 1);
  h.Take(a, 2);
  h.Rules({{.flow = 2}});
  REQUIRE(h.core().Purge(h.step(), FlowId(1), 10, kEndingAct).ok());
  h.Commit();
  CHECK(OnlyFlow(h.core().flows(), 1) == kNoFlow);
  CHECK(Ends(&h) == "1 rule_removed");
  CHECK(HistoryOf(h.core())[0].flow == FlowId(1));
}

TEST_CASE("the history is the same after a restart and goes on with the next number") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 3; ++i) h.Reclaim(h.Take(a, 1));
  const auto before = ReadLedger(&h.store()).history;
  h.Restart();
  CHECK(ReadLedger(&h.store()).history == before);
  h.Reclaim(h.Take(h.Hello("a"), 1));
  CHECK(Ends(&h) == "1 admin, 2 admin, 3 admin, 4 admin");
}

TEST_CASE("an end that a crash takes back is in the history no more") {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const TokenId token = h.Take(h.Hello("a"), 1);
  h.auto_commit = false;
  h.Reclaim(token);
  REQUIRE(h.core().books().history().size() == 1);
  h.Restart();
  CHECK(h.IsLive(token));
  CHECK(Ends(&h) == "");
  h.Reclaim(token);
  h.Commit();
  CHECK(Ends(&h) == "1 admin");
}

TEST_CASE("the history is bounded, and a smaller bound at start drops what is too much") {
  CoreHarness h(WithHistory(3));
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 5; ++i) h.Reclaim(h.Take(a, 1));
  CHECK(Ends(&h) == "3 admin, 4 admin, 5 admin");

  Core smaller(WithHistory(1));
  REQUIRE(LoadCore(&h.store(), h.now(), &smaller).ToString() == "ok");
  ledger::CommitBatch batch;
  REQUIRE(smaller.NextDeadline() <= h.now());
  smaller.OnTime({h.now(), &batch});
  CHECK(smaller.NextDeadline() > h.now());
  smaller.Seal({h.now(), &batch}, ClockSample{});
  REQUIRE(h.store().Commit(batch).ok());
  REQUIRE(ReadLedger(&h.store()).history.size() == 1);
  CHECK(ReadLedger(&h.store()).history[0].sequence == 5);
  CHECK(smaller.books().history().size() == 1);
}

TEST_CASE("a server without a history drops what one before it kept, and adds nothing") {
  CoreHarness h(WithHistory(100));
  h.Rules({{.flow = 1, .count = 10}});
  const SessionSlot a = h.Hello("a");
  for (int i = 0; i < 5; ++i) h.Reclaim(h.Take(a, 1));
  const TokenId token = h.Take(a, 1);

  Core none(WithHistory(0));
  REQUIRE(LoadCore(&h.store(), h.now(), &none).ToString() == "ok");
  ledger::CommitBatch batch;
  none.OnTime({h.now(), &batch});
  REQUIRE(none.Reclaim({h.now(), &batch}, token, kEndingAct) == TokenStatus::kReleaseOk);
  none.Seal({h.now(), &batch}, ClockSample{});
  REQUIRE(h.store().Commit(batch).ok());
  CHECK(ReadLedger(&h.store()).history.empty());
  CHECK(ReadLedger(&h.store()).tokens.empty());
}

TEST_CASE("a great surplus is dropped in blocks, until they have a thousand entries") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 10'000}});
  const SessionSlot a = h.Hello("a");
  h.auto_commit = false;
  for (int i = 0; i < 2500; ++i) h.Reclaim(h.Take(a, 1));
  h.Commit();
  Core none(WithHistory(0));
  REQUIRE(LoadCore(&h.store(), h.now(), &none).ToString() == "ok");
  ledger::CommitBatch batch;
  for (const size_t left : {2500 - 4 * 256, 2500 - 8 * 256, 0}) {
    CHECK(none.NextDeadline() <= h.now());
    none.OnTime({h.now(), &batch});
    CHECK(none.books().history().size() == left);
  }
  CHECK(none.NextDeadline() > h.now());
}

// What a core says to a ledger whose one history entry was changed.
std::string LoadError(const std::function<void(HistoryEntry*)>& change) {
  CoreHarness h;
  h.Rules({{.flow = 1}});
  const SessionSlot a = h.Hello("a");
  const AcquireAnswer live = h.Acquire(a, 1);
  h.Reclaim(h.Take(a, 1));
  Core core(HarnessOptions());
  const testing::LedgerContent content = ReadLedger(&h.store());
  for (const auto& rule : content.rules) REQUIRE(core.loading().LoadRule(rule).ok());
  for (const auto& session : content.sessions) REQUIRE(core.loading().LoadSession(session).ok());
  HistoryEntry entry = content.history.at(0);
  if (entry.fence.value == live.fence.value) return "the wrong token";
  change(&entry);
  REQUIRE(core.loading().LoadHistory({entry}).ok());
  for (const auto& token : content.tokens) REQUIRE(core.loading().LoadToken(token).ok());
  return core.FinishLoad(content.seal).ToString();
}

TEST_CASE("a history that cannot be true is refused at start") {
  CHECK(LoadError([](HistoryEntry*) {}) == "ok");
  CHECK(LoadError([](HistoryEntry* entry) {
          entry->token_id.value ^= 1;
        }).find("has an id that does not belong to fence 3") != std::string::npos);
  CHECK(LoadError([](HistoryEntry* entry) {
          entry->session.value = 4;
        }).find("has a fence or session number that is not below the sealed bound 4") !=
        std::string::npos);
  CHECK(LoadError([](HistoryEntry* entry) {
          entry->fence = Fence(2);
          entry->token_id = TokenIds(HarnessOptions().token_id_key).FromFence(Fence(2));
        }).find("tells of its end, but the token is live") != std::string::npos);
}

}  // namespace
}  // namespace nowcalls::core
