// Instants and durations of the ledger clock.
//
// All deadlines run on one clock in milliseconds that never goes back, across restarts and reboots
// too (src/ledger/clock.h). It starts at the wall time of the day the ledger was made, so its
// values can be read as Unix time, but it does not follow later changes of the wall clock.
#ifndef NOWCALLS_BASE_TIME_H_
#define NOWCALLS_BASE_TIME_H_

#include <compare>
#include <cstdint>

namespace nowcalls {

inline constexpr int64_t kInstantMsMax = int64_t{1} << 62;

// A point on the ledger clock, in milliseconds. Valid values are 0 .. kInstantMsMax.
struct Instant {
  int64_t ms = 0;

  constexpr auto operator<=>(const Instant&) const = default;
  constexpr Instant operator+(int64_t duration_ms) const { return {ms + duration_ms}; }
  // Milliseconds from `other` to this.
  constexpr int64_t operator-(Instant other) const { return ms - other.ms; }
};

inline constexpr Instant kNever{INT64_MAX};

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_TIME_H_
