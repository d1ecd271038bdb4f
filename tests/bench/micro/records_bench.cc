// Records into a commit batch, and out of it into a sink that does nothing.
#include <benchmark/benchmark.h>

#include "base/check.h"
#include "bench/micro/items.h"
#include "bench/micro/token_records.h"
#include "ledger/commit_batch.h"

namespace nowcalls::microbench {
namespace {

constexpr size_t kLiveTokens = 1000;

class NullSink : public ledger::KeyValueSink {
 public:
  void Put(ledger::Family /*family*/, std::string_view key, std::string_view value) override {
    bytes_ += key.size() + value.size();
  }
  void SingleDelete(ledger::Family /*family*/, std::string_view key) override {
    bytes_ += key.size();
  }
  void Delete(ledger::Family /*family*/, std::string_view key) override { bytes_ += key.size(); }

  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

void AppendRecords(benchmark::State& state) {
  TokenRecords records(kLiveTokens);
  ledger::CommitBatch batch;
  records.IssueAll(&batch);
  for ([[maybe_unused]] auto iteration : state) {
    batch.Clear();
    for (int64_t i = 0; i < state.range(0); ++i) records.AppendOne(&batch);
    records.Seal(&batch);
    benchmark::DoNotOptimize(batch.bytes().data());
  }
  CountItems(&state, state.iterations() * state.range(0));
}

void ApplyRecordsToNothing(benchmark::State& state) {
  TokenRecords records(kLiveTokens);
  ledger::CommitBatch batch;
  records.IssueAll(&batch);
  batch.Clear();
  for (int64_t i = 0; i < state.range(0); ++i) records.AppendOne(&batch);
  records.Seal(&batch);
  for ([[maybe_unused]] auto iteration : state) {
    NullSink sink;
    NOWCALLS_CHECK(ledger::ApplyRecords(batch.bytes(), &sink).ok());
    benchmark::DoNotOptimize(sink.bytes());
  }
  CountItems(&state, state.iterations() * state.range(0));
}

// The large batch is as full as one becomes behind a disk that takes its time (batch_bytes_max).
BENCHMARK(AppendRecords)->ArgName("records")->Arg(1000)->Arg(90'000);
BENCHMARK(ApplyRecordsToNothing)->ArgName("records")->Arg(1000)->Arg(90'000);

}  // namespace
}  // namespace nowcalls::microbench
