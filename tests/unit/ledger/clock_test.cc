// LedgerClock and RecoverTime.
#include "ledger/clock.h"

#include <doctest/doctest.h>

namespace nowcalls::ledger {
namespace {

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kTenYearsMs = int64_t{10} * 365 * 24 * kHourMs;
constexpr BootId kBoot = {1, 2, 3};
constexpr BootId kOtherBoot = {4, 5, 6};
constexpr ClockMark kMark{1'000'000, {50'000, 2'000'000, kBoot}};

RecoveredTime Recover(const ClockSample& sample, int64_t floor_ms = 0) {
  return RecoverTime(kMark, Instant{floor_ms}, sample);
}

TEST_CASE("the ledger clock follows the boot clock and never goes before its start") {
  LedgerClock clock(Instant{1000}, 70);
  CHECK(clock.At(70) == Instant{1000});
  CHECK(clock.At(75) == Instant{1005});
  LedgerClock other(Instant{1000}, 70);
  CHECK(other.At(69) == Instant{1000});
  CHECK(other.At(0) == Instant{1000});
}

TEST_CASE("while the boot clock is behind what it has told, the ledger clock stands still") {
  LedgerClock clock(Instant{1000}, 70);
  CHECK(clock.At(2070) == Instant{3000});
  CHECK(clock.At(70) == Instant{3000});
  CHECK(clock.At(2069) == Instant{3000});
  CHECK(clock.At(2071) == Instant{3001});
}

TEST_CASE("on the same boot the boot clock tells the time that passed, whatever the wall says") {
  for (const int64_t wall_ms : {int64_t{0}, int64_t{2'000'000}, 2'000'000 + kTenYearsMs}) {
    const RecoveredTime time = Recover({57'000, wall_ms, kBoot});
    CHECK(time.now == Instant{1'007'000});
    CHECK(time.same_boot);
    CHECK_FALSE(time.clamped);
  }
}

TEST_CASE("on the same boot a boot clock behind its mark counts as no time") {
  CHECK(Recover({49'000, 2'000'000, kBoot}).now == Instant{1'000'000});
}

TEST_CASE("on another boot the wall clock tells the time that passed") {
  const RecoveredTime time = Recover({10, 2'000'000 + 90'000, kOtherBoot});
  CHECK(time.now == Instant{1'090'000});
  CHECK_FALSE(time.same_boot);
  CHECK(time.wall_gap_ms == 90'000);
  CHECK_FALSE(time.clamped);
}

TEST_CASE("on another boot exactly one hour still counts in full") {
  const RecoveredTime time = Recover({10, 2'000'000 + kHourMs, kOtherBoot});
  CHECK(time.now == Instant{1'000'000 + kHourMs});
  CHECK_FALSE(time.clamped);
}

TEST_CASE("a wall clock set back an hour counts as no time and says so") {
  const RecoveredTime time = Recover({10, 2'000'000 - kHourMs, kOtherBoot});
  CHECK(time.now == Instant{1'000'000});
  CHECK(time.wall_gap_ms == -kHourMs);
  CHECK(time.clamped);
}

TEST_CASE("a wall clock set forward ten years counts as one hour and says so") {
  const RecoveredTime time = Recover({10, 2'000'000 + kTenYearsMs, kOtherBoot});
  CHECK(time.now == Instant{1'000'000 + kHourMs});
  CHECK(time.wall_gap_ms == kTenYearsMs);
  CHECK(time.clamped);
}

TEST_CASE("time never starts before the latest time found in the ledger") {
  CHECK(Recover({50'000, 2'000'000, kBoot}, 1'000'900).now == Instant{1'000'900});
  CHECK(Recover({10, 0, kOtherBoot}, 1'000'900).now == Instant{1'000'900});
  CHECK(Recover({57'000, 0, kBoot}, 1'000'900).now == Instant{1'007'000});
}

TEST_CASE("what was seen on another machine goes on by this one's boot clock alone") {
  ObservedTime observed;
  CHECK_FALSE(observed.At(1));
  observed.Saw(1, 1'000'300, 100);
  CHECK(observed.At(150)->ms == 1'000'350);
  // News that was late tells less than what is known.
  observed.Saw(1, 1'000'400, 900);
  CHECK(observed.At(900)->ms == 1'001'100);
  observed.Saw(1, 1'002'000, 1'000);
  CHECK(observed.At(1'000)->ms == 1'002'000);
  // The wall clocks differ by a day, and are not asked.
  const ClockSample sample{1'050, 90'000'000, kOtherBoot};
  const RecoveredTime time = RecoverTime(kMark, Instant{1'001'900}, sample, observed);
  CHECK(time.observed);
  CHECK(time.now.ms == 1'002'050);
  CHECK(RecoverTime(kMark, Instant{1'003'000}, sample, observed).now.ms == 1'003'000);
  // On the writer's own machine its own mark is better.
  const ClockSample same{51'000, 2'000'000, kBoot};
  CHECK(RecoverTime(kMark, Instant{0}, same, observed).now.ms == 1'001'000);
}

TEST_CASE(
    "of what was seen of two writers that of the last one counts, though its clock is later") {
  ObservedTime observed;
  observed.Saw(1, 1'000'300, 100);
  observed.Saw(2, 1'000'500, 900);
  CHECK(observed.At(1'000)->ms == 1'000'600);
  observed.Saw(2, 1'000'550, 920);
  CHECK(observed.At(1'000)->ms == 1'000'630);
}

}  // namespace
}  // namespace nowcalls::ledger
