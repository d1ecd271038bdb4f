// Where fences go on: single cases, and lives of a ledger drawn at random, with its backups, its
// copies and its ruins, in which no fence may be given out twice.
#include "ledger/fence_line.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/prng.h"
#include "support/sample.h"

namespace nowcalls::ledger {
namespace {

constexpr int64_t kMinuteMs = 60'000;
constexpr int64_t kLineHourMs = 60 * kMinuteMs;
constexpr int64_t kDayMs = 24 * kLineHourMs;
constexpr int64_t kYearMs = 365 * kDayMs;
constexpr int64_t kStartMs = kFenceLineFromMs + 300 * kDayMs;
constexpr int64_t kGrantsPerMsMax = 2000;

// How fences go on, see fence_line.h.
struct Rules {
  std::function<uint64_t(uint64_t next, int64_t now_ms)> boot = FenceAfterBoot;
  std::function<uint64_t(uint64_t next, int64_t made_ms, int64_t now_ms)> restore = FenceAfterGap;
  std::function<uint64_t(uint64_t next, int64_t seen_ms, int64_t now_ms)> repair = FenceAfterGap;
  std::function<uint64_t(uint64_t next, int64_t since_ms)> loss = FenceAfterLoss;
};

// A ledger on a disk at some moment.
struct Copy {
  uint64_t next = 1;
  int64_t wall_ms = 0;
  int64_t boot = 0;  // Of its clock mark.
};

// One life. One copy is served at a time; wall clocks are right; without `sync` a crash of the
// machine, or a disk that fails under it, takes a minute of grants.
class Life {
 public:
  Life(const Rules& rules, uint64_t seed) : rules_(rules), prng_(seed) {
    now_ms_ = kFenceLineFromMs + prng_.Between(0, 1) * prng_.Between(0, 20 * kYearMs);
    served_ = {std::max(uint64_t{1}, FenceLine(now_ms_)), now_ms_, 0};
    written_ = {served_};
  }

  // Whether every start went on beyond all that had been given out.
  bool Run(int events) {
    for (int i = 0; i < events && is_sound_; ++i) {
      Pass(1 + Some(prng_.Below(3) == 0 ? kDayMs : kMinuteMs), prng_.Between(0, kGrantsPerMsMax));
      Happen(prng_.Below(12));
    }
    return is_sound_;
  }

  uint64_t highest() const { return highest_; }
  int64_t now_ms() const { return now_ms_; }

 private:
  // Between 0 and max, of any order of magnitude.
  int64_t Some(int64_t max) { return prng_.Between(0, max) >> prng_.Between(0, 20); }

  void Pass(int64_t ms, int64_t grants_per_ms) {
    now_ms_ += ms;
    served_.next += static_cast<uint64_t>(ms * grants_per_ms);
    highest_ = std::max(highest_, served_.next);
    const int64_t lost_ms = std::min(ms, Some(kMinuteMs));
    durable_ = served_;
    durable_.next -= static_cast<uint64_t>(lost_ms * grants_per_ms);
    durable_.wall_ms = now_ms_ - lost_ms;
    served_.wall_ms = now_ms_;
    written_.push_back(durable_);
  }

  void Happen(uint64_t what) {
    if (what < 3) return Crash();
    if (what == 3) {
      for (int64_t boots = prng_.Between(1, 40); boots > 0; --boots) Crash();
      return;
    }
    if (what < 6) return backups_.push_back(served_);
    if (what == 6) return Start(served_, served_.boot);
    if (what == 7) return Start(served_, prng_.Between(0, 3));
    if (what < 10 && !backups_.empty()) return Restore();
    if (what == 10) return Repair();
    for (int64_t losses = prng_.Between(1, 40); losses > 0; --losses) Lose();
  }

