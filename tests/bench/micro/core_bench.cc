// The core alone: typed calls in, records into a batch that is sealed and cleared every 1000
// operations.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "bench/micro/items.h"
#include "bench/micro/loaded_core.h"

namespace nowcalls::microbench {
namespace {

LoadedCore& CoreOf(const benchmark::State& state, bool request_ids = false) {
  return CoreWith(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)),
                  request_ids);
}

void CoreAcquireRelease(benchmark::State& state) {
  LoadedCore& core = CoreOf(state);
  for ([[maybe_unused]] auto iteration : state) core.ReplaceOne();
  CountItems(&state, 2 * state.iterations());
}

void CoreAcquireReleaseWithRequestIds(benchmark::State& state) {
  LoadedCore& core = CoreOf(state, /*request_ids=*/true);
  for ([[maybe_unused]] auto iteration : state) core.ReplaceOne();
  CountItems(&state, 2 * state.iterations());
}

void CoreKeep(benchmark::State& state) {
  LoadedCore& core = CoreOf(state);
  for ([[maybe_unused]] auto iteration : state) core.KeepOne();
  CountItems(&state, state.iterations());
}

void CoreRefuse(benchmark::State& state) {
  LoadedCore& core = CoreOf(state);
  for ([[maybe_unused]] auto iteration : state) core.RefuseOne();
  CountItems(&state, state.iterations());
}

// A scan's finds in, all of which have expired, records of their ends out.
void CoreSweepStep(benchmark::State& state) {
  static std::unique_ptr<ExpiringCore> core;
  static std::pair<int64_t, int64_t> made_for;
  const std::pair wanted(state.range(0), state.range(1));
  if (core == nullptr || made_for != wanted) {
    core.reset();  // Before the next one, so that two never share the memory.
    core = std::make_unique<ExpiringCore>(static_cast<uint32_t>(wanted.first),
                                          static_cast<uint32_t>(wanted.second));
    made_for = wanted;
  }
  for ([[maybe_unused]] auto iteration : state) {
    state.PauseTiming();
    core->Prepare();
    state.ResumeTiming();
    core->Step();
  }
  CountItems(&state, state.iterations() * ExpiringCore::kTokensPerStep);
}

// Those that share a core follow each other, since it takes a second to make the large one.
void Sizes(benchmark::internal::Benchmark* benchmark) { benchmark->ArgNames({"flows", "live"}); }

BENCHMARK(CoreAcquireRelease)->Apply(Sizes)->Args({1, 1000});
BENCHMARK(CoreRefuse)->Apply(Sizes)->Args({1, 1000});
BENCHMARK(CoreKeep)->Apply(Sizes)->Args({1, 1000});
BENCHMARK(CoreAcquireRelease)->Apply(Sizes)->Args({100'000, 1000});
BENCHMARK(CoreAcquireRelease)->Apply(Sizes)->Args({1, 1'000'000});
BENCHMARK(CoreAcquireRelease)->Apply(Sizes)->Args({100'000, 1'000'000});
BENCHMARK(CoreKeep)->Apply(Sizes)->Args({100'000, 1'000'000});
BENCHMARK(CoreAcquireReleaseWithRequestIds)->Apply(Sizes)->Args({1, 1000});
BENCHMARK(CoreAcquireReleaseWithRequestIds)->Apply(Sizes)->Args({100'000, 1'000'000});
BENCHMARK(CoreSweepStep)->Apply(Sizes)->Args({1, 1000});
BENCHMARK(CoreSweepStep)->Apply(Sizes)->Args({100'000, 1'000'000});

}  // namespace
}  // namespace nowcalls::microbench
