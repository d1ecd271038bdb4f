// What is due after the loop was held up, and what goes first.
#include "node/catch_up.h"

#include <doctest/doctest.h>

namespace nowcalls::node {
namespace {

constexpr Instant kWake{1'000'000};

TEST_CASE("a loop that wakes in time holds nothing back") {
  CatchUp catch_up;
  CHECK_FALSE(catch_up.Holds(kWake, true, false));  // It has not slept yet.
  catch_up.BeforePoll(kWake);
  CHECK_FALSE(catch_up.Holds(kWake + -500, true, false));
  CHECK_FALSE(catch_up.Holds(kWake + CatchUp::kLateMs, true, false));
}

TEST_CASE("a loop that wakes late polls once more before it does what is due") {
  CatchUp catch_up;
  catch_up.BeforePoll(kWake);
  const Instant late = kWake + CatchUp::kLateMs + 1;
  CHECK(catch_up.Holds(late, false, false));
  catch_up.BeforePoll(late);
  CHECK_FALSE(catch_up.Holds(late, false, false));
  catch_up.BeforePoll(late);
  CHECK_FALSE(catch_up.Holds(late + 1, true, false));
}

TEST_CASE("it goes on polling as long as there is more input, but not for ever") {
  CatchUp catch_up;
  catch_up.BeforePoll(kWake);
  const Instant late = kWake + 60'000;
  CHECK(catch_up.Holds(late, true, false));
  for (int64_t ms = 0; ms < CatchUp::kHoldMsMax; ms += 10) {
    catch_up.BeforePoll(late + ms);
    CHECK(catch_up.Holds(late + ms, true, false));
  }
  const Instant end = late + CatchUp::kHoldMsMax;
  catch_up.BeforePoll(end);
  CHECK_FALSE(catch_up.Holds(end, true, false));
  catch_up.BeforePoll(end);
  CHECK(catch_up.Holds(end + 200, true, false));  // Late again: again for a while only.
}

TEST_CASE(
    "while the disk stalls and afterwards, until what it kept from being read has been read") {
  CatchUp catch_up;
  catch_up.BeforePoll(kWake);
  CHECK(catch_up.Holds(kWake, true, true));
  const Instant end = kWake + 60'000;
  for (Instant now = kWake; now < end; now = now + 500) {
    catch_up.BeforePoll(now);
    CHECK(catch_up.Holds(now, true, true));
  }
  catch_up.BeforePoll(end);
  CHECK(catch_up.Holds(end, true, false));
  CHECK_FALSE(catch_up.Holds(end + 1, false, false));
}

TEST_CASE("neither a stall nor a pause while it catches up takes from its time") {
  CatchUp catch_up;
  catch_up.BeforePoll(kWake);
  const Instant late = kWake + 60'000;
  REQUIRE(catch_up.Holds(late, true, false));
  Instant now = late;
  SUBCASE("a commit that takes three seconds") {
    for (int turn = 0; turn < 300; ++turn) {
      now = now + 10;
      catch_up.BeforePoll(now);
      REQUIRE(catch_up.Holds(now, true, true));
    }
  }
  SUBCASE("a loop that stands still for three seconds") {
    catch_up.BeforePoll(now);
    now = now + 3'000;
    REQUIRE(catch_up.Holds(now, true, false));
  }
  const Instant end = now + CatchUp::kHoldMsMax;
  for (now = now + 10; now < end + (-CatchUp::kLateMs); now = now + 10) {
    catch_up.BeforePoll(now);
    CHECK(catch_up.Holds(now, true, false));
  }
  catch_up.BeforePoll(end);
  CHECK_FALSE(catch_up.Holds(end, true, false));
}

TEST_CASE("a loop that is late at each turn comes to the end of a flood") {
  CatchUp catch_up;
  Instant now = kWake;
  int held = 0;
  do {
    catch_up.BeforePoll(now);
    now = now + 60'000;
    ++held;
  } while (catch_up.Holds(now, true, false) && held < 100);
  CHECK(held == 1 + CatchUp::kHoldMsMax / CatchUp::kLateMs);
}

TEST_CASE("while the disk stalls, what needs no input waits for one poll of a loop that was late") {
  CatchUp catch_up;
  CHECK(catch_up.polled());
  catch_up.BeforePoll(kWake);
  CHECK(catch_up.Holds(kWake, true, true));
  CHECK(catch_up.polled());
  const Instant late = kWake + CatchUp::kLateMs + 1;
  CHECK(catch_up.Holds(late, true, true));
  CHECK_FALSE(catch_up.polled());
  catch_up.BeforePoll(late);
  CHECK(catch_up.Holds(late, true, true));
  CHECK(catch_up.polled());
  // The stall has ended while the loop was late again.
  CHECK(catch_up.Holds(late + 500, false, false));
  CHECK_FALSE(catch_up.polled());
}

TEST_CASE("a loop that is late at each turn has polled at every other one, whatever stalls") {
  CatchUp catch_up;
  Instant now = kWake;
  int polled = 0;
  for (int turn = 0; turn < 100; ++turn) {
    catch_up.BeforePoll(now);
    now = now + 2 * CatchUp::kLateMs;
    const bool holds = catch_up.Holds(now, turn % 3 == 0, turn % 7 < 5);
    CHECK((holds || catch_up.polled()));
    if (catch_up.polled()) ++polled;
  }
  CHECK(polled >= 50);
}

TEST_CASE("a disk that stalls at each commit does not hold deadlines up for ever") {
  CatchUp catch_up;
  Instant now = kWake;
  int done = 0;
  for (int turn = 0; turn < 1'000; ++turn) {
    now = now + 10;
    catch_up.BeforePoll(now);
    if (!catch_up.Holds(now, true, turn % 10 >= 5)) ++done;
  }
  CHECK(done >= 5);
}

TEST_CASE("a loop that is late at each turn does what is due at every other one at least") {
  CatchUp catch_up;
  Instant now = kWake;
  int done = 0;
  for (int turn = 0; turn < 100; ++turn) {
    catch_up.BeforePoll(now);
    now = now + 2 * CatchUp::kLateMs;
    if (!catch_up.Holds(now, false, false)) ++done;
  }
  CHECK(done == 50);
}

}  // namespace
}  // namespace nowcalls::node
