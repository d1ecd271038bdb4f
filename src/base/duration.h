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

// Whole numbers with units (ms, s, m, h, d), larger units first: "500ms", "10s", "1h30m". Reads
// back what HumanDuration prints from 10 s on. kInvalidArgument: what is wrong.
Result<int64_t> ParseDuration(std::string_view text);

// At most two units, cut off, not rounded: "850ms", "9.3s", "42s", "2m13s", "1h02m", "-3d04h".
std::string HumanDuration(int64_t duration_ms);

// Saturates.
int64_t MsSince(int64_t then_ms, int64_t now_ms);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_DURATION_H_
