// The fence at which a ledger goes on when the number of grants is unknown: boots, restores,
// repairs, new ledgers.
//
// Thread: any. Fences are counts, times are milliseconds of the wall clock since the Unix epoch.
// Results saturate at kFenceMax.
//
// Fences of every ledger stay below FenceLine, which rises four times as fast as the quickest
// server grants (README, decision 4).
//
// Not covered: a wall clock behind at a restore, ahead at an earlier one, or set back by a boot.
#ifndef NOWCALLS_LEDGER_FENCE_LINE_H_
#define NOWCALLS_LEDGER_FENCE_LINE_H_

#include <algorithm>
#include <cstdint>

#include "ledger/entities.h"

namespace nowcalls::ledger {

// 2026-01-01T00:00:00Z. A wall clock before it is wrong.
inline constexpr int64_t kFenceLineFromMs = 1'767'225'600'000;

// 8.2 million a second, 2^47.9 a year: the line crosses 2^53, the integers of JSON, in November
// 2060.
inline constexpr uint64_t kFencesPerMs = uint64_t{1} << 13;

// Nine minutes at two million grants a second; the kernel holds back tens of seconds. 2^53 is
// enough for 2^23 boots.
inline constexpr uint64_t kFencesSkippedByBoot = uint64_t{1} << 30;

// Six days at two million grants a second.
inline constexpr uint64_t kFencesSkippedBlindly = uint64_t{1} << 40;

// REQUIRES: a, b <= kFenceMax.
constexpr uint64_t FenceSum(uint64_t a, uint64_t b) { return std::min(a + b, kFenceMax); }

// An upper bound of the grants in `ms` milliseconds; 0 if negative.
constexpr uint64_t FencesIn(int64_t ms) {
  constexpr uint64_t kMsMax = kFenceMax / kFencesPerMs;
  return std::min(static_cast<uint64_t>(std::max<int64_t>(0, ms)), kMsMax) * kFencesPerMs;
}

// Exceeds all fences granted before `wall_ms`. 0 before kFenceLineFromMs.
constexpr uint64_t FenceLine(int64_t wall_ms) {
  return wall_ms <= kFenceLineFromMs ? 0 : FencesIn(wall_ms - kFenceLineFromMs);
}

// After a boot that may have lost the last batches. `next`: the ledger's next fence. Skips
// kFencesSkippedByBoot, but from below the line no further than the line.
constexpr uint64_t FenceAfterBoot(uint64_t next, int64_t now_wall_ms) {
  const uint64_t skipped = FenceSum(std::min(next, kFenceMax), kFencesSkippedByBoot);
  const uint64_t line = FenceLine(now_wall_ms);
  return next <= line ? std::min(skipped, line) : skipped;
}

// After batches were lost on the same boot. `since_ms`: age of the last clock mark; older batches
// are safe. Skips half of the line's rise: a ledger below the line stays below.
constexpr uint64_t FenceAfterLoss(uint64_t next, int64_t since_ms) {
  const uint64_t lost = FencesIn(std::max<int64_t>(0, since_ms) + 1) / 2;
  return FenceSum(std::min(next, kFenceMax), lost);
}

constexpr bool WallClockIsPlausible(int64_t seen_wall_ms, int64_t now_wall_ms) {
  return now_wall_ms >= kFenceLineFromMs && now_wall_ms >= seen_wall_ms;
}

// For a ledger made from a backup or from ruins (FORMAT.md, Backups). `next`: the first fence not
// found; `seen_wall_ms`: time of that finding, `now_wall_ms` if unknown.
constexpr uint64_t FenceAfterGap(uint64_t next, int64_t seen_wall_ms, int64_t now_wall_ms) {
  const uint64_t line = FenceLine(now_wall_ms);
  const bool blind = !WallClockIsPlausible(seen_wall_ms, now_wall_ms) || next > line;
  // A clock corrected since does not tell the length of the gap.
  const int64_t seen_ms =
      std::max(seen_wall_ms, now_wall_ms >= kFenceLineFromMs ? kFenceLineFromMs : 0);
  const uint64_t since = FencesIn(std::max<int64_t>(0, now_wall_ms) - seen_ms);
  const uint64_t skipped = FenceSum(since, blind ? kFencesSkippedBlindly : 0);
  return std::max(line, FenceSum(std::min(next, kFenceMax), skipped));
}

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_FENCE_LINE_H_
