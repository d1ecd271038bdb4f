#include "recovery/recovery.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/books.h"
#include "core/core.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_set.h"
#include "core/tables/token_ids.h"
#include "ledger/codec.h"
#include "ledger/fence_line.h"
#include "recovery/machine_clock.h"
#include "store/memory_store.h"

namespace nowcalls::recovery {
namespace {

constexpr int64_t kHourMs = 3'600'000;

ledger::Format TestFormat() {
  ledger::Format format;
  format.token_id_key = {0x0123456789abcdef, 0xfedcba9876543210};
  return format;
}

// Commits one token of one session under one rule through a core of its own.
void Fill(const ClockSample& clock,
          const std::function<Status(const ledger::CommitBatch&)>& commit) {
  core::CoreOptions options;
  options.token_id_key = TestFormat().token_id_key;
  core::Core core(options);
  const Instant now{clock.wall_ms};
  REQUIRE(core.FinishLoad(std::nullopt).ok());
  core.Begin(now);
  ledger::CommitBatch batch;
  const core::Step step{now, &batch};
  const std::string rules = R"([{"resource": "db", "count": 5, "clusterMode": true,
      "clusterConfig": {"flowId": 7, "thresholdType": 1, "resourceTimeout": 600000}}])";
  REQUIRE(core.ReplaceRules(step, core::RefsTo({{"shop", core::ParseRules(rules).value()}})).ok());
  const auto hello = core.Hello(step, {"shop", "client-a", ""});
  REQUIRE(hello.ok());
  const auto answer = core.Acquire(step, hello->session, {.flow = FlowId{7}, .count = 2}, {});
  REQUIRE(answer.has_value());
  REQUIRE(answer->status == TokenStatus::kOk);
  core.Seal(step, clock);
  REQUIRE(commit(batch).ok());
}

void FillStore(store::MemoryStore* store, const ClockSample& clock) {
  Fill(clock, [store](const ledger::CommitBatch& batch) { return store->Commit(batch); });
}

TEST_CASE("a new ledger is recovered as an empty one at wall time") {
  store::MemoryStore store(TestFormat());
  const int64_t before_ms = WallMs();
  Result<RecoveredLedger> ledger = Recover(&store, {});
  REQUIRE(ledger.ok());
  CHECK_FALSE(ledger->time.has_value());
  CHECK(ledger->tokens == 0);
  CHECK(MachineClock(*ledger).Now().ms >= before_ms - kHourMs);
  CHECK(MachineClock(*ledger).Now().ms <= before_ms + kHourMs);
}

TEST_CASE("what was committed is recovered, counted and served") {
  store::MemoryStore store(TestFormat());
  const Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  FillStore(&store, *clock);
  const Result<RecoveredLedger> ledger = Recover(&store, {});
  REQUIRE(ledger.ok());
  CHECK(ledger->tokens == 1);
  CHECK(ledger->sessions == 1);
  CHECK(ledger->rules == 1);
  REQUIRE(ledger->time.has_value());
  CHECK(ledger->time->same_boot);
  CHECK(ledger->core->books().live_count_sum() == 2);
  CHECK(ledger->future.empty());
}

ledger::Format FormatOf(store::MemoryStore* store) {
  return ledger::DecodeFormat(store->rows(ledger::Family::kMeta).find(ledger::kFormatKey)->second)
      .value();
}

void CheckIsRaised(uint32_t version) {
  ledger::Format first = TestFormat();
  first.version = version;
  first.created_wall_ms = 1234;
  store::MemoryStore store(first);
  const Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  FillStore(&store, *clock);
  CHECK(FormatOf(&store).version == version);
  uint32_t records = 0;
  for (const uint32_t found : {version, ledger::kFormatVersion}) {
    Result<RecoveredLedger> ledger = Recover(&store, {});
    REQUIRE(ledger.ok());
    CHECK(ledger->format.version == found);
    CHECK(ledger->tokens == 1);
    ledger::CommitBatch batch;
    ledger->core->Seal({MachineClock(*ledger).Now(), &batch}, *clock);
    REQUIRE(store.Commit(batch).ok());
    CHECK(FormatOf(&store).version == ledger::kFormatVersion);
    CHECK(FormatOf(&store).token_id_key == first.token_id_key);
    CHECK(FormatOf(&store).created_wall_ms == 1234);
    if (found == version) records = batch.records();
    if (found != version) CHECK(batch.records() == records - 1);
    batch.Clear();
    ledger->core->Seal({MachineClock(*ledger).Now(), &batch}, *clock);
    CHECK(batch.records() < records);
  }
}

TEST_CASE("a ledger of an earlier format gets this one with the first batch, and keeps all else") {
  CheckIsRaised(1);
  CheckIsRaised(2);
  CheckIsRaised(3);
}

