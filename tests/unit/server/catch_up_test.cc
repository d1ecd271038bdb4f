// What is due after the loop was held up, and what goes first.
#include "server/catch_up.h"

#include <doctest/doctest.h>

namespace nowcalls::server {
namespace {

constexpr Instant kWake{1'000'000};

TEST_CASE("a loop that wakes in time holds nothing back") {
  CatchUp catch_up;
  CHECK_FALSE(catch_up.Holds(kWake, true));  // It has not slept yet.
  catch_up.BeforePoll(kWake);
  CHECK_FALSE(catch_up.Holds(kWake + -500, true));
  CHECK_FALSE(catch_up.Holds(kWake + CatchUp::kLateMs, true));
}

TEST_CASE("a loop that wakes late polls once more before it does what is due") {
  CatchUp catch_up;
  catch_up.BeforePoll(kWake);
  const Instant late = kWake + CatchUp::kLateMs + 1;
  CHECK(catch_up.Holds(late, false));
  catch_up.BeforePoll(late);
  CHECK_FALSE(catch_up.Holds(late, false));
  catch_up.BeforePoll(late);
  CHECK_FALSE(catch_up.Holds(late + 1, true));
}

TEST_CASE("it goes on polling as long as there is more input, but not for ever") {
  CatchUp catch_up;
  catch_up.BeforePoll(kWake);
  const Instant late = kWake + 60'000;
  CHECK(catch_up.Holds(late, true));
  for (int64_t ms = 0; ms < CatchUp::kHoldMsMax; ms += 10) {
    catch_up.BeforePoll(late + ms);
    CHECK(catch_up.Holds(late + ms, true));
  }
  const Instant end = late + CatchUp::kHoldMsMax;
  catch_up.BeforePoll(end);
  CHECK_FALSE(catch_up.Holds(end, true));
  catch_up.BeforePoll(end);
  CHECK(catch_up.Holds(end + 200, true));  // Late again: again for a while only.
}

TEST_CASE("a loop that is late at each turn does what is due at every other one at least") {
  CatchUp catch_up;
  Instant now = kWake;
  int done = 0;
  for (int turn = 0; turn < 100; ++turn) {
    catch_up.BeforePoll(now);
    now = now + 2 * CatchUp::kLateMs;
    if (!catch_up.Holds(now, false)) ++done;
  }
  CHECK(done == 50);
}

}  // namespace
}  // namespace nowcalls::server
