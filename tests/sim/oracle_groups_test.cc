// The oracle on acquire_alls: tokens that share a request id, parts of groups, and order.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

constexpr LinkId kGroupLink = 1;

// Flows 1 and 2 let two in each, for 4 s, offline for 2 s; flow 2 for so long with all keeps,
// unless it is 0. "shop/anna" is online.
class GroupCourt {
 public:
  explicit GroupCourt(int64_t max_hold_ms = 0) {
    LevelSetting two{.in_force = true, .count = 2};
    const auto set = [two](const LevelSetting&) { return two; };
    oracle.AddFlow(1, {.hold_ms = 4'000, .client_offline_ms = 2'000});
    oracle.AddFlow(2, {.hold_ms = 4'000, .max_hold_ms = max_hold_ms, .client_offline_ms = 2'000});
    oracle.levels().Asked(oracle.Tick(), {{1, set}, {2, set}});
    oracle.levels().Answered(oracle.Tick(), true);
    oracle.ServerReady(ClockGap::kNone, {}, {});
    oracle.SessionAsked(kGroupLink, "shop/anna");
    oracle.SessionSeen(kGroupLink, "shop/anna");
  }

  std::vector<OpId> AskBoth(uint64_t request_id, const AcquireTerms& terms = {}) {
    return oracle.AcquireAllAsked("shop/anna", {{1, 1}, {2, 1}}, request_id, terms);
  }
  // The ids of tokens are their fences.
  void Grant(OpId op, uint64_t fence) {
    oracle.AcquireGranted(op, kGroupLink, fence, fence, 4'000);
  }
  static SeenToken Seen(uint64_t fence, int64_t flow, uint64_t request_id) {
    return {fence, fence, "shop/anna", flow, 1, request_id};
  }
  void Pass(int64_t duration_ms) {
    timeline.RunUntil(timeline.now_us() + duration_ms * kMs, [] { return false; });
  }
  // The invariant of the first violation; empty when there is none.
  std::string Verdict() const {
    return oracle.violations().empty() ? "" : oracle.violations().front().substr(0, 2);
  }

  Timeline timeline;
  Oracle oracle{&timeline, 10'000};
};

TEST_CASE("tokens share a request id only if one group has asked for them") {
  GroupCourt court;
  const std::vector<OpId> ops = court.AskBoth(7);
  court.Grant(ops[0], 5);
  SUBCASE("a group") {
    court.Grant(ops[1], 6);
    court.oracle.Audit({GroupCourt::Seen(5, 1, 7), GroupCourt::Seen(6, 2, 7)});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("fences that do not follow each other") {
    court.Grant(ops[1], 7);
    CHECK(court.Verdict() == "I3");
  }
  SUBCASE("a flow that is there twice") {
    court.Grant(court.oracle.AcquireAsked("shop/anna", 1, 1, 7), 6);
    CHECK(court.Verdict() == "I3");
  }
}

TEST_CASE("a part of a group in the ledger is found, unless an end may explain it") {
  GroupCourt court;
  court.AskBoth(7);
  SUBCASE("a part") {
    court.oracle.Audit({GroupCourt::Seen(5, 1, 7)});
    CHECK(court.Verdict() == "I3");
  }
  SUBCASE("the whole") {
    court.oracle.Audit({GroupCourt::Seen(5, 1, 7), GroupCourt::Seen(6, 2, 7)});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("a part, after an administrator took tokens of the other flow back") {
    court.oracle.ReclaimAllAsked(2, "");
    court.oracle.Audit({GroupCourt::Seen(5, 1, 7)});
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("the longest hold of a rule, or of the request, may have ended a part of a group") {
  SUBCASE("of the rule") {
    GroupCourt court(/*max_hold_ms=*/300);
    court.AskBoth(7);
    court.Pass(301);
    court.oracle.Audit({GroupCourt::Seen(5, 1, 7)});
    CHECK(court.Verdict().empty());
  }
  SUBCASE("of the rule, and its time is not over") {
    GroupCourt court(/*max_hold_ms=*/300);
    court.AskBoth(7);
    court.Pass(200);
    court.oracle.Audit({GroupCourt::Seen(5, 1, 7)});
    CHECK(court.Verdict() == "I3");
  }
  SUBCASE("of the request") {
    GroupCourt court;
    court.AskBoth(7, {.hold_ms = 300});
    court.Pass(301);
    court.oracle.Audit({GroupCourt::Seen(5, 1, 7)});
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("an absence that is over may have ended a part of a group, if it was long enough") {
  GroupCourt court;
  court.AskBoth(7);
  court.oracle.LinkBroken(kGroupLink);
  const auto come_back_after = [&](int64_t absent_ms) {
    court.Pass(absent_ms);
    court.oracle.SessionAsked(kGroupLink + 1, "shop/anna");
    court.oracle.SessionSeen(kGroupLink + 1, "shop/anna");
    court.oracle.Audit({GroupCourt::Seen(5, 1, 7)});
    return court.Verdict();
  };
  SUBCASE("as long as clientOfflineTime") { CHECK(come_back_after(2'000).empty()); }
  SUBCASE("shorter") { CHECK(come_back_after(1'999) == "I3"); }
}

TEST_CASE("the items of a group are no other request with its id") {
  GroupCourt court;
  const std::vector<OpId> ops = court.AskBoth(7);
  SUBCASE("refused for its own id") {
    court.oracle.AcquireRefused(ops[0], Refusal{.word = "request_id", .figures = {}});
    CHECK(court.Verdict() == "S1");
  }
  SUBCASE("asked before") {
    court.oracle.AcquireRefused(court.AskBoth(7)[0], Refusal{.word = "request_id", .figures = {}});
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("a group may be overtaken where it does not stand, and may itself overtake nobody") {
  GroupCourt court;
  const AcquireTerms terms{.link = kGroupLink, .wait_ms = 1'000};
  const auto single = [&] { return court.oracle.AcquireAsked("shop/anna", 1, 1, 0, terms); };
  SUBCASE("by a single one") {
    const std::vector<OpId> ops = court.AskBoth(0, terms);
    court.Grant(single(), 5);
    court.Grant(ops[0], 6);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("a single one by a group") {
    const OpId waits = single();
    court.Grant(court.AskBoth(0, terms)[0], 5);
    court.Grant(waits, 6);
    CHECK(court.Verdict() == "S2");
  }
}

}  // namespace
}  // namespace nowcalls::sim
