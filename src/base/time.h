// Instants and durations of the ledger clock (src/ledger/clock.h).
#ifndef NOWCALLS_BASE_TIME_H_
#define NOWCALLS_BASE_TIME_H_

#include <compare>
#include <cstdint>

namespace nowcalls {

inline constexpr int64_t kInstantMsMax = int64_t{1} << 62;

// Milliseconds, 0 .. kInstantMsMax.
struct Instant {
  int64_t ms = 0;

  constexpr auto operator<=>(const Instant&) const = default;
  constexpr Instant operator+(int64_t duration_ms) const { return {ms + duration_ms}; }
  constexpr int64_t operator-(Instant other) const { return ms - other.ms; }
};

inline constexpr Instant kNever{INT64_MAX};

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_TIME_H_
