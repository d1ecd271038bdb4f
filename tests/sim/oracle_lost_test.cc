// The oracle by itself: holds, notices of lost tokens, and listings of waiters.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

constexpr LinkId kAnna = 1;
constexpr LinkId kAlso = 2;

// Flow 1 lets two in, each for 4 s and, with all keeps, 6 s. "shop/anna" listens on two
// connections.
class LossCourt {
 public:
  LossCourt() {
    oracle.AddFlow(1, {.hold_ms = 4'000, .max_hold_ms = 6'000, .client_offline_ms = 2'000});
    LevelSetting two{.in_force = true, .count = 2};
    oracle.levels().Asked(oracle.Tick(), {{1, [two](const LevelSetting&) { return two; }}});
    oracle.levels().Answered(oracle.Tick(), true);
    oracle.ServerReady(ClockGap::kNone, {}, {});
    for (const LinkId link : {kAnna, kAlso}) {
      oracle.SessionAsked(link, "shop/anna");
      oracle.SessionSeen(link, "shop/anna");
      oracle.ListenerSeen(link, "shop/anna", /*prompt=*/true);
    }
  }

  // A token whose id is its fence.
  SeenToken Grant(uint64_t fence, int64_t wanted_ms, int64_t told_ms) {
    const OpId op = oracle.AcquireAsked("shop/anna", 1, 1, 0, {.hold_ms = wanted_ms});
    oracle.AcquireGranted(op, kAnna, fence, fence, told_ms);
    return {fence, fence, "shop/anna", 1, 1, 0};
  }
  void Reclaim(uint64_t token) { oracle.ReleaseAnswered(oracle.ReleaseAsked({}, token), true); }
  void Tell(LinkId link, uint64_t token, const std::string& reason) {
    oracle.LostTold(link, {token, 1, reason});
  }
  void Pass(int64_t duration_ms) {
    timeline.RunUntil(timeline.now_us() + duration_ms * kMs, [] { return false; });
  }
  // The invariant of the first violation; empty when there is none.
  std::string Verdict() const {
    return oracle.violations().empty() ? "" : oracle.violations().front().substr(0, 2);
  }

  Timeline timeline;
  Oracle oracle{&timeline, /*grace_ms=*/10'000};
};

TEST_CASE("a grant must tell the hold that was asked for, as far as the rule allows") {
  LossCourt court;
  SUBCASE("less than the rule's") { court.Grant(5, 300, 300); }
  SUBCASE("the rule's") { court.Grant(5, 0, 4'000); }
  SUBCASE("more than the rule's") { court.Grant(5, 9'000, 4'000); }
  CHECK(court.Verdict().empty());
  SUBCASE("not what was asked for") {
    court.Grant(5, 300, 4'000);
    CHECK(court.Verdict() == "S6");
  }
  SUBCASE("beyond the rule") {
    court.Grant(5, 9'000, 9'000);
    CHECK(court.Verdict() == "S6");
  }
}

TEST_CASE("a keep must tell what is left of the longest hold") {
  LossCourt court;
  court.Grant(5, 0, 4'000);
  court.Pass(3'500);
  const OpId keep = court.oracle.KeepAsked("shop/anna", 5);
  SUBCASE("the rule's hold") {
    court.oracle.KeepAnswered(keep, true, 4'000);
    CHECK(court.Verdict() == "S6");
  }
  SUBCASE("less than is left") {
    court.oracle.KeepAnswered(keep, true, 2'499);
    CHECK(court.Verdict() == "S6");
  }
  SUBCASE("what is left, and it holds so long") {
    court.oracle.KeepAnswered(keep, true, 2'500);
    CHECK(court.Verdict().empty());
    court.Pass(2'499);
    court.oracle.Audit({});
    CHECK(court.Verdict() == "I1");
  }
}

TEST_CASE("a token must end with its longest hold, and with the hold that it asked for") {
  LossCourt court;
  court.Pass(3'000);
  const SeenToken token = court.Grant(5, 300, 300);
  int64_t due_ms = 4'000;  // One from before the start would be spared until then.
  SUBCASE("kept") {
    due_ms = 9'000;
    court.oracle.KeepAnswered(court.oracle.KeepAsked("shop/anna", 5), true, 4'000);
    court.Pass(3'900);
    court.oracle.KeepAnswered(court.oracle.KeepAsked("shop/anna", 5), true, 2'100);
  }
  SUBCASE("not kept") {}
  constexpr int64_t kSweepMs = 5'100;  // As Promptness has it.
  court.Pass(due_ms + kSweepMs - court.timeline.now_ms());
  court.oracle.Audit({token});
  CHECK(court.Verdict().empty());
  court.Pass(1);
  court.oracle.Audit({token});
  CHECK(court.Verdict() == "I7");
}

TEST_CASE("a notice must be of a token of the session that was taken back, with the reason") {
  LossCourt court;
  const SeenToken token = court.Grant(5, 0, 4'000);
  SUBCASE("nothing has ended it") { court.Tell(kAnna, 5, "admin"); }
  SUBCASE("its time is not over") {
    court.Pass(3'999);
    court.Tell(kAnna, 5, "resource_timeout");
  }
  SUBCASE("its session is online") { court.Tell(kAnna, 5, "client_offline"); }
  SUBCASE("another reason") {
    court.Reclaim(5);
    court.Tell(kAnna, 5, "rule_removed");
  }
  SUBCASE("released before") {
    court.oracle.ReleaseAnswered(court.oracle.ReleaseAsked("shop/anna", 5), true);
    court.Pass(9'000);
    court.Tell(kAnna, 5, "resource_timeout");
  }
  SUBCASE("released, as is told later") {
    const OpId release = court.oracle.ReleaseAsked("shop/anna", 5);
    court.Pass(4'000);
    court.Tell(kAnna, 5, "resource_timeout");
    court.oracle.ReleaseAnswered(release, true);
  }
  SUBCASE("told twice") {
    court.Reclaim(5);
    court.Tell(kAnna, 5, "admin");
    CHECK(court.Verdict().empty());
    court.Tell(kAnna, 5, "admin");
  }
  SUBCASE("of another flow") {
    court.Reclaim(5);
    court.oracle.LostTold(kAnna, {5, 2, "admin"});
  }
  SUBCASE("nobody asked for the token") { court.Tell(kAnna, 6, "admin"); }
  SUBCASE("the connection does not listen") {
    court.Reclaim(5);
    court.Tell(3, 5, "admin");
  }
  CHECK(court.Verdict() == "S7");
}

TEST_CASE("a token that is told lost is gone for ever") {
  LossCourt court;
  const SeenToken token = court.Grant(5, 0, 4'000);
  SUBCASE("in the same life") {
    court.Pass(4'000);
    court.Tell(kAnna, 5, "resource_timeout");
    CHECK(court.Verdict().empty());
    court.oracle.Audit({token});
  }
  SUBCASE("after a death") {
    court.Pass(4'000);
    court.Tell(kAnna, 5, "resource_timeout");
    court.oracle.ServerDied({token});
  }
  SUBCASE("told by a server that has died since") {
    court.oracle.ServerDied({token});
    court.Tell(kAnna, 5, "admin");
  }
  SUBCASE("told before the answer to its acquire") {
    court.oracle.AcquireAsked("shop/anna", 1, 1, 0);
    court.Tell(kAnna, 6, "admin");
    CHECK(court.Verdict().empty());
    court.oracle.Audit({token, {6, 6, "shop/anna", 1, 1, 0}});
  }
  CHECK(court.Verdict() == "I2");
}

TEST_CASE("each connection that listens must be told soon") {
  LossCourt court;
  court.Grant(5, 0, 4'000);
  court.Reclaim(5);
  court.Tell(kAnna, 5, "admin");
  SUBCASE("told") { court.Tell(kAlso, 5, "admin"); }
  SUBCASE("broken") { court.oracle.LinkBroken(kAlso); }
  SUBCASE("the server has died") {
    for (const LinkId link : {kAnna, kAlso}) court.oracle.LinkBroken(link);
    court.oracle.ServerDied({});
    court.oracle.ServerReady(ClockGap::kNone, {}, {});
  }
  SUBCASE("not told") {
    court.Pass(2'000);
    court.oracle.Audit({});
    CHECK(court.Verdict().empty());
    court.Pass(1);
    court.oracle.Audit({});
    CHECK(court.Verdict() == "S7");
    return;
  }
  court.Pass(60'000);
  court.oracle.Audit({});
  CHECK(court.Verdict().empty());
}

TEST_CASE("a connection that listens later is not told of what was lost before") {
  LossCourt court;
  court.Grant(5, 0, 4'000);
  court.oracle.SessionSeen(3, "shop/anna");
  court.oracle.ListenerSeen(3, "shop/anna", /*prompt=*/true);
  court.Reclaim(5);
  court.Tell(kAnna, 5, "admin");
  court.Tell(kAlso, 5, "admin");
  court.Pass(60'000);
  court.oracle.Audit({});
  CHECK(court.Verdict().empty());
}

TEST_CASE("a row of waiters must be an acquire that waits") {
  LossCourt court;
  const auto ask = [&] {
    return court.oracle.AcquireAsked("shop/anna", 1, 1, 0, {.link = kAnna, .wait_ms = 1'000});
  };
  std::string verdict = "S8";
  const OpId answered = ask();
  const WaitersLook before = court.oracle.WaitersAsked();
  court.oracle.AcquireRefused(answered);
  const WaitersLook look = court.oracle.WaitersAsked();
  SUBCASE("answered after the listing was asked for") {
    verdict = "";
    court.oracle.WaitersTold(before, {{"shop/anna", 1, 1, false, 1}});
  }
  SUBCASE("answered before") { court.oracle.WaitersTold(look, {{"shop/anna", 1, 1, false, 1}}); }
  SUBCASE("of another class") {
    ask();
    court.oracle.WaitersTold(look, {{"shop/anna", 1, 1, true, 1}});
  }
  SUBCASE("shown twice") {
    ask();
    court.oracle.WaitersTold(look, {{"shop/anna", 1, 1, false, 1}, {"shop/anna", 1, 1, false, 2}});
  }
  SUBCASE("at a place that is not its own") {
    ask();
    court.oracle.WaitersTold(look, {{"shop/anna", 1, 1, false, 2}});
  }
  SUBCASE("of a server that has died since") {
    verdict = "";
    court.oracle.ServerDied({});
    court.oracle.ServerReady(ClockGap::kNone, {}, {});
    court.oracle.WaitersTold(look, {{"shop/anna", 1, 1, false, 1}});
  }
  CHECK(court.Verdict() == verdict);
}

TEST_CASE("waiters must be granted in the order of the listing") {
  LossCourt court;
  const auto ask = [&](const std::string& owner, LinkId link) {
    return court.oracle.AcquireAsked(owner, 1, 1, 0, {.link = link, .wait_ms = 10'000});
  };
  const OpId anna = ask("shop/anna", kAnna);
  const OpId bert = ask("shop/bert", 7);
  court.oracle.WaitersTold(court.oracle.WaitersAsked(),
                           {{"shop/bert", 1, 1, false, 1}, {"shop/anna", 1, 1, false, 2}});
  bool in_order = true;
  SUBCASE("in order") {}
  SUBCASE("not in order") { in_order = false; }
  court.oracle.AcquireGranted(anna, kAnna, in_order ? 6 : 5, in_order ? 6 : 5, 4'000);
  court.oracle.AcquireGranted(bert, 7, in_order ? 5 : 6, in_order ? 5 : 6, 4'000);
  CHECK(court.Verdict() == (in_order ? "" : "S8"));
}

}  // namespace
}  // namespace nowcalls::sim