  void Crash() {
    now_ms_ += 1 + Some(5 * kMinuteMs);
    Start(durable_, ++boots_);
  }
  void Lose() {
    now_ms_ += Some(kMinuteMs);
    Copy copy = durable_;
    copy.next = rules_.loss(copy.next, now_ms_ - copy.wall_ms);
    Start(copy, copy.boot);
  }
  void Restore() {
    const Copy& backup = backups_[prng_.Below(backups_.size())];
    Copy copy = backup;
    copy.next = rules_.restore(backup.next, backup.wall_ms, now_ms_);
    written_ = {copy};
    const int64_t boot = prng_.Below(2) == 0 ? backup.boot : prng_.Between(0, 3);
    now_ms_ += Some(kMinuteMs);
    Start(copy, boot);
  }
  // Of what was written not all is found.
  void Repair() {
    const size_t at = prng_.Below(written_.size());
    Copy salvaged{written_[at].next, now_ms_, prng_.Between(0, 3)};
    salvaged.next = rules_.repair(salvaged.next, now_ms_, now_ms_);
    written_ = {salvaged};
    Start(salvaged, salvaged.boot);
  }
  void Start(Copy copy, int64_t boot) {
    if (copy.boot != boot) copy.next = rules_.boot(copy.next, now_ms_);
    copy.boot = boot;
    copy.wall_ms = now_ms_;
    is_sound_ = is_sound_ && copy.next >= highest_;
    served_ = durable_ = copy;
    written_.push_back(copy);
  }

