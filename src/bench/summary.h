// Summary: sums of both reports.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_SUMMARY_H_
#define NOWCALLS_BENCH_SUMMARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "bench/histogram.h"
#include "bench/recorder.h"
#include "nowcalls/types.h"

namespace nowcalls::bench {

struct Totals {
  uint64_t granted = 0;
  uint64_t released = 0;
  uint64_t refused = 0;
  uint64_t errors = 0;
  uint64_t operations() const { return granted + released; }
};

inline Totals Sum(const std::vector<SecondRow>& seconds) {
  Totals totals;
  for (const SecondRow& second : seconds) {
    totals.granted += second.granted;
    totals.released += second.released;
    totals.refused += second.refused;
    totals.errors += second.errors;
  }
  return totals;
}

// `index`: of Recorder::Refusals.
constexpr std::string_view RefusalName(size_t index) {
  return RefusedByName(index < kRefusedByCount ? static_cast<RefusedBy>(index) : RefusedBy::kOther);
}

struct Quantile {
  std::string_view name;
  uint64_t parts_per_million;
};

inline constexpr std::array<Quantile, 5> kQuantiles = {{{"p50", 500'000},
                                                        {"p90", 900'000},
                                                        {"p99", 990'000},
                                                        {"p99.9", 999'000},
                                                        {"p99.99", 999'900}}};

constexpr double Microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

constexpr double PerSecond(uint64_t count, int64_t ns) {
  return ns > 0 ? static_cast<double>(count) * 1e9 / static_cast<double>(ns) : 0;
}

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_SUMMARY_H_
