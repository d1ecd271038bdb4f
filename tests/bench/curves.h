// Curves: how both servers change with the load, with what they hold, and with who is connected.
//
// Thread: the main one. See bench/lab.h.
#ifndef NOWCALLS_BENCH_CURVES_H_
#define NOWCALLS_BENCH_CURVES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/lab.h"
#include "bench/plot.h"

namespace nowcalls::compare {

struct CurveSizes {
  int rounds = 3;
  double duration_s = 4;
  double warm_up_s = 1;
  std::vector<uint32_t> in_flight = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  std::vector<uint32_t> flows = {1, 10, 100, 1'000, 10'000, 100'000};
  std::vector<uint32_t> connections = {10, 20, 50, 100, 200, 500, 1'000, 2'000, 5'000, 10'000};
  std::vector<uint32_t> idle_connections = {100, 300, 1'000, 3'000, 10'000};
  std::vector<uint64_t> tokens = {10'000,    30'000,    100'000,  300'000,
                                  1'000'000, 2'000'000, 4'000'000};

  static CurveSizes Quick();
};

struct MeasuredCurves {
  std::vector<Plot> plots;
  std::vector<std::string> failures;  // Points that are missing, and why.
};

// `say` gets a few words on each point.
MeasuredCurves MeasureCurves(const CurveSizes& sizes, Lab* lab,
                             const std::function<void(const std::string&)>& say);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_CURVES_H_