  const Rules& rules_;
  Prng prng_;
  int64_t now_ms_ = 0;
  int64_t boots_ = 3;  // 0 .. 3 are those of other machines.
  Copy served_;
  Copy durable_;  // What the next crash leaves of it.
  std::vector<Copy> written_;
  std::vector<Copy> backups_;
  uint64_t highest_ = 0;  // The first that was never given out.
  bool is_sound_ = true;
};

uint64_t LivesThatRepeat(const Rules& rules, uint64_t lives) {
  uint64_t repeat = 0;
  for (uint64_t seed = 1; seed <= lives; ++seed) {
    repeat += Life(rules, seed).Run(200) ? 0 : 1;
  }
  return repeat;
}

TEST_CASE("no life of a ledger gives out a fence twice, and all stay below the line") {
  const Rules rules;
  for (const uint64_t seed : testing::SampleOf(5'000, 500)) {
    CAPTURE(seed);
    Life life(rules, seed);
    REQUIRE(life.Run(200));
    REQUIRE(life.highest() <= FenceLine(life.now_ms()));
  }
}

TEST_CASE("lives of a ledger tell distances that add up, and ones that time does not bound") {
  const auto by = [](uint64_t distance) {
    return [distance](uint64_t next, int64_t) { return next + distance; };
  };
  const auto by_age = [](uint64_t per_s, int64_t step_ms) {
    return [per_s, step_ms](uint64_t next, int64_t then_ms, int64_t now_ms) {
      const auto steps = static_cast<uint64_t>((now_ms - then_ms) / step_ms + 1);
      return next + (uint64_t{1} << 40) + steps * per_s * static_cast<uint64_t>(step_ms) / 1000;
    };
  };
  const auto by_repair = [](uint64_t distance) {
    return [distance](uint64_t next, int64_t, int64_t) { return next + distance; };
  };
  const uint64_t repair = uint64_t{1} << 40;
  constexpr uint64_t kLives = 200;
  CHECK(LivesThatRepeat({}, kLives) == 0);
  // A loss of which nobody knows, and one as far as a boot.
  CHECK(LivesThatRepeat({.loss = by(0)}, kLives) > 0);
  CHECK(LivesThatRepeat({.loss = by(uint64_t{1} << 30)}, kLives) > 0);
  // A boot as far as a repair was, and both without an end.
  CHECK(LivesThatRepeat({by(uint64_t{1} << 36), by_age(1 << 22, 1000), by_repair(repair)}, kLives) >
        0);
  CHECK(LivesThatRepeat({by(kFencesSkippedByBoot), FenceAfterGap, FenceAfterGap}, kLives) > 0);
  CHECK(LivesThatRepeat({FenceAfterBoot, by_age(1 << 23, 1), FenceAfterGap}, kLives) > 0);
  CHECK(LivesThatRepeat({FenceAfterBoot, FenceAfterGap, by_repair(repair)}, kLives) > 0);
  CHECK(LivesThatRepeat({by(0), FenceAfterGap, FenceAfterGap}, kLives) > 0);
}

TEST_CASE("a boot skips more than a machine's crash can take, but never crosses the line") {
  CHECK(FenceAfterBoot(5, kStartMs) == 5 + kFencesSkippedByBoot);
  CHECK(kFencesSkippedByBoot > uint64_t{kGrantsPerMsMax} * 8 * kMinuteMs);
  const uint64_t line = FenceLine(kStartMs);
  CHECK(FenceAfterBoot(line - 10, kStartMs) == line);
  CHECK(FenceAfterBoot(line, kStartMs) == line);
  // Beyond it, or with a wall clock that is wrong for sure, there is nothing to go by.
  CHECK(FenceAfterBoot(line + 1, kStartMs) == line + 1 + kFencesSkippedByBoot);
  CHECK(FenceAfterBoot(5, 0) == 5 + kFencesSkippedByBoot);
  CHECK(FenceAfterBoot(5, INT64_MIN) == 5 + kFencesSkippedByBoot);
  CHECK(FenceAfterBoot(kFenceMax - 1, kStartMs) == kFenceMax);
  CHECK(FenceAfterBoot(UINT64_MAX, INT64_MAX) == kFenceMax);
}

TEST_CASE("what was found of a ledger goes on at the line, each millisecond further") {
  for (const uint64_t next : {uint64_t{1}, uint64_t{1} << 40, FenceLine(kStartMs)}) {
    for (const int64_t age_ms : {int64_t{0}, int64_t{1}, kDayMs, 10 * kYearMs}) {
      CAPTURE(age_ms);
      const uint64_t first = FenceAfterGap(next, kStartMs, kStartMs + age_ms);
      CHECK(first == FenceLine(kStartMs + age_ms));
      CHECK(FenceAfterGap(next, kStartMs, kStartMs + age_ms + 1) >= first + kGrantsPerMsMax);
    }
  }
  // A backup of before the clock was set right.
  CHECK(FenceAfterGap(7, 1000, kStartMs) == FenceLine(kStartMs) + 7);
}

TEST_CASE("where a clock was wrong fences go on far beyond what was found") {
  const uint64_t line = FenceLine(kStartMs);
  // The backup is of the future, or the present before the line began.
  CHECK_FALSE(WallClockIsPlausible(kStartMs + 1, kStartMs));
  CHECK(FenceAfterGap(7, kStartMs + kDayMs, kStartMs) == line);
  CHECK(FenceAfterGap(line, kStartMs + kDayMs, kStartMs) == line + kFencesSkippedBlindly);
  CHECK_FALSE(WallClockIsPlausible(0, kFenceLineFromMs - 1));
  CHECK(FenceAfterGap(7, kDayMs, 3 * kDayMs) == 7 + kFencesSkippedBlindly + FencesIn(2 * kDayMs));
  CHECK(FenceAfterGap(7, kDayMs, 0) == 7 + kFencesSkippedBlindly);
  // An earlier clock was ahead, and the ledger is beyond the line.
  CHECK(WallClockIsPlausible(kStartMs, kStartMs + kLineHourMs));
  const uint64_t ahead = FenceLine(kStartMs + kYearMs);
  CHECK(FenceAfterGap(ahead, kStartMs, kStartMs + kLineHourMs) ==
        ahead + kFencesSkippedBlindly + FencesIn(kLineHourMs));
}

TEST_CASE("the line stays below 2^53 for decades, and nothing goes beyond the greatest fence") {
  constexpr int64_t kNovember2060Ms = 2'866'665'600'000;
  CHECK(FenceLine(kNovember2060Ms) < uint64_t{1} << 53);
  CHECK(FenceLine(kNovember2060Ms + 35 * kDayMs) > uint64_t{1} << 53);
  CHECK(FenceLine(kFenceLineFromMs) == 0);
  CHECK(FenceLine(INT64_MIN) == 0);
  CHECK(FenceLine(INT64_MAX) == kFenceMax);
  for (const uint64_t next : {uint64_t{1}, kFenceMax, UINT64_MAX}) {
    for (const int64_t then_ms : {INT64_MIN, int64_t{0}, kStartMs, INT64_MAX}) {
      for (const int64_t now_ms : {INT64_MIN, int64_t{0}, kStartMs, INT64_MAX}) {
        const uint64_t first = FenceAfterGap(next, then_ms, now_ms);
        CHECK(first <= kFenceMax);
        CHECK(first >= std::min(next, kFenceMax));
      }
    }
  }
}

}  // namespace
}  // namespace nowcalls::ledger
