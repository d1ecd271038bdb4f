// From where fences go on when nobody knows how many were given out: after a boot, a restore, a
// repair, and in a new ledger.
//
// Thread: any, pure functions. Fences are counts, times are milliseconds of the wall clock since
// the Unix epoch. Whatever would be more than kFenceMax is kFenceMax.
//
// The principle: the fences of every ledger stay below a line that rises with the wall clock,
// FenceLine. It rises four times as fast as the quickest server grants, a boot never crosses it,
// and a restore and a repair go on exactly there. So whatever ledger a restore was made of, and
// whatever had been done to it and to its other copies, rebooted, restored, repaired, how often and
// on which machine: all of their fences are below the line of that moment, and those of the copy
// are not. Distances that depend on the ledger itself (so far beyond what was found) would add up
// from copy to copy, and a restore of an older backup would begin behind a newer copy.
//
// What the line cannot know: a wall clock that is behind when a ledger is restored, or was ahead
// when one was before; and one that has been set back by a boot to just after the last restore.
#ifndef NOWCALLS_LEDGER_FENCE_LINE_H_
#define NOWCALLS_LEDGER_FENCE_LINE_H_

#include <algorithm>
#include <cstdint>

#include "ledger/entities.h"

namespace nowcalls::ledger {

// 2026-01-01T00:00:00Z: no ledger is older, so a wall clock before it is wrong.
inline constexpr int64_t kFenceLineFromMs = 1'767'225'600'000;

// 8.2 million a second, 2^47.9 a year: the line crosses 2^53, the integers that JSON readers keep,
// in November 2060, however often ledgers were restored till then.
inline constexpr uint64_t kFencesPerMs = uint64_t{1} << 13;

// What a crash of the machine can take without `sync` is what the kernel has not written, some tens
// of seconds: nine minutes at two million grants a second. 2^53 is enough for 2^23 boots.
inline constexpr uint64_t kFencesSkippedByBoot = uint64_t{1} << 30;

// Where the wall clock cannot tell how long a gap was: six days at two million grants a second.
inline constexpr uint64_t kFencesSkippedBlindly = uint64_t{1} << 40;

// a + b, at most kFenceMax. REQUIRES: both are at most that.
constexpr uint64_t FenceSum(uint64_t a, uint64_t b) { return std::min(a + b, kFenceMax); }

// What may have been given out in so many milliseconds; 0 when they are negative.
constexpr uint64_t FencesIn(int64_t ms) {
  constexpr uint64_t kMsMax = kFenceMax / kFencesPerMs;
  return std::min(static_cast<uint64_t>(std::max<int64_t>(0, ms)), kMsMax) * kFencesPerMs;
}

// All fences that were given out before that moment are below. 0 before kFenceLineFromMs.
constexpr uint64_t FenceLine(int64_t wall_ms) {
  return wall_ms <= kFenceLineFromMs ? 0 : FencesIn(wall_ms - kFenceLineFromMs);
}

// The first fence of a ledger that was served on another boot, and whose last batches may be lost:
// `next` is the first that it knows not to be given out. Further on by kFencesSkippedByBoot, but
// not across the line, up to which nothing can be lost. A ledger beyond it, of some clock that was
// wrong, skips as well.
constexpr uint64_t FenceAfterBoot(uint64_t next, int64_t now_wall_ms) {
  const uint64_t skipped = FenceSum(std::min(next, kFenceMax), kFencesSkippedByBoot);
  const uint64_t line = FenceLine(now_wall_ms);
  return next <= line ? std::min(skipped, line) : skipped;
}

// The same on one boot: without syncs, a disk may lose batches under a machine that goes on, but
// none that is older than the last clock mark that is left, `since_ms` ago. Half of what the line
// rises meanwhile is twice what the quickest server grants; so with the grants of that time,
// however often it happens, no ledger gets beyond the line that was not, and no wall clock matters.
constexpr uint64_t FenceAfterLoss(uint64_t next, int64_t since_ms) {
  const uint64_t lost = FencesIn(std::max<int64_t>(0, since_ms) + 1) / 2;
  return FenceSum(std::min(next, kFenceMax), lost);
}

// Whether the wall clock can be right at a moment that comes after `seen_wall_ms`.
constexpr bool WallClockIsPlausible(int64_t seen_wall_ms, int64_t now_wall_ms) {
  return now_wall_ms >= kFenceLineFromMs && now_wall_ms >= seen_wall_ms;
}

// The first fence of a ledger that is made of what was found of another: of its backup, or of its
// ruins. `next` is the first of which nothing was found, `seen_wall_ms` when that was so, or
// `now_wall_ms` if nobody knows. It is on the line, and at least FencesIn the time between beyond
// `next`; where a clock was wrong, since the ledger is beyond the line or time went back, at least
// kFencesSkippedBlindly more.
constexpr uint64_t FenceAfterGap(uint64_t next, int64_t seen_wall_ms, int64_t now_wall_ms) {
  const uint64_t line = FenceLine(now_wall_ms);
  const bool blind = !WallClockIsPlausible(seen_wall_ms, now_wall_ms) || next > line;
  // A clock that was set right since does not tell how long ago that was.
  const int64_t seen_ms =
      std::max(seen_wall_ms, now_wall_ms >= kFenceLineFromMs ? kFenceLineFromMs : 0);
  const uint64_t since = FencesIn(std::max<int64_t>(0, now_wall_ms) - seen_ms);
  const uint64_t skipped = FenceSum(since, blind ? kFencesSkippedBlindly : 0);
  return std::max(line, FenceSum(std::min(next, kFenceMax), skipped));
}

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_FENCE_LINE_H_
