// The only place that reads clocks, the boot id and the system's randomness.
//
// Thread: any. Everything above src/base gets time as an argument, so that tests and the simulator
// can say what time it is.
#ifndef NOWCALLS_BASE_CLOCK_H_
#define NOWCALLS_BASE_CLOCK_H_

#include <array>
#include <cstdint>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls {

// 128 bits that change with each boot of the machine (/proc/sys/kernel/random/boot_id).
using BootId = std::array<uint8_t, 16>;

// What the machine's clocks say at one moment.
struct ClockSample {
  int64_t boottime_ms = 0;  // CLOCK_BOOTTIME: since boot, counts suspended time.
  int64_t wall_ms = 0;      // CLOCK_REALTIME since the Unix epoch; an operator may set it.
  BootId boot_id{};
};

// Reads the clocks. Error: kIoError when the kernel does not tell the boot id.
Result<ClockSample> SampleClocks();

// CLOCK_BOOTTIME in milliseconds and in microseconds. Cheap enough for each loop turn. A hypervisor
// or the kernel may set it back all the same: then the largest reading of this process is given
// until the clock has passed it.
int64_t BoottimeMs();
int64_t BoottimeUs();

// CLOCK_MONOTONIC in nanoseconds, for measuring. Stands still while the machine is suspended.
int64_t MonotonicNs();

// CLOCK_REALTIME in milliseconds since the Unix epoch; 0 for all before it. For display, for what
// passed between two boots, and for where fences begin (ledger/fence_line.h); never for a deadline.
int64_t WallMs();
// As RFC 3339 has it, in UTC: "2024-05-01T12:00:00.123Z".
std::string WallText(int64_t wall_ms);

// 128 bits from the kernel's random source. Ends the process if there is none.
std::array<uint64_t, 2> RandomBits128();

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_CLOCK_H_
