// FlowPicker: the next flow's index, 0 .. flows - 1, in turn or at random by the seed.
//
// Thread: one at a time.
#ifndef NOWCALLS_BENCH_FLOW_PICKER_H_
#define NOWCALLS_BENCH_FLOW_PICKER_H_

#include <cstdint>

#include "base/prng.h"

namespace nowcalls::bench {

enum class FlowDistribution : uint8_t { kRoundRobin, kUniform };

class FlowPicker {
 public:
  // REQUIRES: flows > 0.
  FlowPicker(uint32_t first, uint32_t flows, FlowDistribution distribution, uint64_t seed)
      : first_(first), flows_(flows), distribution_(distribution), prng_(seed) {}

  uint32_t Next() {
    if (flows_ == 1) return first_;
    if (distribution_ == FlowDistribution::kUniform) {
      return first_ + static_cast<uint32_t>(prng_.Below(flows_));
    }
    const uint32_t flow = next_;
    next_ = next_ + 1 == flows_ ? 0 : next_ + 1;
    return first_ + flow;
  }

 private:
  uint32_t first_;
  uint32_t flows_;
  FlowDistribution distribution_;
  uint32_t next_ = 0;
  Prng prng_;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_FLOW_PICKER_H_
