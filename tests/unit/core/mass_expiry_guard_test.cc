// MassExpiryGuard by itself.
#include "core/tables/mass_expiry_guard.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

#include "base/prng.h"

namespace nowcalls::core {
namespace {

using GuardLoss = MassExpiryGuard::Loss;

TEST_CASE("the guard counts within a window, also those that came back") {
  MassExpiryGuard guard({.sessions_min = 3, .percent = 50});
  std::vector<GuardLoss> losses(3);
  guard.WentOffline(&losses[0], 1000);
  guard.WentOffline(&losses[1], 1000);
  guard.WentOffline(&losses[2], 1400);
  CHECK(guard.Count(1000, 399).lost == 2);
  CHECK(guard.Count(1000, 400).lost == 3);
  CHECK(guard.Count(1400, 400).lost == 3);
  CHECK(guard.Count(1400, 300).lost == 1);
  CHECK(guard.Count(1000, 400).away == 3);
  guard.CameBack(&losses[2]);
  guard.CameBack(&losses[2]);
  CHECK(guard.Count(1000, 400).lost == 3);
  CHECK(guard.Count(1000, 400).away == 2);
}

TEST_CASE("a session that goes offline again and again counts once, with its last time") {
  MassExpiryGuard guard({});
  GuardLoss flapping;
  for (int64_t at_ms = 1000; at_ms < 3000; at_ms += 100) {
    guard.WentOffline(&flapping, at_ms);
    CHECK(guard.Count(1000, 5000).lost == 1);
    CHECK(guard.Count(1000, 5000).away == 1);
    guard.CameBack(&flapping);
    CHECK(guard.Count(1000, 5000).lost == 1);
    CHECK(guard.Count(1000, 5000).away == 0);
  }
  CHECK(guard.Count(1000, 1800).lost == 0);
  CHECK(guard.Count(2900, 0).lost == 1);
}

TEST_CASE("a session that is gone does not count") {
  MassExpiryGuard guard({});
  GuardLoss away;
  GuardLoss back;
  GuardLoss never;
  guard.WentOffline(&away, 1000);
  guard.WentOffline(&back, 1000);
  guard.CameBack(&back);
  guard.Forget(&away);
  CHECK(guard.Count(1000, 1000).lost == 1);
  CHECK(guard.Count(1000, 1000).away == 0);
  guard.Forget(&back);
  guard.Forget(&back);
  guard.Forget(&never);
  CHECK(guard.Count(1000, 1000).lost == 0);
  CHECK_FALSE(MassExpiryGuard::Remembers(back, 1000));
}

TEST_CASE("a mass is large, by number and by part") {
  const MassExpiryGuard half({.sessions_min = 3, .percent = 50});
  CHECK(half.SessionsMax(2) == 0);
  CHECK(half.SessionsMax(3) == 6);
  const MassExpiryGuard third({.sessions_min = 1, .percent = 33});
  CHECK(third.SessionsMax(1) == 3);
  CHECK(third.SessionsMax(33) == 100);
  const MassExpiryGuard all({.sessions_min = 10, .percent = 100});
  CHECK(all.SessionsMax(10) == 10);
  const MassExpiryGuard off({.sessions_min = 1, .percent = 0});
  CHECK(off.SessionsMax(100) == 0);
}

TEST_CASE("the guard remembers two windows back and forgets what is long ago") {
  MassExpiryGuard guard({});
  const int64_t window_ms = MassExpiryGuard::kWindowMsMax;
  GuardLoss first;
  GuardLoss second;
  GuardLoss late;
  guard.WentOffline(&first, 1'000'000);
  guard.WentOffline(&second, 1'000'000 + window_ms);
  guard.WentOffline(&late, 1'000'000 + 2 * window_ms);
  CHECK(guard.Count(1'000'000 + window_ms, INT64_MAX / 4).lost == 3);
  CHECK(MassExpiryGuard::Remembers(first, 1'000'000 + 2 * window_ms));
  const int64_t later_ms = 1'000'000 + 4 * window_ms;
  guard.WentOffline(&late, later_ms);
  CHECK_FALSE(MassExpiryGuard::Remembers(first, later_ms));
  CHECK(guard.Count(1'000'000, 0).lost == 0);
  guard.CameBack(&first);
  guard.Forget(&first);
  CHECK(guard.Count(later_ms - 2 * window_ms, window_ms).lost == 1);
}

TEST_CASE("after random comings and goings the guard agrees with counting anew") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Prng prng(seed);
    MassExpiryGuard guard({});
    std::vector<GuardLoss> losses(20);
    int64_t now_ms = 10'000'000;
    for (int step = 0; step < 500; ++step) {
      now_ms += 50 * prng.Between(0, prng.Below(20) == 0 ? 2000 : 10);
      GuardLoss* loss = &losses[prng.Below(losses.size())];
      switch (prng.Below(4)) {
        case 0: guard.CameBack(loss); break;
        case 1: guard.Forget(loss); break;
        default: guard.WentOffline(loss, now_ms); break;
      }
      const int64_t since_ms = now_ms - 50 * prng.Between(0, 1200);
      const int64_t window_ms = 50 * prng.Between(0, 1200);
      MassExpiryGuard::Tally expected;
      for (const GuardLoss& one : losses) {
        const bool within = one.at_ms != GuardLoss::kNone && one.at_ms >= since_ms - window_ms &&
                            one.at_ms <= since_ms + window_ms;
        expected.lost += within ? 1 : 0;
        expected.away += within && one.away ? 1 : 0;
      }
      const MassExpiryGuard::Tally found = guard.Count(since_ms, window_ms);
      REQUIRE(found.lost == expected.lost);
      REQUIRE(found.away == expected.away);
    }
  }
}

}  // namespace
}  // namespace nowcalls::core