TEST_CASE("the ledger clock does not go back when the machine's clocks did") {
  store::MemoryStore store(TestFormat());
  Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  clock->wall_ms += 10 * kHourMs;
  clock->boot_id[0] ^= 1;
  FillStore(&store, *clock);
  Result<RecoveredLedger> ledger = Recover(&store, {});
  REQUIRE(ledger.ok());
  CHECK(MachineClock(*ledger).Now().ms >= clock->wall_ms);
  REQUIRE(ledger->time.has_value());
  CHECK_FALSE(ledger->time->same_boot);
  CHECK(ledger->time->clamped);
}

TEST_CASE("after a reboot fences go on behind those that a power cut may have taken") {
  for (const bool rebooted : {false, true}) {
    CAPTURE(rebooted);
    store::MemoryStore store(TestFormat());
    Result<ClockSample> clock = SampleClocks();
    REQUIRE(clock.ok());
    if (rebooted) clock->boot_id[0] ^= 1;
    FillStore(&store, *clock);  // One session and one token.
    const Result<RecoveredLedger> ledger = Recover(&store, {});
    REQUIRE(ledger.ok());
    CHECK(ledger->core->books().next_fence() == (rebooted ? 3 + ledger::kFencesSkippedByBoot : 3));
  }
}

TEST_CASE("a new ledger begins beyond all that another in its place may have given out") {
  store::MemoryStore store(TestFormat());
  Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  const auto first_fence = [&](int64_t wall_ms) {
    clock->wall_ms = wall_ms;
    const Result<RecoveredLedger> ledger = Recover(&store, {}, {.sample = [&] { return clock; }});
    REQUIRE(ledger.ok());
    return ledger->core->books().next_fence();
  };
  CHECK(first_fence(ledger::kFenceLineFromMs + 1000) == 1000 * ledger::kFencesPerMs);
  // A clock that is wrong.
  CHECK(first_fence(ledger::kFenceLineFromMs - 1) == 1);
}

TEST_CASE("what a log has behind the tables is in the core") {
  const Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  store::MemoryLog log;
  store::MemoryTables tables(TestFormat());
  Fill(*clock, [&](const ledger::CommitBatch& batch) { return log.Append(batch); });
  REQUIRE(tables.applied() == 0);
  const Result<RecoveredLedger> ledger = Recover(&log, &tables, {});
  REQUIRE(ledger.ok());
  CHECK(ledger->tokens == 1);
  CHECK(ledger->rules == 1);
  CHECK(tables.applied() == 1);
}

TEST_CASE("a writer seals its term into each batch, whatever settings it reads later") {
  const Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  store::MemoryStore store(TestFormat());
  FillStore(&store, *clock);
  core::CoreOptions options;
  options.term = 7;
  const Result<RecoveredLedger> ledger = Recover(&store, options);
  REQUIRE(ledger.ok());
  ledger::CommitBatch batch;
  ledger->core->Seal({MachineClock(*ledger).Now(), &batch}, *clock);
  CHECK(ledger::SealedBatch(batch).term() == 7);
  batch.Clear();
  ledger->core->SetOptions({});
  ledger->core->Seal({MachineClock(*ledger).Now(), &batch}, *clock);
  CHECK(ledger::SealedBatch(batch).term() == 7);
}

// Of a disk that lost what was not synced, under a machine that went on.
class LossyStore : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  bool MayLackBatches() const override { return true; }
};

TEST_CASE("fences go on behind those of batches that a disk has lost, also on the same boot") {
  LossyStore store(TestFormat());
  Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  FillStore(&store, *clock);
  constexpr int64_t kSinceMarkMs = 5'000;
  clock->boottime_ms += kSinceMarkMs;
  clock->wall_ms = 0;  // Has no say.
  const Result<RecoveredLedger> ledger = Recover(&store, {}, {.sample = [&] { return clock; }});
  REQUIRE(ledger.ok());
  CHECK(ledger->time->same_boot);
  CHECK(ledger->core->books().next_fence() == ledger::FenceAfterLoss(3, kSinceMarkMs));
}

// As a log on other machines.
class OutlivingStore : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  bool OutlivesMachine() const override { return true; }
};

TEST_CASE("fences go on at once where no boot takes batches from the log") {
  OutlivingStore store(TestFormat());
  Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  FillStore(&store, *clock);
  clock->boot_id[0] ^= 1;
  ledger::ObservedTime observed;
  observed.Saw(1, clock->wall_ms + 77, clock->boottime_ms);
  const Result<RecoveredLedger> ledger =
      Recover(&store, {}, {.sample = [&] { return clock; }, .observed = observed});
  REQUIRE(ledger.ok());
  CHECK(ledger->time->observed);
  CHECK(ledger->time->now.ms == clock->wall_ms + 77);
  CHECK(ledger->core->books().next_fence() == 3);
}

TEST_CASE("after a reboot fences do not cross the line from which a restore would go on") {
  store::MemoryStore store(TestFormat());
  Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  ledger::CommitBatch batch;
  batch.ClockMarked({clock->wall_ms, *clock});
  const uint64_t next = ledger::FenceLine(clock->wall_ms) - 5;
  batch.Sealed({.batch_number = 1, .next_fence = next, .ledger_ms = clock->wall_ms});
  REQUIRE(store.Commit(batch).ok());
  clock->boot_id[0] ^= 1;
  const auto sample = [&] { return clock; };
  const Result<RecoveredLedger> ledger = Recover(&store, {}, {.sample = sample});
  REQUIRE(ledger.ok());
  CHECK(ledger->core->books().next_fence() == next + 5);
}

