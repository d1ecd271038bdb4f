// What the checker says of groups (acquire_all), each promise broken in turn.
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "crash/checker.h"
#include "crash/checker_harness.h"

namespace nowcalls::crash {
namespace {

constexpr uint64_t kGroupRequest = 7;
constexpr auto kDone = Outcome::kGranted;
constexpr auto kOpen = Outcome::kUnknown;

using Parts = std::vector<CycleBuilder::Part>;

TEST_CASE("a group that is kept whole breaks no promise") {
  CycleBuilder builder;
  builder.Up(1, "alice");
  builder.Group(2, kDone, {{1, 3, 101}, {3, 2, 102}}).WithRequest(kGroupRequest);
  SUBCASE("asked again it has the same tokens, in any order of its items") {
    builder.Group(10, kDone, {{3, 2, 102}, {1, 3, 101}}).WithRequest(kGroupRequest);
    builder.Dumped(101, 1, 3).Dumped(102, 3, 2);
  }
  SUBCASE("asked again when a part has ended it is refused") {
    builder.Release(5, 101, Outcome::kReleased);
    builder.Group(10, Outcome::kRefused, {{1, 3}, {3, 2}}).WithRequest(kGroupRequest);
    builder.Dumped(102, 3, 2);
  }
  SUBCASE("asked again when all has ended it has others") {
    builder.Release(5, 101, Outcome::kReleased).Release(5, 102, Outcome::kReleased);
    builder.Group(10, kDone, {{1, 3, 103}, {3, 2, 104}}).WithRequest(kGroupRequest);
    builder.Dumped(103, 1, 3).Dumped(104, 3, 2);
  }
  SUBCASE("its cancel ends what is left of it") {
    builder.Release(5, 101, Outcome::kReleased).Cancel(10, kGroupRequest, Outcome::kReleased);
  }
  CHECK(CheckOne(builder) == Violations{});
}

TEST_CASE("a token of an acknowledged group that is lost, or came back, is a violation") {
  CycleBuilder builder;
  SUBCASE("lost") {
    builder.Group(2, kDone, {{1, 3, 101}, {3, 2, 102}, {2, 1, 103}});
    builder.Dumped(101, 1, 3).Dumped(103, 2, 1);
    RequireOne(CheckOne(builder), "I1", "token 102 is lost");
  }
  SUBCASE("not ended by the cancel of its request") {
    builder.Group(2, kDone, {{1, 3, 101}, {3, 2, 102}}).WithRequest(kGroupRequest);
    builder.Cancel(10, kGroupRequest, Outcome::kReleased).Dumped(102, 3, 2);
    RequireOne(CheckOne(builder), "I2", "token 102 is gone, and in the ledger");
  }
  SUBCASE("of another count") {
    builder.Group(2, kDone, {{1, 3, 101}, {3, 2, 102}}).Dumped(101, 1, 3).Dumped(102, 3, 3);
    RequireOne(CheckOne(builder), "I3", "token 102 differs");
  }
}

TEST_CASE("a group above the level is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 6).Group(10, kDone, {{1, 5, 102}, {3, 1, 103}});
  builder.Release(20, 101, Outcome::kReleased).Dumped(102, 1, 5).Dumped(103, 3, 1);
  RequireOne(CheckOne(builder), "I5", "flow 1 holds 11, more than its level 10");
}

TEST_CASE("a group without an answer may be there whole or not at all") {
  CycleBuilder builder;
  builder.Group(900, kOpen, {{1, 3}, {3, 2}, {4, 1}});
  SUBCASE("whole") { builder.Dumped(101, 3, 2).Dumped(102, 1, 3).Dumped(103, 4, 1); }
  SUBCASE("not at all") {}
  SUBCASE("beside an acquire of the same flow and count") {
    builder.UnansweredAcquire(901, 3, 2);
    builder.Dumped(101, 3, 2).Dumped(102, 1, 3).Dumped(103, 3, 2).Dumped(104, 4, 1);
    // The first has a fence far from those of the group.
    builder.cycle().ledger.tokens[0].fence = 51;
  }
  SUBCASE("beside a group that shares an item and was not granted") {
    builder.Group(901, kOpen, {{1, 3}, {3, 2}, {2, 5}, {4, 1}});
    builder.Dumped(101, 1, 3).Dumped(102, 3, 2).Dumped(103, 4, 1);
  }
  CHECK(CheckOne(builder) == Violations{});
}

TEST_CASE("a group without an answer that is there in part is a violation") {
  CycleBuilder builder;
  builder.Up(1, "alice").Group(2, kOpen, {{1, 3}, {3, 2}}).WithRequest(kGroupRequest);
  SUBCASE("the first token") { builder.Dumped(101, 1, 3); }
  SUBCASE("the second") { builder.Dumped(101, 3, 2); }
  SUBCASE("both with the fence of another between") { builder.Dumped(101, 1, 3).Dumped(103, 3, 2); }
  SUBCASE("beside another acquire that was granted") {
    builder.UnansweredAcquire(10, 4, 1).Dumped(101, 4, 1).Dumped(102, 3, 2);
  }
  SUBCASE("beside another group that was") {
    builder.Group(10, kOpen, {{1, 1}, {3, 2}});
    builder.Dumped(101, 1, 1).Dumped(102, 3, 2).Dumped(103, 3, 2);
  }
  SUBCASE("parts of two do not make one") {
    builder.Group(10, kOpen, {{1, 1}, {4, 2}}).Dumped(101, 1, 3).Dumped(102, 4, 2);
  }
  SUBCASE("though an operator took tokens of another flow, or none") {
    builder.ReclaimMany(10, Action::kReclaimFlow, 2, 1, false);
    builder.ReclaimMany(10, Action::kReclaimFlow, 3, 0, false).Dumped(101, 1, 3);
  }
  RequireOne(CheckOne(builder), "I14", "without the rest of its group");
}

TEST_CASE("a group without an answer may have ended in part") {
  CycleBuilder builder;
  builder.Up(1, "alice").Group(2, kOpen, {{1, 3}, {2, 2}}).WithRequest(kGroupRequest);
  builder.Dumped(101, 1, 3);
  SUBCASE("when the hold of a rule was over") { CHECK(CheckOne(builder) == Violations{}); }
  builder.cycle().dead_us = 150 * kMs;
  SUBCASE("not before") { RequireOne(CheckOne(builder), "I14", "without the rest of its group"); }
  SUBCASE("when an operator took a flow back") {
    builder.ReclaimMany(10, Action::kReclaimFlow, 2, 1, false);
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("or a token that nobody was told of") {
    builder.Reclaim(10, 102, Outcome::kReleased);
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("when the hold that it asked for was over") {
    for (Operation& item : builder.cycle().history.operations) item.wanted_ms = 100;
    CHECK(CheckOne(builder) == Violations{});
  }
}

TEST_CASE("a group without an answer explains its own flows and counts only") {
  CycleBuilder builder;
  builder.Group(2, kOpen, {{1, 3}, {3, 2}});
  SUBCASE("another count") {
    builder.Dumped(101, 1, 3).Dumped(102, 3, 3);
    const Violations violations = CheckOne(builder);
    REQUIRE(violations.size() == 2);
    CHECK(violations[0].starts_with("I3 nobody asked for token 102"));
    CHECK(violations[1].starts_with("I14 token 101"));
  }
  SUBCASE("a token too many") {
    builder.Dumped(101, 1, 3).Dumped(102, 3, 2).Dumped(103, 4, 1);
    RequireOne(CheckOne(builder), "I3", "nobody asked for token 103");
  }
}

TEST_CASE("a group whose request id gives other tokens is a violation") {
  CycleBuilder builder;
  builder.Up(1, "alice");
  builder.Group(2, kDone, {{1, 3, 101}, {3, 2, 102}}).WithRequest(kGroupRequest);
  SUBCASE("all others") {
    builder.Group(10, kDone, {{1, 3, 103}, {3, 2, 104}}).WithRequest(kGroupRequest);
    builder.Dumped(101, 1, 3).Dumped(102, 3, 2).Dumped(103, 1, 3).Dumped(104, 3, 2);
    const Violations violations = CheckOne(builder);
    REQUIRE(violations.size() == 2);
    CHECK(
        violations[0].starts_with("I10 request 7 of client alice has token 103 beside token 101"));
    CHECK(
        violations[1].starts_with("I10 request 7 of client alice has token 104 beside token 101"));
  }
  SUBCASE("others when a part had ended") {
    builder.Release(5, 102, Outcome::kReleased);
    builder.Group(10, kDone, {{1, 3, 103}, {3, 2, 104}}).WithRequest(kGroupRequest);
    builder.Release(20, 104, Outcome::kReleased).Dumped(101, 1, 3).Dumped(103, 1, 3);
    const Violations violations = CheckOne(builder);
    REQUIRE(violations.size() == 2);
    CHECK(
        violations[0].starts_with("I10 request 7 of client alice has token 103 beside token 101"));
  }
  SUBCASE("a new one in place of the one that had ended") {
    builder.Release(5, 102, Outcome::kReleased);
    builder.Group(10, kDone, {{1, 3, 101}, {3, 2, 104}}).WithRequest(kGroupRequest);
    builder.Dumped(101, 1, 3).Dumped(104, 3, 2);
    const Violations violations = CheckOne(builder);
    REQUIRE(violations.size() == 2);
    CHECK(violations[0].starts_with("I6 token id 101 was given twice"));
    CHECK(
        violations[1].starts_with("I10 request 7 of client alice has token 104 beside token 101"));
  }
  SUBCASE("a part of it") {
    builder.Granted(10, 101, 1, 3).WithRequest(kGroupRequest);
    builder.Dumped(101, 1, 3).Dumped(102, 3, 2);
    RequireOne(CheckOne(builder), "I6", "token id 101 was given twice");
  }
  SUBCASE("none, though it is whole") {
    builder.Group(10, Outcome::kRefused, {{1, 3}, {3, 2}}).WithRequest(kGroupRequest);
    builder.Dumped(101, 1, 3).Dumped(102, 3, 2);
    RequireOne(CheckOne(builder), "I10", "a request with a live token is refused");
  }
}

TEST_CASE("a group that was only found is what its request id gives after the restart") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Group(900, kOpen, {{1, 3}, {3, 2}}).WithRequest(kGroupRequest);
  first.Dumped(101, 3, 2).Dumped(102, 1, 3);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  second.Up(2'001, "alice");
  SUBCASE("the same tokens") {
    second.Group(2'010, kDone, {{1, 3, 102}, {3, 2, 101}}).WithRequest(kGroupRequest);
    second.Dumped(101, 3, 2).Dumped(102, 1, 3);
    CHECK(checker.CheckCycle(second.cycle()) == Violations{});
    CHECK(checker.counts().groups_asked_again == 1);
  }
  SUBCASE("not others") {
    second.Group(2'010, kDone, {{1, 3, 103}, {3, 2, 104}}).WithRequest(kGroupRequest);
    for (const uint64_t id : {101, 104}) second.Dumped(id, 3, 2);
    for (const uint64_t id : {102, 103}) second.Dumped(id, 1, 3);
    const Violations violations = checker.CheckCycle(second.cycle());
    REQUIRE(violations.size() == 2);
    CHECK(
        violations[0].starts_with("I10 request 7 of client alice has token 103 beside token 101"));
  }
  SUBCASE("not one of them and another") {
    second.Group(2'010, kDone, {{1, 3, 103}, {3, 2, 101}}).WithRequest(kGroupRequest);
    second.Dumped(101, 3, 2).Dumped(102, 1, 3).Dumped(103, 1, 3);
    const Violations violations = checker.CheckCycle(second.cycle());
    REQUIRE(violations.size() == 3);
    CHECK(violations[0].starts_with("I10 a group that was asked again got other tokens"));
    CHECK(
        violations[1].starts_with("I10 request 7 of client alice has token 102 beside token 101"));
    CHECK(
        violations[2].starts_with("I10 request 7 of client alice has token 103 beside token 102"));
  }
  SUBCASE("not a refusal") {
    second.Group(2'010, Outcome::kRefused, {{1, 3}, {3, 2}}).WithRequest(kGroupRequest);
    second.Dumped(101, 3, 2).Dumped(102, 1, 3);
    RequireOne(checker.CheckCycle(second.cycle()), "I10", "a live token is refused");
  }
}

TEST_CASE("a backup that has a part of a group is a violation") {
  CycleBuilder builder;
  builder.cycle().backup = LedgerCopy{100 * kMs, {}};
  builder.Group(150, kDone, {{1, 3, 101}, {3, 2, 102}}).Dumped(101, 1, 3).Dumped(102, 3, 2);
  LedgerView& copy = builder.cycle().backup->ledger;
  SUBCASE("none of it is not") { CHECK(CheckOne(builder) == Violations{}); }
  SUBCASE("all of it is not") {
    copy = builder.cycle().ledger;
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("a part is") {
    copy.tokens = {builder.cycle().ledger.tokens[1]};
    copy.now_calls[3] = 2;
    copy.token_counts[3] = 1;
    RequireOne(CheckOne(builder), "I14", "token 101 is not in the backup");
  }
}

TEST_CASE("a log of groups reads back as what was written") {
  History history;
  const std::string asked = "ask 1 10 alice acquire 1 3 77 90 0 700001 2\n";
  ParseHistory(asked + "answer 1 20 granted 102 9 0 0 5000 101 10 300\n", &history);
  REQUIRE(history.operations.size() == 2);
  REQUIRE(history.Acquires().size() == 1);
  const Items items = history.Acquires().front();
  for (const Operation& item : items) {
    CHECK(item.items == 2);
    CHECK(item.outcome == Outcome::kGranted);
    CHECK(item.answered_us == 20);
    CHECK(item.request_id == 77);
    CHECK(item.grant == std::vector<uint64_t>{101, 102});
  }
  const Operation& second = items[1];
  CHECK(second.flow_id == 700'001);
  CHECK(second.count == 2);
  CHECK(second.token_id == 101);
  CHECK(second.fence == 10);
  CHECK(second.hold_ms == 300);
  CHECK_THROWS_AS(ParseHistory(asked + "answer 1 20 granted 102 9 0 0 5000\n", &history),
                  std::runtime_error);
  CHECK_THROWS_AS(ParseHistory("ask 1 10 alice acquire 1 3 77 90 0 4\n", &history),
                  std::runtime_error);
}

}  // namespace
}  // namespace nowcalls::crash
