// The oracle by itself: each broken promise is named, and none that was kept.
#include "sim/oracle.h"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace nowcalls::sim {
namespace {

constexpr LinkId kLink = 1;
constexpr int64_t kGraceMs = 10'000;

// Flow 1 lets two in, each for 4 s, offline for 2 s; "shop/anna" is online.
class Court {
 public:
  Court() {
    oracle.AddFlow(1, {.hold_ms = 4'000, .client_offline_ms = 2'000});
    LevelSetting two{.in_force = true, .count = 2};
    oracle.levels().Asked(oracle.Tick(), {{1, [two](const LevelSetting&) { return two; }}});
    oracle.levels().Answered(oracle.Tick(), true);
    oracle.ServerReady(ClockGap::kNone, {}, {});
    oracle.SessionAsked(kLink, "shop/anna");
    oracle.SessionSeen(kLink, "shop/anna");
  }

  // A token whose id is its fence.
  SeenToken Grant(uint64_t fence, uint64_t request_id = 0) {
    const OpId op = oracle.AcquireAsked("shop/anna", 1, 1, request_id);
    oracle.AcquireGranted(op, kLink, fence, fence, 4'000);
    return {fence, fence, "shop/anna", 1, 1, request_id};
  }
  void Pass(int64_t duration_ms) {
    timeline.RunUntil(timeline.now_us() + duration_ms * kMs, [] { return false; });
  }
  // The invariant of the first violation; empty when there is none.
  std::string Verdict() const {
    return oracle.violations().empty() ? "" : oracle.violations().front().substr(0, 2);
  }

  Timeline timeline;
  Oracle oracle{&timeline, kGraceMs};
};

TEST_CASE("an acknowledged token must be in the ledger until its deadline") {
  Court court;
  court.Grant(5);
  SUBCASE("lost") {
    court.Pass(3'999);
    court.oracle.Audit({});
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("timed out") {
    court.Pass(4'000);
    court.oracle.Audit({});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("kept and lost") {
    court.Pass(3'000);
    court.oracle.KeepAnswered(court.oracle.KeepAsked("shop/anna", 5), true, 4'000);
    court.Pass(3'000);
    court.oracle.Audit({});
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("its client was gone for too long") {
    court.oracle.LinkBroken(kLink);
    court.Pass(2'000);
    court.oracle.Audit({});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("its release may have been carried out") {
    court.oracle.ReleaseAsked("shop/anna", 5);
    court.oracle.Audit({});
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("a live token is known to its holder, and nobody else can end it") {
  Court court;
  court.Grant(5);
  SUBCASE("not known") {
    court.oracle.ReleaseAnswered(court.oracle.ReleaseAsked("shop/anna", 5), false);
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("released by a stranger") {
    court.oracle.ReleaseAnswered(court.oracle.ReleaseAsked("shop/bert", 5), true);
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("refused to a stranger") {
    court.oracle.ReleaseAnswered(court.oracle.ReleaseAsked("shop/bert", 5), false);
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("a token that has ended does not come back") {
  Court court;
  const SeenToken token = court.Grant(5);
  court.oracle.ReleaseAnswered(court.oracle.ReleaseAsked("shop/anna", 5), true);
  CHECK(court.Verdict().empty());
  SUBCASE("in the ledger") { court.oracle.Audit({token}); }
  SUBCASE("released twice") {
    court.oracle.ReleaseAnswered(court.oracle.ReleaseAsked("shop/anna", 5), true);
  }
  SUBCASE("kept") {
    court.oracle.KeepAnswered(court.oracle.KeepAsked("shop/anna", 5), true, 4'000);
  }
  CHECK(court.Verdict() == "I2");
}

TEST_CASE("no token is there that nobody asked for") {
  Court court;
  const SeenToken found{7, 7, "shop/anna", 1, 1, 9};
  SUBCASE("never asked for") {
    court.oracle.Audit({found});
    CHECK(court.Verdict() == "I3");
  }
  SUBCASE("asked for and not answered") {
    court.oracle.AcquireAsked("shop/anna", 1, 1, 9);
    court.oracle.Audit({found});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("refused") {
    const OpId op = court.oracle.AcquireAsked("shop/anna", 1, 1, 9);
    court.oracle.Audit({found});
    court.oracle.AcquireRefused(op);
    CHECK(court.Verdict() == "I3");
  }
  SUBCASE("asked for by another") {
    court.oracle.AcquireAsked("shop/bert", 1, 1, 9);
    court.oracle.Audit({found});
    CHECK(court.Verdict() == "I3");
  }
  SUBCASE("with another count than was acknowledged") {
    SeenToken token = court.Grant(5);
    token.count = 2;
    court.oracle.Audit({token});
    CHECK(court.Verdict() == "I3");
  }
  SUBCASE("a second one for a request id") {
    court.Grant(5, 9);
    court.Grant(6, 9);
    CHECK(court.Verdict() == "I3");
  }
}

TEST_CASE("the server reports what the ledger holds") {
  Court court;
  const SeenToken token = court.Grant(5);
  court.oracle.ServerDied({token});
  SUBCASE("the same") {
    court.oracle.ServerReady(ClockGap::kNone, {token}, {{1, 1}});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("more") {
    court.oracle.ServerReady(ClockGap::kNone, {token}, {{1, 2}});
    CHECK(court.Verdict() == "I4");
  }
}

TEST_CASE("no grant goes beyond the level") {
  Court court;
  const SeenToken first = court.Grant(5);
  const SeenToken second = court.Grant(6);
  CHECK(court.Verdict().empty());
  SUBCASE("acknowledged") {
    court.Grant(7);
    CHECK(court.Verdict() == "I5");
  }
  SUBCASE("in the ledger alone") {
    court.oracle.AcquireAsked("shop/anna", 1, 1, 0);
    court.oracle.Audit({first, second, {7, 7, "shop/anna", 1, 1, 0}});
    CHECK(court.Verdict() == "I5");
  }
  SUBCASE("a level that has fallen ends nothing") {
    court.oracle.levels().Asked(court.oracle.Tick(),
                                {{1, [](const LevelSetting&) { return LevelSetting{}; }}});
    court.oracle.levels().Answered(court.oracle.Tick(), true);
    court.oracle.Audit({first, second});
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("what an answer tells of its flow is possible") {
  Court court;
  court.Grant(5);
  const OpId op = court.oracle.AcquireAsked("shop/anna", 1, 1, 0);
  const auto grant = [&](const Figures& figures) {
    court.oracle.AcquireGranted(op, kLink, 6, 6, 4'000, figures);
  };
  SUBCASE("as it is") {
    grant({.now_calls = 2, .level = 2});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("another may have been granted meanwhile") {
    court.oracle.AcquireAsked("shop/anna", 1, 3, 0);
    grant({.now_calls = 5, .level = 2});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("without the token itself") {
    grant({.now_calls = 1, .level = 2});
    CHECK(court.Verdict() == "I4");
  }
  SUBCASE("more than was ever granted") {
    grant({.now_calls = 3, .level = 2});
    CHECK(court.Verdict() == "I4");
  }
  SUBCASE("another level") {
    grant({.now_calls = 2, .level = 3});
    CHECK(court.Verdict() == "I4");
  }
}

TEST_CASE("who is refused was in the way of a limit") {
  Court court;
  court.Grant(5);
  const OpId op = court.oracle.AcquireAsked("shop/anna", 1, 1, 0, {.wait_ms = 1'000});
  const auto refuse = [&](const std::string& word, int64_t now_calls) {
    court.oracle.AcquireRefused(
        op, Refusal{.word = word, .figures = {.now_calls = now_calls, .level = 2}});
  };
  SUBCASE("there was room") {
    refuse("level", 1);
    CHECK(court.Verdict() == "S1");
  }
  SUBCASE("there may have been none") {
    court.oracle.AcquireAsked("shop/anna", 1, 1, 0);
    refuse("level", 2);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("it asked for no more than the level") {
    refuse("over_level", 2);
    CHECK(court.Verdict() == "S1");
  }
  SUBCASE("there is no cap") {
    refuse("client_cap", 1);
    CHECK(court.Verdict() == "S1");
  }
  SUBCASE("nobody waits") {
    refuse("waiters_ahead", 1);
    CHECK(court.Verdict() == "S1");
  }
  SUBCASE("it has not waited") {
    court.Pass(998);
    refuse("queue_timeout", 1);
    CHECK(court.Verdict() == "S1");
  }
  SUBCASE("it has waited while there was room") {
    court.Pass(1'000);
    refuse("queue_timeout", 1);
    CHECK(court.Verdict() == "S1");
  }
  SUBCASE("it has waited behind another") {
    court.oracle.AcquireAsked("shop/anna", 1, 2, 0, {.wait_ms = 1'000});
    court.Pass(1'000);
    refuse("queue_timeout", 1);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("nobody drains") {
    refuse("draining", 1);
    CHECK(court.Verdict() == "S1");
  }
  SUBCASE("nobody has cancelled") {
    refuse("cancelled", 1);
    CHECK(court.Verdict() == "S1");
  }
  SUBCASE("it has a rule") {
    refuse("NO_RULE_EXISTS", 0);
    CHECK(court.Verdict() == "S1");
  }
}

TEST_CASE("nothing is granted to a request whose cancel was answered") {
  Court court;
  const SeenToken token{7, 7, "shop/anna", 1, 1, 9};
  court.oracle.AcquireAsked("shop/anna", 1, 1, 9);
  const OpId cancel = court.oracle.CancelAsked("shop/anna", 9, kLink);
  court.oracle.CancelAnswered(cancel, false);
  SUBCASE("granted after all") {
    court.oracle.Audit({token});
    CHECK(court.Verdict() == "I2");
  }
  SUBCASE("granted to who asks again") {
    court.Grant(7, 9);
    CHECK(court.Verdict() == "I2");
  }
  SUBCASE("remembered no longer") {
    court.Pass(60'000);
    court.oracle.Audit({token});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("the session has ended with its connection") {
    court.oracle.LinkBroken(kLink);
    court.oracle.Audit({token});
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("who waits is not overtaken by who came later") {
  Court court;
  const AcquireTerms usual{.link = kLink, .wait_ms = 1'000};
  const AcquireTerms first{.link = kLink, .prioritized = true, .wait_ms = 1'000};
  const auto grant = [&](OpId op, uint64_t fence) {
    court.oracle.AcquireGranted(op, kLink, fence, fence, 4'000);
  };
  SUBCASE("in order") {
    const OpId early = court.oracle.AcquireAsked("shop/anna", 1, 1, 0, usual);
    const OpId late = court.oracle.AcquireAsked("shop/anna", 1, 1, 0, usual);
    grant(late, 6);
    grant(early, 5);
    CHECK(court.Verdict().substr(0, 2) != "S2");
  }
  SUBCASE("overtaken") {
    const OpId early = court.oracle.AcquireAsked("shop/anna", 1, 1, 0, usual);
    const OpId late = court.oracle.AcquireAsked("shop/anna", 1, 1, 0, usual);
    grant(late, 5);
    grant(early, 6);
    CHECK(court.Verdict() == "S2");
  }
  SUBCASE("by a prioritized one") {
    const OpId early = court.oracle.AcquireAsked("shop/anna", 1, 1, 0, usual);
    const OpId late = court.oracle.AcquireAsked("shop/anna", 1, 1, 0, first);
    grant(late, 5);
    grant(early, 6);
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("a token ends when its time is over") {
  Court court;
  const SeenToken token = court.Grant(5);
  SUBCASE("soon") {
    court.Pass(4'000 + 5'100);
    court.oracle.Audit({token});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("late") {
    court.Pass(10'000 + 5'101);
    court.oracle.Audit({token});
    CHECK(court.Verdict() == "I7");
  }
  SUBCASE("later, when its client may have gone meanwhile") {
    court.Pass(9'000);
    court.oracle.LinkBroken(kLink);
    court.Pass(1'000 + 5'101);
    court.oracle.Audit({token});
    REQUIRE(court.Verdict().empty());
    court.oracle.LinkSettled(kLink);
    court.Pass(10'000);
    court.oracle.Audit({token});
    CHECK(court.Verdict() == "I7");
  }
  SUBCASE("later, when a sweep walks over another that has ended meanwhile") {
    court.Grant(6);
    court.Pass(4'000 + 5'150);
    court.oracle.Audit({token});
    REQUIRE(court.Verdict().empty());
    court.Pass(51);
    court.oracle.Audit({token});
    CHECK(court.Verdict() == "I7");
  }
  SUBCASE("late, because the disk stood still") {
    court.oracle.ServerHindered(10'000);
    court.Pass(10'000 + 5'101);
    court.oracle.Audit({token});
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("an acquire is answered when its time is over") {
  Court court;
  const OpId op =
      court.oracle.AcquireAsked("shop/anna", 1, 1, 0, {.link = kLink, .wait_ms = 1'000});
  court.Pass(5'001);
  court.oracle.AcquireRefused(op);
  CHECK(court.Verdict() == "I7");
}

TEST_CASE("the history tells of what was taken back") {
  Court court;
  const SeenToken token = court.Grant(5);
  const std::set<uint64_t> none;
  const std::set<uint64_t> tells{token.id};
  SUBCASE("timed out") {
    court.Pass(4'000);
    court.oracle.Audit({}, &tells);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("timed out, untold") {
    court.Pass(4'000);
    court.oracle.Audit({}, &none);
    CHECK(court.oracle.violations().front().starts_with("S3"));
  }
  SUBCASE("released") {
    court.oracle.ReleaseAnswered(court.oracle.ReleaseAsked("shop/anna", 5), true);
    court.oracle.Audit({}, &none);
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("a machine that loses batches takes what was answered since the last sync, and no more") {
  Court court;
  const SeenToken safe = court.Grant(5);
  court.oracle.LedgerSynced();
  const SeenToken lost = court.Grant(6);
  court.oracle.ReleaseAnswered(court.oracle.ReleaseAsked("shop/anna", 5), true);
  court.oracle.BatchesLost();
  SUBCASE("a release and a grant") {
    court.oracle.ServerDied({safe});
    court.oracle.ServerReady(ClockGap::kAnyhow, {safe}, {{1, 1}});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("what is lost is given again") {
    court.oracle.ServerDied({safe});
    court.oracle.ServerReady(ClockGap::kAnyhow, {safe}, {{1, 1}});
    const OpId op = court.oracle.AcquireAsked("shop/bert", 1, 1, 0);
    court.oracle.AcquireGranted(op, kLink, lost.id, lost.fence, 4'000);
    CHECK(court.Verdict() == "I6");
  }
  SUBCASE("what was safe") {
    Court other;
    other.Grant(5);
    other.oracle.LedgerSynced();
    other.oracle.BatchesLost();
    other.oracle.ServerDied({});
    CHECK(other.Verdict() == "I1");
  }
}

// Seed 9002927 once: the oracle demanded the time that had been told before.
TEST_CASE("a keep puts the deadline where it would be without what was spared") {
  Court court;
  const SeenToken token = court.Grant(5, 9);
  // Asked again, it is told that it was spared for longer.
  const OpId again = court.oracle.AcquireAsked("shop/anna", 1, 1, 9);
  court.oracle.AcquireGranted(again, kLink, token.id, token.fence, 30'000);
  const OpId keep = court.oracle.KeepAsked("shop/anna", 5);
  SUBCASE("answered") {
    court.oracle.KeepAnswered(keep, true, 4'000);
    court.Pass(4'000);
    court.oracle.Audit({});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("not answered yet") {
    court.Pass(4'000);
    court.oracle.Audit({});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("too early") {
    court.oracle.KeepAnswered(keep, true, 4'000);
    court.Pass(3'999);
    court.oracle.Audit({});
    CHECK(court.Verdict() == "I1");
  }
}

// Seed 9002950 once: another connection of the session had come in between.
TEST_CASE("a token told of on a connection that broke may be gone with the session meanwhile") {
  constexpr LinkId kOther = 2;
  Court court;
  const OpId op = court.oracle.AcquireAsked("shop/anna", 1, 1, 0);
  court.oracle.LinkBroken(kLink);
  const auto hear_and_keep = [&] {
    court.oracle.SessionAsked(kOther, "shop/anna");
    court.oracle.SessionSeen(kOther, "shop/anna");
    court.oracle.AcquireGranted(op, kLink, 5, 5, 4'000);
    court.oracle.KeepAnswered(court.oracle.KeepAsked("shop/anna", 5), false, 0);
  };
  SUBCASE("long enough") {
    court.Pass(2'000);
    hear_and_keep();
    CHECK(court.Verdict().empty());
  }
  SUBCASE("not yet") {
    court.Pass(1'999);
    hear_and_keep();
    CHECK(court.Verdict() == "I1");
  }
}

// Seed 8000545 once: the oracle took it for a token that had never ended.
TEST_CASE("a token whose end is lost with the machine is due again at the next start") {
  Court court;
  const SeenToken token = court.Grant(5);
  court.oracle.LedgerSynced();
  court.Pass(4'000);
  court.oracle.Audit({});
  court.Pass(20'000);
  court.oracle.BatchesLost();
  court.oracle.ServerDied({token});
  court.oracle.ServerReady(ClockGap::kAnyhow, {token}, {{1, 1}});
  CHECK(court.Verdict().empty());
  court.Pass(20'000);
  court.oracle.Audit({token});
  CHECK(court.Verdict() == "I7");
}

// Seed 4978 once: the oracle demanded the grace of who had been back.
TEST_CASE("a session that was back after a restart, unanswered, may have lost the grace") {
  constexpr LinkId kBack = 2;
  Court court;
  const SeenToken token = court.Grant(5);
  court.oracle.ServerDied({token});
  court.oracle.ServerReady(ClockGap::kNone, {token}, {{1, 1}});
  SUBCASE("it was back") {
    court.oracle.SessionAsked(kBack, "shop/anna");
    court.oracle.LinkBroken(kBack);
    court.Pass(2'000);
    court.oracle.Audit({});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("it was not") {
    court.Pass(2'000);
    court.oracle.Audit({});
    CHECK(court.Verdict() == "I1");
  }
}

TEST_CASE("fences grow, and are given once") {
  Court court;
  court.Grant(5);
  SUBCASE("smaller") { court.Grant(4); }
  SUBCASE("given to another") {
    const OpId op = court.oracle.AcquireAsked("shop/bert", 1, 1, 0);
    court.oracle.AcquireGranted(op, kLink, 5, 5, 4'000);
  }
  CHECK(court.Verdict() == "I6");
}

TEST_CASE("a restart spares tokens, and loses none that was acknowledged") {
  Court court;
  const SeenToken token = court.Grant(5);
  SUBCASE("lost with the server") {
    court.oracle.ServerDied({});
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("gone before the shorter of its hold and the grace") {
    court.oracle.ServerDied({token});
    court.Pass(60'000);
    court.oracle.ServerReady(ClockGap::kAnyhow, {token}, {{1, 1}});
    court.Pass(3'999);
    court.oracle.Audit({});
    CHECK(court.Verdict() == "I1");
  }
  SUBCASE("gone after it") {
    court.oracle.ServerDied({token});
    court.Pass(60'000);
    court.oracle.ServerReady(ClockGap::kAnyhow, {token}, {{1, 1}});
    court.Pass(4'000);
    court.oracle.Audit({});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("acknowledged by the dead, and not in their ledger") {
    const OpId op = court.oracle.AcquireAsked("shop/anna", 1, 1, 0);
    court.oracle.ServerDied({token});
    court.oracle.AcquireGranted(op, kLink, 6, 6, 4'000);
    CHECK(court.Verdict() == "I1");
  }
}

}  // namespace
}  // namespace nowcalls::sim
