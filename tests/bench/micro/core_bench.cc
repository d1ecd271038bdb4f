// The core alone: typed calls in, records into a batch that is sealed and cleared every 1000
// operations.
#include <benchmark/benchmark.h>

#include "bench/micro/items.h"
#include "bench/micro/loaded_core.h"

namespace nowcalls::microbench {
namespace {

LoadedCore& CoreOf(const benchmark::State& state) {
  return CoreWith(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)));
}

void CoreAcquireRelease(benchmark::State& state) {
  LoadedCore& core = CoreOf(state);
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

// Those that share a core follow each other, since it takes a second to make the large one.
void Sizes(benchmark::internal::Benchmark* benchmark) { benchmark->ArgNames({"flows", "live"}); }

BENCHMARK(CoreAcquireRelease)->Apply(Sizes)->Args({1, 1000});
BENCHMARK(CoreRefuse)->Apply(Sizes)->Args({1, 1000});
BENCHMARK(CoreKeep)->Apply(Sizes)->Args({1, 1000});
BENCHMARK(CoreAcquireRelease)->Apply(Sizes)->Args({100'000, 1000});
BENCHMARK(CoreAcquireRelease)->Apply(Sizes)->Args({1, 1'000'000});
BENCHMARK(CoreAcquireRelease)->Apply(Sizes)->Args({100'000, 1'000'000});
BENCHMARK(CoreKeep)->Apply(Sizes)->Args({100'000, 1'000'000});

}  // namespace
}  // namespace nowcalls::microbench
