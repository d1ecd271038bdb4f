// Replay: a bounded part at a time, and no further than the log is sound.
#include "recovery/replay.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "ledger/commit_batch.h"
#include "store/memory_log.h"
#include "store/memory_tables.h"

namespace nowcalls::recovery {
namespace {

// The bytes of a batch that records nothing but its seal.
std::string BatchBytes(uint64_t number, uint64_t term) {
  ledger::CommitBatch batch;
  batch.Sealed({.batch_number = number, .next_fence = 1, .ledger_ms = 1}, term);
  return std::string(batch.sealed_bytes());
}

// Shows the bytes that it is given, whatever they are.
class ShownLog : public store::MemoryLog {
 public:
  Status Read(uint64_t /*from*/, const BatchSink& sink) override {
    for (const std::string& bytes : shown) {
      const auto batch = ledger::SealedBatch::Parse(bytes);
      if (!batch.ok()) return batch.status();
      NOWCALLS_RETURN_IF_ERROR(sink(*batch));
    }
    return {};
  }

  std::vector<std::string> shown;
};

TEST_CASE("so many batches are applied as are asked for, and tells whether there are more") {
  store::MemoryLog log;
  store::MemoryTables tables{ledger::Format{}};
  for (uint64_t number = 1; number <= 5; ++number) {
    const std::string bytes = BatchBytes(number, number / 3);
    REQUIRE(log.Append(ledger::SealedBatch::Parse(bytes).value()).ok());
  }
  Replay replay(&log, &tables);
  CHECK(replay.Apply(2).value());
  CHECK(tables.applied() == 2);
  CHECK(replay.term() == 0);
  CHECK_FALSE(replay.Apply(3).value());
  CHECK(tables.applied() == 5);
  CHECK(replay.term() == 1);
  CHECK_FALSE(replay.Apply(0).value());
}

TEST_CASE("a batch that cannot follow is refused, and the tables stay as they are") {
  ShownLog log;
  store::MemoryTables tables{ledger::Format{}};
  log.shown = {BatchBytes(1, 4), BatchBytes(2, 4)};
  std::string why;
  SUBCASE("behind a gap") {
    log.shown.push_back(BatchBytes(4, 4));
    why = "the log lacks batch 3: it shows batch 4 in its place";
  }
  SUBCASE("that is shown twice") {
    log.shown.push_back(BatchBytes(2, 4));
    why = "the log lacks batch 3: it shows batch 2 in its place";
  }
  SUBCASE("of a writer that was deposed") {
    log.shown.push_back(BatchBytes(3, 3));
    why =
        "batch 3 of the log has term 3, behind one of term 4: a writer that was deposed has "
        "written to the log";
  }
  SUBCASE("whose bytes were changed") {
    log.shown.push_back(BatchBytes(3, 4));
    log.shown.back().back() ^= 1;
    why = "a sealed batch is damaged: its sum is another";
  }
  const Result<bool> applied = Replay(&log, &tables).Apply(10);
  REQUIRE_FALSE(applied.ok());
  CHECK(applied.status().code() == StatusCode::kCorruption);
  CHECK(applied.status().message() == why);
  CHECK(tables.applied() == 2);
}

TEST_CASE("a batch that the log has forgotten is not passed over") {
  store::MemoryLog log;
  store::MemoryTables tables{ledger::Format{}};
  for (uint64_t number = 1; number <= 3; ++number) {
    const std::string bytes = BatchBytes(number, 0);
    REQUIRE(log.Append(ledger::SealedBatch::Parse(bytes).value()).ok());
  }
  REQUIRE(log.Trim(1).ok());
  const Result<bool> applied = Replay(&log, &tables).Apply(10);
  REQUIRE_FALSE(applied.ok());
  CHECK(applied.status().code() == StatusCode::kFailedPrecondition);
  CHECK(tables.applied() == 0);
}

}  // namespace
}  // namespace nowcalls::recovery
