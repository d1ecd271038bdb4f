// The checker by itself: holds that are asked for, and tokens that are told lost.
#include <doctest/doctest.h>

#include "crash/checker_harness.h"

namespace nowcalls::crash {
namespace {

TEST_CASE("a grant may tell the hold that was asked for, or that of its rule") {
  CycleBuilder builder;
  builder.Up(1, "alice");
  builder.Granted(2, 101, 1, 1, 500).Wanted(500).Dumped(101, 1, 1, 500);
  builder.Granted(3, 102, 1, 1).Wanted(900'000).Dumped(102, 1, 1);
  builder.Granted(4, 103, 4, 1, 3'000).Dumped(103, 4, 1, 3'000);
  builder.Granted(5, 104, 1, 1).Wanted(500).WithRequest(9).Dumped(104, 1, 1);
  CHECK(CheckOne(builder) == Violations{});
}

TEST_CASE("a grant that tells another hold is a violation") {
  CycleBuilder builder;
  builder.Up(1, "alice");
  SUBCASE("the rule's instead of the one asked for") {
    builder.Granted(2, 101, 1, 1).Wanted(500).Dumped(101, 1, 1);
  }
  SUBCASE("less than was asked for") {
    builder.Granted(2, 101, 1, 1, 499).Wanted(500).Dumped(101, 1, 1, 499);
  }
  SUBCASE("more than the rule's longest") {
    builder.Granted(2, 101, 4, 1, 3'001).Dumped(101, 4, 1, 3'001);
  }
  RequireOne(CheckOne(builder), "I13", "not held for");
}

TEST_CASE("a token ends with its rule's longest hold, also behind a restart") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Up(1, "alice").Granted(2, 101, 4, 1, 3'000).Dumped(101, 4, 1, 3'000);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  SUBCASE("over") {
    CycleBuilder second(2'900, 3'010);
    CHECK(checker.CheckCycle(second.cycle()) == Violations{});
  }
  SUBCASE("not over") {
    CycleBuilder second(2'900, 3'000);
    RequireOne(checker.CheckCycle(second.cycle()), "I1", "token 101 is lost");
  }
}

TEST_CASE("a token that is told lost is gone") {
  CycleBuilder builder;
  builder.Up(1, "alice").Granted(2, 101, 2, 1, 200);
  SUBCASE("timed out") { builder.Lost(202, 101, "resource_timeout"); }
  SUBCASE("taken back") {
    builder.Reclaim(10, 101, Outcome::kReleased).Lost(12, 101, "admin");
    builder.Keep(20, 101, 0, Outcome::kGone);
  }
  SUBCASE("never told of the grant") {
    builder.UnansweredAcquire(3, 1, 1).Reclaim(10, 102, Outcome::kReleased).Lost(12, 102, "admin");
    builder.Lost(202, 101, "resource_timeout");
  }
  CHECK(CheckOne(builder) == Violations{});
}

TEST_CASE("a token that is told lost and in the ledger is a violation") {
  CycleBuilder builder;
  builder.Up(1, "alice");
  SUBCASE("that was granted") {
    builder.Granted(2, 101, 2, 1, 200).Lost(202, 101, "resource_timeout");
  }
  SUBCASE("whose grant was not answered") {
    builder.UnansweredAcquire(2, 2, 1).Lost(202, 101, "resource_timeout");
  }
  builder.Dumped(101, 2, 1, 200);
  RequireOne(CheckOne(builder), "I2", "token 101");
}

TEST_CASE("a token that is told lost without a right to is a violation") {
  CycleBuilder builder;
  builder.Up(1, "alice").Granted(2, 101, 2, 1, 200);
  SUBCASE("before its time") { builder.Lost(201, 101, "resource_timeout"); }
  SUBCASE("released") {
    builder.Release(10, 101, Outcome::kReleased).Lost(300, 101, "resource_timeout");
  }
  SUBCASE("kept afterwards") { builder.Lost(10, 101, "admin").Keep(20, 101, 200); }
  SUBCASE("another client's") {
    builder.Lost(300, 101, "resource_timeout");
    builder.cycle().history.lost[0].client = "bob";
  }
  RequireOne(CheckOne(builder), "I13", "old lost");
}

TEST_CASE("a token that ended in an earlier cycle is not told lost") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Up(1, "alice").Granted(2, 101, 1, 1).Release(10, 101, Outcome::kReleased);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  second.Up(2'001, "alice").Lost(2'500, 101, "admin");
  RequireOne(checker.CheckCycle(second.cycle()), "I13", "ended before it was told lost");
}

TEST_CASE("a log tells of lost tokens and of wanted holds") {
  History history;
  ParseHistory(
      "ask 1 10 alice acquire 1 3 0 0 700\nanswer 1 12 granted 77 5 3 10 700\n"
      "lost 20 alice 77 admin\n",
      &history);
  REQUIRE(history.operations.size() == 1);
  CHECK(history.operations[0].wanted_ms == 700);
  REQUIRE(history.lost.size() == 1);
  CHECK(history.lost[0].token_id == 77);
  CHECK(history.lost[0].reason == "admin");
  CHECK(history.lost[0].at_us == 20);
  CHECK(history.lost[0].client == "alice");
}

}  // namespace
}  // namespace nowcalls::crash
