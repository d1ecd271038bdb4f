// Standby: from following a log to recovering, and back when another node has claimed meanwhile.
#include "node/standby.h"

#include <doctest/doctest.h>

#include <cstdint>

#include "ledger/commit_batch.h"
#include "store/memory_log.h"
#include "store/memory_tables.h"

namespace nowcalls::node {
namespace {

struct TestStandby {
  void Append(uint64_t term) {
    ledger::CommitBatch batch;
    batch.Sealed({.batch_number = log.last() + 1, .next_fence = 1, .ledger_ms = 1}, term);
    REQUIRE(log.Append(batch).ok());
  }
  bool Follow(size_t batches_max = 10) {
    const Result<bool> more = standby.Follow(batches_max);
    REQUIRE(more.ok());
    return *more;
  }

  store::MemoryLog log;
  store::MemoryTables tables{ledger::Format{}};
  Standby standby{&log, &tables};
};

TEST_CASE("a standby goes on following as the log grows") {
  TestStandby node;
  CHECK_FALSE(node.Follow());
  for (int i = 0; i < 3; ++i) node.Append(1);
  CHECK(node.Follow(2));
  CHECK(node.tables.applied() == 2);
  CHECK_FALSE(node.Follow());
  node.Append(1);
  CHECK_FALSE(node.Follow());
  CHECK(node.tables.applied() == 4);
  CHECK(node.standby.phase() == Phase::kStandby);
}

TEST_CASE("a node that takes over reads the rest of the log and stays recovering") {
  TestStandby node;
  for (int i = 0; i < 3; ++i) node.Append(1);
  REQUIRE(node.standby.TakeOver(2).ok());
  CHECK(node.Follow(2));
  CHECK(node.standby.phase() == Phase::kRecovering);
  CHECK_FALSE(node.Follow());
  CHECK(node.standby.phase() == Phase::kRecovering);
  CHECK(node.tables.applied() == 3);
}

TEST_CASE("a claim that is not later than the log is refused") {
  TestStandby node;
  node.Append(5);
  node.Follow();
  for (const uint64_t term : {4, 5}) {
    const Status refused = node.standby.TakeOver(term);
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK(refused.message() ==
          "the claim of term " + std::to_string(term) + " is not later than term 5 of the log");
  }
  CHECK(node.standby.phase() == Phase::kStandby);
  CHECK(node.standby.TakeOver(6).ok());
}

TEST_CASE("a node that recovers stands by again when another has claimed behind it") {
  TestStandby node;
  node.Append(1);
  REQUIRE(node.standby.TakeOver(2).ok());
  node.Append(3);
  CHECK_FALSE(node.Follow());
  CHECK(node.standby.phase() == Phase::kStandby);
  CHECK(node.tables.applied() == 2);
  CHECK(node.standby.TakeOver(4).ok());
}

TEST_CASE("a standby says why it cannot follow") {
  TestStandby node;
  node.Append(2);
  node.Append(1);
  const Result<bool> more = node.standby.Follow(10);
  REQUIRE_FALSE(more.ok());
  CHECK(more.status().code() == StatusCode::kCorruption);
  CHECK(node.tables.applied() == 1);
}

}  // namespace
}  // namespace nowcalls::node
