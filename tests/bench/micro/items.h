// Items: what a benchmark has done, so that all of them report alike.
//
// Thread: the benchmark's.
#ifndef NOWCALLS_BENCH_MICRO_ITEMS_H_
#define NOWCALLS_BENCH_MICRO_ITEMS_H_

#include <benchmark/benchmark.h>

#include <cstdint>

namespace nowcalls::microbench {

// items_per_second, and their inverse as per_item. One item is one operation of the server: an
// acquire, a release, a record.
void CountItems(benchmark::State* state, int64_t items);

}  // namespace nowcalls::microbench

#endif  // NOWCALLS_BENCH_MICRO_ITEMS_H_
