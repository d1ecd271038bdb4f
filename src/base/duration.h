// Durations as operators write and read them: "500ms", "10s", "2m13s".
//
// Thread: any.
#ifndef NOWCALLS_BASE_DURATION_H_
#define NOWCALLS_BASE_DURATION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls {

// Milliseconds of one or more whole numbers, each with its unit (ms, s, m, h, d), larger units
// first: "500ms", "10s", "1h30m". Everything that HumanDuration prints for 10 s and more reads
// back. kInvalidArgument says what is wrong with `text`.
Result<int64_t> ParseDuration(std::string_view text);

// Two units at most, cut off rather than rounded: "850ms", "9.3s", "42s", "2m13s", "1h02m",
// "3d04h". A negative duration has a minus sign.
std::string HumanDuration(int64_t duration_ms);

// From `then_ms` to `now_ms`, or the longest there is: what a server says need not make sense.
int64_t MsSince(int64_t then_ms, int64_t now_ms);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_DURATION_H_