TEST_CASE("a ledger whose tokens do not add up to its seal is refused as corrupt") {
  store::MemoryStore store(TestFormat());
  const Result<ClockSample> clock = SampleClocks();
  REQUIRE(clock.ok());
  FillStore(&store, *clock);
  ledger::CommitBatch batch;
  batch.ClockMarked({clock->wall_ms, *clock});
  batch.Sealed({.batch_number = 2, .next_fence = 100, .ledger_ms = clock->wall_ms});
  REQUIRE(store.Commit(batch).ok());
  const Result<RecoveredLedger> ledger = Recover(&store, {});
  REQUIRE_FALSE(ledger.ok());
  CHECK(ledger.status().code() == StatusCode::kCorruption);
}

// What FillStore has written, and behind it what a server left that had followed its boot clock
// back by `back_ms`: all that it tells of is that much later than its last batch. The deadline of
// its second token has passed.
void SetBack(store::MemoryStore* store, const ClockSample& clock, int64_t back_ms) {
  const core::TokenIds ids(TestFormat().token_id_key);
  const int64_t late_ms = clock.wall_ms + back_ms;
  ledger::CommitBatch batch;
  batch.ClockMarked({late_ms, clock});
  batch.SessionOpened({SessionId(3), ledger::SessionKind::kNamed, late_ms, "shop", "client-b"});
  ledger::Token token;
  token.key = {ledger::Family::kTokensLong, late_ms + 1'200'000, ids.FromFence(Fence(4))};
  token.flow = FlowId(7);
  token.session = SessionId(3);
  token.count = 1;
  token.issued_ms = late_ms;
  token.fence = Fence(4);
  batch.TokenIssued(token);
  token.key = {ledger::Family::kTokensLong, clock.wall_ms - 1, ids.FromFence(Fence(7))};
  token.issued_ms = clock.wall_ms - 1;
  token.fence = Fence(7);
  batch.TokenIssued(token);
  std::vector<ledger::HistoryEntry> ends(2);
  for (size_t i = 0; i < ends.size(); ++i) {
    ends[i].sequence = i + 1;
    ends[i].fence = Fence(5 + i);
    ends[i].token_id = ids.FromFence(ends[i].fence);
    ends[i].flow = FlowId(7);
    ends[i].session = SessionId(3);
    ends[i].count = 1;
    ends[i].reason = EndReason::kAdmin;
    ends[i].issued_ms = clock.wall_ms - 1;
    ends[i].ended_ms = i == 0 ? late_ms : clock.wall_ms;
    ends[i].name_space = "shop";
    ends[i].client_id = "client-b";
  }
  batch.HistoryAdded(ends);
  batch.RateSet({{FlowId(7), late_ms}, 5, 0});
  batch.WatermarkRaised(late_ms);
  batch.Sealed({.batch_number = 2,
                .next_fence = 100,
                .ledger_ms = clock.wall_ms,
                .live_tokens = 3,
                .live_count_sum = 4,
                .live_fence_sum = 2 + 4 + 7});
  REQUIRE(store->Commit(batch).ok());
}

TEST_CASE(
    "a ledger that tells of the future is served, with one warning that names what is first") {
  for (const int64_t back_ms : {int64_t{1}, int64_t{2'400'000}, 10'000 * kHourMs}) {
    CAPTURE(back_ms);
    store::MemoryStore store(TestFormat());
    Result<ClockSample> clock = SampleClocks();
    REQUIRE(clock.ok());
    FillStore(&store, *clock);
    SetBack(&store, *clock, back_ms);
    Result<RecoveredLedger> ledger = Recover(&store, {}, {.sample = [&] { return clock; }});
    REQUIRE(ledger.ok());
    CHECK(ledger->tokens == 3);
    CHECK(ledger->future.find("session 3 was opened by " + std::to_string(back_ms) +
                              " ms behind the last batch, and 4 more times after it") !=
          std::string::npos);
    // The clock goes on where the last batch was, or calls would be out of time at once.
    CHECK(ledger->clock.At(clock->boottime_ms).ms == clock->wall_ms);
    for (const ledger::HistoryBlock& block : ledger->core->books().history().blocks()) {
      for (const ledger::HistoryEntry& entry : block) CHECK(entry.ended_ms <= clock->wall_ms);
    }
    // What is written from here on is sound.
    ledger::CommitBatch batch;
    ledger->core->Seal({MachineClock(*ledger).Now(), &batch}, *clock);
    REQUIRE(store.Commit(batch).ok());
    CHECK(Recover(&store, {}, {.sample = [&] { return clock; }}).ok());
  }
}

}  // namespace
}  // namespace nowcalls::recovery
