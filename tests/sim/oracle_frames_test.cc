// The oracle by itself about clients of Sentinel's frames: answers tell them less, and they reach
// each other's tokens.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

constexpr LinkId kJava = 1;

// Flow 1 lets two in, each for 4 s; "shop/@java" is online and holds token 5.
struct FrameCourt {
  FrameCourt() {
    oracle.AddFlow(1, {.hold_ms = 4'000, .client_offline_ms = 2'000});
    LevelSetting two{.in_force = true, .count = 2};
    oracle.levels().Asked(oracle.Tick(), {{1, [two](const LevelSetting&) { return two; }}});
    oracle.levels().Answered(oracle.Tick(), true);
    oracle.ServerReady(ClockGap::kNone, {}, {});
    oracle.SpeaksFrames("shop/@java");
    oracle.SessionAsked(kJava, "shop/@java");
    oracle.SessionSeen(kJava, "shop/@java");
    oracle.AcquireGranted(oracle.AcquireAsked("shop/@java", 1, 1, 0), kJava, 5, 5,
                          /*told_hold_ms=*/{});
  }
  void Pass(int64_t duration_ms) {
    timeline.RunUntil(timeline.now_us() + duration_ms * kMs, [] { return false; });
  }
  OpId Release(const std::string& owner) { return oracle.ReleaseAsked(owner, 5, Reach::kSentinel); }
  std::string Verdict() const {
    return oracle.violations().empty() ? "" : oracle.violations().front().substr(0, 2);
  }

  Timeline timeline;
  Oracle oracle{&timeline, /*grace_ms=*/0};
};

TEST_CASE("a token of which no time to hold was told is there for that of its rule") {
  FrameCourt court;
  SUBCASE("lost before") { court.Pass(3'999); }
  SUBCASE("kept, and lost before") {
    court.Pass(3'000);
    court.oracle.KeepAnswered(court.oracle.KeepAsked("shop/@java", 5), true, {});
    court.Pass(3'999);
  }
  court.oracle.Audit({});
  CHECK(court.Verdict() == "I1");
}

TEST_CASE("a session of the same namespace may release a token, and another may not") {
  FrameCourt court;
  SUBCASE("released") {
    court.oracle.ReleaseAnswered(court.Release("shop/@other"), true);
    CHECK(court.Verdict().empty());
    court.oracle.ReleaseAnswered(court.Release("shop/@java"), true);
    CHECK(court.Verdict() == "I2");
  }
  SUBCASE("not found") {
    court.oracle.ReleaseAnswered(court.Release("shop/@other"), false);
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("not found by one of another namespace") {
    court.oracle.ReleaseAnswered(court.Release("shop2/@other"), false);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("released by one of another namespace") {
    court.oracle.ReleaseAnswered(court.Release("shop2/@other"), true);
    CHECK(court.Verdict() == "I1");
  }
}

TEST_CASE("a token of a session that does not speak frames is out of their reach") {
  FrameCourt court;
  court.oracle.SessionAsked(2, "shop/worker");
  court.oracle.SessionSeen(2, "shop/worker");
  court.oracle.AcquireGranted(court.oracle.AcquireAsked("shop/worker", 1, 1, 0), 2, 6, 6, 4'000);
  const OpId asked = court.oracle.ReleaseAsked("shop/@java", 6, Reach::kSentinel);
  SUBCASE("not found") {
    court.oracle.ReleaseAnswered(asked, false);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("released") {
    court.oracle.ReleaseAnswered(asked, true);
    CHECK(court.Verdict() == "I1");
  }
}

TEST_CASE("the number of sessions that a PING tells is one that there may have been") {
  FrameCourt court;
  const auto told = [&](int64_t sessions) {
    court.oracle.OnlineTold(kNoLink, "shop", sessions, court.oracle.Tick());
    return court.Verdict();
  };
  SUBCASE("one is online") {
    CHECK(told(1).empty());
    CHECK(told(0) == "I4");
  }
  SUBCASE("another may be") {
    court.oracle.SessionAsked(2, "shop/@other");
    CHECK(told(2).empty());
    CHECK(told(3) == "I4");
  }
  SUBCASE("it may be gone") {
    court.oracle.LinkBroken(kJava);
    CHECK(told(0).empty());
  }
}

TEST_CASE("a refusal that names no limit has one") {
  FrameCourt court;
  const auto refuse = [&](int64_t count) {
    const OpId op = court.oracle.AcquireAsked("shop/@java", 1, count, 0);
    court.oracle.AcquireRefused(op, Refusal{.word = "BLOCKED", .figures = {}});
    return court.Verdict();
  };
  SUBCASE("no room") { CHECK(refuse(2).empty()); }
  SUBCASE("more than the level") { CHECK(refuse(3).empty()); }
  SUBCASE("room") { CHECK(refuse(1) == "S1"); }
}

}  // namespace
}  // namespace nowcalls::sim
