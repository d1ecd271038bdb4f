// The oracle by itself: what a server that leads no more may answer, and clocks that come late.
#include <doctest/doctest.h>

#include <string>

#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

constexpr LinkId kOld = 1;
constexpr LinkId kNew = 2;

// Flow 1 lets two in, each for 4 s. A token was granted on the connection of a server that leads no
// more.
class VainCourt {
 public:
  VainCourt() {
    oracle.AddFlow(1, {.hold_ms = 4'000, .client_offline_ms = 2'000});
    LevelSetting two{.in_force = true, .count = 2};
    oracle.levels().Asked(oracle.Tick(), {{1, [two](const LevelSetting&) { return two; }}});
    oracle.levels().Answered(oracle.Tick(), true);
    oracle.ServerReady(ClockGap::kNone, {}, {});
    oracle.SessionAsked(kOld, "shop/anna");
    oracle.SessionSeen(kOld, "shop/anna");
    oracle.AcquireGranted(Ask(7), kOld, token.id, token.fence, {});
  }

  OpId Ask(uint64_t request_id) {
    return oracle.On(kOld).AcquireAsked("shop/anna", 1, 1, request_id, {.link = kOld});
  }
  void TakeOver(ClockGap gap = ClockGap::kNone) {
    oracle.LinkBroken(kOld);
    oracle.LinkSettled(kOld);
    oracle.ServerDied({token});
    oracle.ServerReady(gap, {token}, {{1, 1}});
    oracle.SessionAsked(kNew, "shop/anna");
    oracle.SessionSeen(kNew, "shop/anna");
  }
  void Pass(int64_t duration_ms) {
    timeline.RunUntil(timeline.now_us() + duration_ms * kMs, [] { return false; });
  }
  // The invariant of the first violation; empty when there is none.
  std::string Verdict() const {
    return oracle.violations().empty() ? "" : oracle.violations().front().substr(0, 2);
  }

  Timeline timeline;
  Oracle oracle{&timeline, /*grace_ms=*/0};
  const SeenToken token{5, 5, "shop/anna", 1, 1, 7};
};

TEST_CASE("a server that leads no more grants nothing, but may repeat what it granted") {
  VainCourt court;
  court.TakeOver();
  SUBCASE("a repeat") {
    court.oracle.AcquireGranted(court.Ask(7), kOld, 5, 5, {});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("a grant") {
    court.oracle.AcquireGranted(court.Ask(8), kOld, 6, 6, {});
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("a grant that was asked for before, and is not in the ledger") {
    VainCourt late;
    const OpId asked = late.Ask(8);
    late.TakeOver();
    late.oracle.AcquireGranted(asked, kOld, 6, 6, {});
    CHECK(late.Verdict() == "I1");
  }
}

TEST_CASE("a server that leads no more ends nothing, and its refusals may be of the past") {
  VainCourt court;
  court.TakeOver();
  SUBCASE("refusals") {
    court.oracle.AcquireRefused(court.Ask(8), Refusal{.word = "level", .figures = {2, 2}});
    court.oracle.ReleaseAnswered(court.oracle.On(kOld).ReleaseAsked("shop/anna", 5), false);
    court.oracle.KeepAnswered(court.oracle.On(kOld).KeepAsked("shop/anna", 5, kOld), false, {});
    court.oracle.Audit({court.token});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("a release that is acknowledged") {
    court.oracle.ReleaseAnswered(court.oracle.On(kOld).ReleaseAsked("shop/anna", 5), true);
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("a keep of what it did not grant") {
    court.oracle.KeepAnswered(court.oracle.On(kOld).KeepAsked("shop/anna", 6, kOld), true, 4'000);
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("a release in vain excuses nothing") {
    court.oracle.On(kOld).ReleaseAsked("shop/anna", 5);
    court.oracle.Audit({});
    CHECK(court.Verdict() == "I1");
  }
}

TEST_CASE("a clock that goes on late ends no token early, and may end it later") {
  VainCourt court;
  court.Pass(3'000);
  court.TakeOver(ClockGap::kLate);
  SUBCASE("early") {
    court.Pass(900);
    court.oracle.Audit({});
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("in time") {
    court.Pass(1'100);
    court.oracle.Audit({});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("by as much as the server before was there") {
    court.Pass(4'000 + 4'500);  // A sweep may take 5 s.
    court.oracle.Audit({court.token});
    CHECK(court.Verdict().empty());
    court.Pass(1'000);
    court.oracle.Audit({court.token});
    CHECK(court.Verdict() == "I7");
  }
}

}  // namespace
}  // namespace nowcalls::sim
