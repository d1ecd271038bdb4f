// The only readers of clocks, boot id and the system's randomness.
//
// Thread: any. Rooms above base take the time as an argument.
#ifndef NOWCALLS_BASE_CLOCK_H_
#define NOWCALLS_BASE_CLOCK_H_

#include <array>
#include <cstdint>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls {

// Changes with each boot (/proc/sys/kernel/random/boot_id).
using BootId = std::array<uint8_t, 16>;

struct ClockSample {
  int64_t boottime_ms = 0;  // CLOCK_BOOTTIME: since boot, counts suspended time.
  int64_t wall_ms = 0;      // CLOCK_REALTIME since the Unix epoch; an operator may set it.
  BootId boot_id{};
};

// kIoError: the kernel does not tell the boot id.
Result<ClockSample> SampleClocks();

// CLOCK_BOOTTIME. Never goes back within the process.
int64_t BoottimeMs();
int64_t BoottimeUs();

// CLOCK_MONOTONIC, for measuring. Stands still while the machine is suspended.
int64_t MonotonicNs();

// CLOCK_REALTIME since the Unix epoch; 0 before it. Never for a deadline.
int64_t WallMs();
// RFC 3339 in UTC: "2024-05-01T12:00:00.123Z".
std::string WallText(int64_t wall_ms);

// From the kernel; ends the process if there is none.
std::array<uint64_t, 2> RandomBits128();

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_CLOCK_H_
