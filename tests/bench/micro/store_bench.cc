// The batch write: records into RocksDB's log and memtables, without a sync.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "bench/micro/items.h"
#include "bench/micro/token_records.h"
#include "store/rocks/rocks_store.h"
#include "support/temp_dir.h"

namespace nowcalls::microbench {
namespace {

constexpr size_t kLiveTokens = 1000;
constexpr int64_t kRecordsPerTurn = 256;

// Several batches if they are small, or stopping the clock would cost as much as they do. RocksDB's
// own threads, which flush beside it, do not count.
void CommitToRocks(benchmark::State& state) {
  const testing::TempDir dir;
  auto store = store::RocksStore::Open(
      dir.path(), {.durability = store::Durability::kNone, .on_background_error = {}});
  NOWCALLS_CHECK(store.ok());
  TokenRecords records(kLiveTokens);
  std::vector<ledger::CommitBatch> batches(
      static_cast<size_t>(std::max<int64_t>(1, kRecordsPerTurn / state.range(0))));
  records.IssueAll(batches.data());
  records.Seal(batches.data());
  NOWCALLS_CHECK((*store)->Commit(batches[0]).ok());
  for ([[maybe_unused]] auto iteration : state) {
    state.PauseTiming();
    for (ledger::CommitBatch& batch : batches) {
      batch.Clear();
      for (int64_t i = 0; i < state.range(0); ++i) records.AppendOne(&batch);
      records.Seal(&batch);
    }
    state.ResumeTiming();
    for (const ledger::CommitBatch& batch : batches) {
      NOWCALLS_CHECK((*store)->Commit(batch).ok());
    }
  }
  CountItems(&state, state.iterations() * state.range(0) * static_cast<int64_t>(batches.size()));
}

BENCHMARK(CommitToRocks)
    ->ArgName("records")
    ->Arg(1)
    ->Arg(16)
    ->Arg(256)
    ->Arg(2048)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace nowcalls::microbench
