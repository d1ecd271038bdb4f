// ClockGap: how the clock of a server goes on from that of the one before.
#ifndef NOWCALLS_SIM_CLOCK_GAP_H_
#define NOWCALLS_SIM_CLOCK_GAP_H_

#include <cstdint>

namespace nowcalls::sim {

enum class ClockGap : uint8_t {
  kNone,    // As time does.
  kLate,    // It may be behind, and is never ahead.
  kAnyhow,  // It may have moved on by any time, or by none.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_CLOCK_GAP_H_
