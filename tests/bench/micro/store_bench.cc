// The batch write: records into RocksDB's log and memtables, without a sync.
#include <benchmark/benchmark.h>

#include <memory>

#include "base/check.h"
#include "base/clock.h"
#include "bench/micro/items.h"
#include "bench/micro/token_records.h"
#include "store/rocks_store.h"
#include "support/temp_dir.h"

namespace nowcalls::microbench {
namespace {

constexpr size_t kLiveTokens = 1000;
constexpr double kSecondNs = 1e9;

// The time is that of Commit alone. RocksDB's own threads flush beside it.
void CommitToRocks(benchmark::State& state) {
  const testing::TempDir dir;
  auto store = store::RocksStore::Open(
      dir.path(), {.durability = store::Durability::kNone, .on_background_error = {}});
  NOWCALLS_CHECK(store.ok());
  TokenRecords records(kLiveTokens);
  ledger::CommitBatch batch;
  records.IssueAll(&batch);
  records.Seal(&batch);
  NOWCALLS_CHECK((*store)->Commit(batch).ok());
  for ([[maybe_unused]] auto iteration : state) {
    batch.Clear();
    for (int64_t i = 0; i < state.range(0); ++i) records.AppendOne(&batch);
    records.Seal(&batch);
    const int64_t begin_ns = MonotonicNs();
    NOWCALLS_CHECK((*store)->Commit(batch).ok());
    state.SetIterationTime(static_cast<double>(MonotonicNs() - begin_ns) / kSecondNs);
  }
  CountItems(&state, state.iterations() * state.range(0));
}

BENCHMARK(CommitToRocks)
    ->ArgName("records")
    ->Arg(1)
    ->Arg(16)
    ->Arg(256)
    ->Arg(2048)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace nowcalls::microbench
