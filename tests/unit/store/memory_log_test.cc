// MemoryLog and MemoryTables: the halves of a store apart, as a log elsewhere has them.
#include "store/memory_log.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ledger/commit_batch.h"
#include "store/memory_tables.h"
#include "unit/store/ledger_script.h"

namespace nowcalls::store {
namespace {

using ledger::CommitBatch;
using ledger::SealedBatch;

// A log of `batches` batches; `tables` have the first `applied` of them.
struct Halves {
  Halves(int batches, int applied) {
    for (int i = 0; i < batches; ++i) {
      CommitBatch batch;
      script.NextBatch(30, &batch);
      REQUIRE(log.Append(batch).ok());
      if (i < applied) REQUIRE(tables.Apply(batch).ok());
    }
  }
  std::vector<uint64_t> NumbersFrom(uint64_t from) {
    std::vector<uint64_t> numbers;
    const Status read = log.Read(from, [&](const SealedBatch& batch) {
      numbers.push_back(batch.number());
      return Status::Ok();
    });
    REQUIRE_MESSAGE(read.ok(), read.ToString());
    return numbers;
  }
  Status Replay() {
    return log.Read(tables.applied() + 1,
                    [&](const SealedBatch& batch) { return tables.Apply(batch); });
  }

  LedgerScript script{11};
  MemoryLog log;
  MemoryTables tables{ledger::Format{}};
};

TEST_CASE("tables that are behind a log have all of it once it is replayed") {
  for (const int applied : {0, 1, 7, 8}) {
    CAPTURE(applied);
    Halves halves(8, applied);
    REQUIRE(halves.Replay().ok());
    CHECK(halves.tables.applied() == 8);
    CHECK(DifferenceOf(DumpOf(&halves.tables), halves.script.Expected()) == "");
  }
}

TEST_CASE("a batch that tables have already changes nothing") {
  Halves halves(3, 3);
  REQUIRE(halves.log.Read(1, [&](const SealedBatch& batch) { return halves.tables.Apply(batch); })
              .ok());
  CHECK(halves.tables.applied() == 3);
  CHECK(DifferenceOf(DumpOf(&halves.tables), halves.script.Expected()) == "");
}

TEST_CASE("neither half takes a batch behind a gap") {
  Halves halves(2, 2);
  CommitBatch skipped;
  CommitBatch next;
  halves.script.NextBatch(1, &skipped);
  halves.script.NextBatch(1, &next);
  for (const Status& refused : {halves.log.Append(next), halves.tables.Apply(next)}) {
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK(refused.message() == "batch 4 does not follow batch 2");
  }
  CHECK(halves.log.last() == 2);
  CHECK(halves.tables.applied() == 2);
}

TEST_CASE("a log shows what it has not trimmed, and says so of the rest") {
  Halves halves(5, 5);
  REQUIRE(halves.log.Trim(2).ok());
  CHECK(halves.NumbersFrom(3) == std::vector<uint64_t>{3, 4, 5});
  CHECK(halves.NumbersFrom(6).empty());
  const Status trimmed = halves.log.Read(2, [](const SealedBatch&) { return Status::Ok(); });
  CHECK(trimmed.code() == StatusCode::kFailedPrecondition);
  CHECK(trimmed.message() == "the log begins with batch 3, behind batch 2");
  REQUIRE(halves.log.Trim(5).ok());
  CHECK(halves.log.last() == 5);
}

TEST_CASE("a log that was cut goes on behind what is left") {
  Halves halves(3, 1);
  halves.log.Cut(2);
  CHECK(halves.NumbersFrom(1) == std::vector<uint64_t>{1, 2});
  CommitBatch batch;
  halves.script.NextBatch(1, &batch);
  CHECK(halves.log.Append(batch).code() == StatusCode::kInvalidArgument);
  REQUIRE(halves.Replay().ok());
  CHECK(halves.tables.applied() == 2);
}

TEST_CASE("records that are none leave tables as they were") {
  MemoryTables tables{ledger::Format{}};
  CommitBatch batch;
  LedgerScript(3).NextBatch(5, &batch);
  std::string bytes(batch.sealed_bytes());
  bytes[ledger::kSealedBatchHeaderBytes] = '\x7f';  // A type that no record has.
  ledger::SealBytes(batch.number(), 0, bytes.data(), bytes.size());
  const Result<SealedBatch> sealed = SealedBatch::Parse(bytes);
  REQUIRE(sealed.ok());
  CHECK(tables.Apply(*sealed).code() == StatusCode::kCorruption);
  CHECK(tables.applied() == 0);
  CHECK(DumpOf(&tables).empty());
}

}  // namespace
}  // namespace nowcalls::store
