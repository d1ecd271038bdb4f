// The oracle by itself about calls a second.
#include <doctest/doctest.h>

#include <cstdint>

#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

// Flow 1 allows two calls a second.
struct RateCourt {
  RateCourt() {
    oracle.AddFlow(1, {});
    const LevelSetting two{.in_force = true, .count = 2};
    oracle.levels().Asked(oracle.Tick(), {{1, [two](const LevelSetting&) { return two; }}});
    oracle.levels().Answered(oracle.Tick(), true);
    oracle.ServerReady(false, {}, {});
  }
  void Pass(int64_t duration_ms) {
    timeline.RunUntil(timeline.now_us() + duration_ms * kMs, [] { return false; });
  }

  Timeline timeline;
  Oracle oracle{&timeline, /*grace_ms=*/0};
};

TEST_CASE("no more calls pass in a window than the rule allows") {
  RateCourt court;
  const auto pass = [&](int64_t count, int64_t took_ms = 0) {
    const uint64_t asked = court.oracle.Tick();
    const int64_t asked_ms = court.timeline.now_ms();
    court.Pass(took_ms);
    court.oracle.CallsPassed(1, count, asked, asked_ms, 0);
  };
  pass(2);
  SUBCASE("within the window") {
    court.Pass(800);
    pass(1);
    REQUIRE(court.oracle.violations().size() == 1);
    CHECK(court.oracle.violations().front() ==
          "S4 3 calls of flow 1 passed within a second that allows 2 at 800 ms");
  }
  SUBCASE("perhaps behind it") {
    court.Pass(800);
    pass(2, 100);
    CHECK(court.oracle.violations().empty());
  }
  SUBCASE("under another server") {
    court.oracle.ServerDied({});
    court.oracle.ServerReady(false, {}, {});
    pass(2);
    CHECK(court.oracle.violations().empty());
  }
  SUBCASE("beside a call that is borrowed from the next bucket") {
    court.oracle.CallsPassed(1, 2, court.oracle.Tick(), court.timeline.now_ms(), 100);
    CHECK(court.oracle.violations().empty());
  }
  SUBCASE("under the server before, whose answer comes late") {
    const uint64_t asked = court.oracle.Tick();
    court.oracle.ServerDied({});
    court.oracle.ServerReady(false, {}, {});
    pass(2);
    court.oracle.CallsPassed(1, 2, asked, court.timeline.now_ms(), 0);
    CHECK(court.oracle.violations().empty());
  }
  SUBCASE("under a rule that is new") {
    const auto gone = [](const LevelSetting&) { return LevelSetting{}; };
    const auto back = [](const LevelSetting&) {
      return LevelSetting{.in_force = true, .count = 2};
    };
    court.oracle.levels().Asked(court.oracle.Tick(), {{1, gone}});
    court.oracle.levels().Answered(court.oracle.Tick(), true);
    court.oracle.levels().Asked(court.oracle.Tick(), {{1, back}});
    court.oracle.levels().Answered(court.oracle.Tick(), true);
    pass(2);
    CHECK(court.oracle.violations().empty());
  }
}

}  // namespace
}  // namespace nowcalls::sim
