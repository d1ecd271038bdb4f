// The checker must be able to fail: each case gives it one broken promise and sees it named.
#include "crash/checker.h"

#include <doctest/doctest.h>

#include <string>

#include "crash/checker_harness.h"
#include "crash/history.h"

namespace nowcalls::crash {
namespace {

TEST_CASE("the checker accepts a run that kept every promise") {
  CycleBuilder builder;
  builder.Up(1, "alice").Granted(2, 101, 1, 3).Granted(4, 102, 1, 2).Granted(6, 103, 2, 1, 200);
  builder.Release(10, 101, Outcome::kReleased).Release(20, 101, Outcome::kGone);
  builder.UnansweredAcquire(900, 1, 4).Release(901, 102, Outcome::kUnknown);
  SUBCASE("with the unanswered requests done") { builder.Dumped(104, 1, 4); }
  SUBCASE("with the unanswered requests not done") { builder.Dumped(102, 1, 2); }
  CHECK(CheckOne(builder) == Violations{});
}

TEST_CASE("a lost token is a violation") {
  CycleBuilder builder;
  builder.Up(1, "alice").Granted(2, 101, 1, 3).Granted(4, 102, 1, 2).Dumped(102, 1, 2);
  RequireOne(CheckOne(builder), "I1", "token 101 is lost");
}

TEST_CASE("a token whose fence the client was not told is held to that of the ledger") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 101, 1, 3).Dumped(101, 1, 3);
  for (Operation& operation : first.cycle().history.operations) operation.fence = 0;
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  second.Dumped(101, 1, 3);
  SUBCASE("and keeps it") { CHECK(checker.CheckCycle(second.cycle()) == Violations{}); }
  SUBCASE("which may not change") {
    second.cycle().ledger.tokens[0].fence = 102;
    RequireOne(checker.CheckCycle(second.cycle()), "I3", "token 101 differs");
  }
}

TEST_CASE("a token of frames that is lost is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3);
  builder.last().fence = 0;
  RequireOne(CheckOne(builder), "I1", "token 101 is lost");
}

TEST_CASE("a lost token's violation tells its history") {
  CycleBuilder builder;
  builder.Granted(2, 102, 2, 1, 200).Keep(100, 102, 2'000).Keep(300, 102, 2'000);
  const Violations violations = CheckOne(builder);
  RequireOne(violations, "I1", "alice acquire flow 2 count 1 -> granted token 102");
  CHECK(violations[0].find("alice keep 102 -> kept hold 2000 ms") != std::string::npos);
}

TEST_CASE("a token lost in a later cycle than its own is a violation") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 101, 1, 3).Dumped(101, 1, 3);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  RequireOne(checker.CheckCycle(second.cycle()), "I1", "token 101 is lost in cycle 2");
}

TEST_CASE("a token whose deadline may have passed may be absent") {
  CycleBuilder builder;
  builder.Granted(2, 101, 2, 1, 200);
  CHECK(CheckOne(builder) == Violations{});
}

TEST_CASE("a keep moves the deadline of the check") {
  CycleBuilder builder;
  builder.Granted(2, 101, 2, 1, 200).Keep(100, 101, 200).Keep(250, 101, 200);
  SUBCASE("past its new deadline the token may be absent") {
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("before it the token must be there") {
    builder.cycle().dead_us = 400 * kMs;
    RequireOne(CheckOne(builder), "I1", "token 101 is lost");
  }
}

TEST_CASE("tokens of a client that stayed away may be absent, of one that came back not") {
  CycleBuilder builder;
  builder.Up(1, "alice").Granted(2, 101, 2, 1, 5'000).Down(10, "alice");
  SUBCASE("it stayed away for its offline time") { CHECK(CheckOne(builder) == Violations{}); }
  SUBCASE("it came back in time") {
    builder.Up(205, "alice");
    RequireOne(CheckOne(builder), "I1", "token 101 is lost");
  }
}

TEST_CASE("times are whole milliseconds, of a client that went within one too") {
  CycleBuilder builder;
  builder.Up(1, "alice").Granted(2, 101, 2, 1, 5'000).Down(10, "alice").Up(210, "alice");
  auto& links = builder.cycle().history.links;
  links[1].at_us += 900;
  SUBCASE("the millisecond of its deadline had come") {
    links[2].at_us += 100;
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("it had not") {
    links[2].at_us -= 1;
    RequireOne(CheckOne(builder), "I1", "token 101 is lost");
  }
}

TEST_CASE("a restart spares tokens that were in the ledger") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 101, 2, 1, 200).Dumped(101, 2, 1, 200);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  SUBCASE("a kill within the grace must find them") {
    CycleBuilder second(5'000, 5'090);
    RequireOne(checker.CheckCycle(second.cycle()), "I1", "token 101 is lost");
  }
  SUBCASE("a kill after it need not") {
    CycleBuilder second(5'000, 5'200);
    CHECK(checker.CheckCycle(second.cycle()) == Violations{});
  }
}

TEST_CASE("a live token that is answered as gone is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3).Release(10, 101, Outcome::kGone);
  RequireOne(CheckOne(builder), "I1", "a live token is answered as gone");
}

TEST_CASE("a released token in the ledger is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3).Release(10, 101, Outcome::kReleased).Dumped(101, 1, 3);
  RequireOne(CheckOne(builder), "I2", "token 101 is gone, and in the ledger");
}

TEST_CASE("a token that was absent once and comes back is a violation") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 101, 1, 3).Release(10, 101, Outcome::kUnknown);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  second.Dumped(101, 1, 3);
  RequireOne(checker.CheckCycle(second.cycle()), "I2", "token 101 came back");
}

TEST_CASE("a token that is released twice with success is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3).Release(10, 101, Outcome::kReleased);
  builder.Release(20, 101, Outcome::kReleased);
  RequireOne(CheckOne(builder), "I2", "a request on a token that is gone");
}

TEST_CASE("a token that nobody asked for is a violation") {
  CycleBuilder builder;
  builder.UnansweredAcquire(2, 1, 4);
  SUBCASE("of another count") {
    builder.Dumped(101, 1, 3);
    RequireOne(CheckOne(builder), "I3", "nobody asked for token 101");
  }
  SUBCASE("of another flow") {
    builder.Dumped(101, 2, 4);
    RequireOne(CheckOne(builder), "I3", "nobody asked for token 101");
  }
  SUBCASE("a second one for the same request") {
    builder.Dumped(101, 1, 4).Dumped(102, 1, 4);
    RequireOne(CheckOne(builder), "I3", "nobody asked for token 102");
  }
}

TEST_CASE("an acquire without an answer explains a token of its own cycle only") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.UnansweredAcquire(2, 1, 4);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  second.Dumped(101, 1, 4);
  RequireOne(checker.CheckCycle(second.cycle()), "I3", "nobody asked for token 101");
}

TEST_CASE("a token without an answer, once found, must stay like any other") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.UnansweredAcquire(2, 1, 4).Dumped(101, 1, 4);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CHECK(checker.counts().adopted == 1);
  CycleBuilder second(2'000, 3'000);
  RequireOne(checker.CheckCycle(second.cycle()), "I1", "token 101 is lost");
}

TEST_CASE("a token that differs from what was acknowledged is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3).Dumped(101, 1, 3);
  auto& row = builder.cycle().ledger.tokens[0];
  SUBCASE("in its client") { row.client_id = "bob"; }
  SUBCASE("in its fence") { row.fence = 7; }
  RequireOne(CheckOne(builder), "I3", "token 101 differs");
}

TEST_CASE("a sum that is not that of the dump is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3).Dumped(101, 1, 3);
  SUBCASE("of counts") { builder.cycle().ledger.now_calls[1] = 4; }
  SUBCASE("of tokens") { builder.cycle().ledger.token_counts[1] = 2; }
  SUBCASE("of a flow without tokens") { builder.cycle().ledger.now_calls[2] = 1; }
  RequireOne(CheckOne(builder), "I4", "stat says");
}

TEST_CASE("a server that reports another sum than the ledger has is a violation") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 101, 1, 3).Granted(3, 102, 2, 5, 5'000).Dumped(101, 1, 3);
  first.Dumped(102, 2, 5, 5'000);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  const int64_t start_us = 2'000 * kMs;
  CHECK(checker.CheckReported({{1, 3}, {2, 5}}, start_us, start_us + 50 * kMs) == Violations{});
  RequireOne(checker.CheckReported({{1, 3}}, start_us, start_us + 50 * kMs), "I4", "flow 2");
  // Flow 2 spares its tokens for 100 ms only; after that fewer are right, and more are wrong.
  CHECK(checker.CheckReported({{1, 3}}, start_us, start_us + 150 * kMs) == Violations{});
  RequireOne(checker.CheckReported({{1, 3}, {2, 6}}, start_us, start_us + 150 * kMs), "I4",
             "flow 2");
  RequireOne(checker.CheckReported({{1, 2}, {2, 5}}, start_us, start_us + 150 * kMs), "I4",
             "flow 1");
}

TEST_CASE("holding more than the level at one instant is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 6);
  SUBCASE("after a release in between it is not") {
    builder.Release(5, 101, Outcome::kReleased).Granted(10, 102, 1, 5).Dumped(102, 1, 5);
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("both at once") {
    builder.Granted(10, 102, 1, 5).Release(20, 101, Outcome::kReleased).Dumped(102, 1, 5);
    RequireOne(CheckOne(builder), "I5", "flow 1 holds 11, more than its level 10");
  }
  SUBCASE("a grant that says so itself") {
    builder.last().now_calls = 11;
    builder.Dumped(101, 1, 6);
    RequireOne(CheckOne(builder), "I5", "granted above the level");
  }
}

TEST_CASE("tokens of cycles before count towards the level") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 101, 1, 6).Dumped(101, 1, 6);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  second.Granted(2'010, 102, 1, 5).Release(2'020, 101, Outcome::kReleased).Dumped(102, 1, 5);
  RequireOne(checker.CheckCycle(second.cycle()), "I5", "flow 1 holds 11");
}

TEST_CASE("a ledger above the level is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 6).UnansweredAcquire(900, 1, 5).Dumped(101, 1, 6).Dumped(102, 1, 5);
  RequireOne(CheckOne(builder), "I5", "flow 1 has 11 in the ledger");
}

TEST_CASE("a repeated fence is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 1).Granted(2, 102, 1, 1);
  builder.last().fence = 101;
  builder.Dumped(101, 1, 1).Dumped(102, 1, 1);
  builder.cycle().ledger.tokens[1].fence = 101;
  RequireOne(CheckOne(builder), "I6", "fence given twice");
}

TEST_CASE("a fence below one acknowledged before is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 105, 1, 1).Granted(10, 104, 1, 1).Dumped(104, 1, 1).Dumped(105, 1, 1);
  RequireOne(CheckOne(builder), "I6", "fence 104 was given after fence 105");
}

TEST_CASE("fences of requests that overlap may be in any order") {
  CycleBuilder builder;
  builder.Granted(2, 105, 1, 1).Granted(2, 104, 1, 1).Dumped(104, 1, 1).Dumped(105, 1, 1);
  CHECK(CheckOne(builder) == Violations{});
}

TEST_CASE("a fence that starts anew after a restart is a violation") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 105, 1, 1).Release(5, 105, Outcome::kReleased);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  SUBCASE("in an answer") { second.Granted(2'010, 101, 1, 1).Dumped(101, 1, 1); }
  SUBCASE("in the ledger, without an answer") {
    second.UnansweredAcquire(2'010, 1, 1).Dumped(101, 1, 1);
  }
  RequireOne(checker.CheckCycle(second.cycle()), "I6", "fence 101 was given after fence 105");
}

TEST_CASE("a repeated token id is a violation") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 101, 1, 1).Release(5, 101, Outcome::kReleased);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  second.Granted(2'010, 101, 1, 1);
  second.last().fence = 106;
  RequireOne(checker.CheckCycle(second.cycle()), "I6", "token id 101 was given twice");
}

TEST_CASE("a token that the dump shows twice is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 1).Dumped(101, 1, 1).Dumped(101, 1, 1);
  RequireOne(CheckOne(builder), "I6", "the dump shows token 101 twice");
}

// Flow 1 had the level 10, and was asked to have 5 from 100 ms on, which is sure at 102 ms.
CycleBuilder WithMovingLevel() {
  CycleBuilder builder;
  builder.cycle().levels = {{1, 10, 0, 0}, {1, 5, 100 * kMs, 102 * kMs}};
  return builder;
}

TEST_CASE("a grant by a level that was not in force is a violation") {
  CycleBuilder builder = WithMovingLevel();
  SUBCASE("the old one before, and while the new one is asked for") {
    builder.Granted(50, 101, 1, 2).Granted(101, 102, 1, 2).Dumped(101, 1, 2).Dumped(102, 1, 2);
    builder.last().now_calls = 4;
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("the new one, though more is held") {
    builder.Granted(50, 101, 1, 9).Release(60, 101, Outcome::kReleased);
    builder.Granted(101, 102, 1, 2).Dumped(102, 1, 2);
    builder.last().level = 5;
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("the old one afterwards") {
    builder.Granted(103, 101, 1, 2).Dumped(101, 1, 2);
    RequireOne(CheckOne(builder), "I5", "a level that was not in force");
  }
  SUBCASE("the new one before") {
    builder.Granted(98, 101, 1, 2).Dumped(101, 1, 2);
    builder.last().level = 5;
    RequireOne(CheckOne(builder), "I5", "a level that was not in force");
  }
  SUBCASE("one that never was") {
    builder.Granted(101, 101, 1, 2).Dumped(101, 1, 2);
    builder.last().level = 7;
    RequireOne(CheckOne(builder), "I5", "a level that was not in force");
  }
}

TEST_CASE("where levels move, a grant that does not count what is held is a violation") {
  CycleBuilder builder = WithMovingLevel();
  builder.Granted(2, 101, 1, 4);
  SUBCASE("held all the while") {
    builder.Granted(50, 102, 1, 1).Dumped(101, 1, 4).Dumped(102, 1, 1);
    RequireOne(CheckOne(builder), "I5", "granted while 4 were held");
  }
  SUBCASE("released meanwhile it may not be counted") {
    builder.Release(50, 101, Outcome::kReleased).Granted(50, 102, 1, 1).Dumped(102, 1, 1);
    CHECK(CheckOne(builder) == Violations{});
  }
}

// What was restored from a backup that was asked for at 100 ms.
class BackupBuilder : public CycleBuilder {
 public:
  BackupBuilder() { cycle().backup = LedgerCopy{100 * kMs, {}}; }

  BackupBuilder& InBackup(uint64_t token, int64_t flow, int64_t count) {
    LedgerView& view = cycle().backup->ledger;
    view.tokens.push_back({token, flow, "alice", count, token, 0, 120'000});
    view.now_calls[flow] += count;
    ++view.token_counts[flow];
    return *this;
  }
};

TEST_CASE("a backup may be of any moment between its request and the kill") {
  BackupBuilder builder;
  builder.Granted(2, 101, 1, 3).Granted(150, 102, 1, 2).Dumped(102, 1, 2);
  builder.Release(200, 101, Outcome::kReleased).UnansweredAcquire(300, 1, 1);
  SUBCASE("the first") { builder.InBackup(101, 1, 3); }
  SUBCASE("one in between") { builder.InBackup(101, 1, 3).InBackup(102, 1, 2); }
  SUBCASE("the last") { builder.InBackup(102, 1, 2); }
  SUBCASE("with a token that nobody was told of, and that ended") {
    builder.InBackup(102, 1, 2).InBackup(103, 1, 1);
  }
  SUBCASE("with a token that nobody was told of, and that is there") {
    builder.Dumped(103, 1, 1);
    builder.InBackup(102, 1, 2).InBackup(103, 1, 1);
  }
  CHECK(CheckOne(builder) == Violations{});
}

TEST_CASE("a backup without a token that was held is a violation") {
  BackupBuilder builder;
  builder.Granted(2, 101, 1, 3).Dumped(101, 1, 3);
  RequireOne(CheckOne(builder), "I1", "token 101 is not in the backup");
}

TEST_CASE("a backup with a token that had ended before is a violation") {
  BackupBuilder builder;
  builder.Granted(2, 101, 1, 3).Release(50, 101, Outcome::kReleased);
  builder.InBackup(101, 1, 3);
  RequireOne(CheckOne(builder), "I2", "token 101 was gone before the backup was asked for");
}

TEST_CASE("a backup with a token that ended in a cycle before is a violation") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 101, 1, 3).Release(50, 101, Outcome::kReleased);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  BackupBuilder second;
  second.InBackup(101, 1, 3);
  RequireOne(checker.CheckCycle(second.cycle()), "I2", "token 101 came back in the backup");
}

TEST_CASE("a backup with a token that nobody asked for is a violation") {
  BackupBuilder builder;
  SUBCASE("at all") {}
  SUBCASE("so often") { builder.UnansweredAcquire(90, 1, 3).Dumped(102, 1, 3); }
  builder.InBackup(101, 1, 3);
  if (!builder.cycle().ledger.tokens.empty()) builder.InBackup(102, 1, 3);
  RequireOne(CheckOne(builder), "I3", "nobody asked for token 101 of the backup");
}

TEST_CASE("a backup with a token that differs, or with wrong sums, is a violation") {
  BackupBuilder builder;
  builder.Granted(2, 101, 1, 3).Dumped(101, 1, 3);
  SUBCASE("another count") {
    builder.InBackup(101, 1, 4);
    RequireOne(CheckOne(builder), "I3", "token 101 differs");
  }
  SUBCASE("another sum") {
    builder.InBackup(101, 1, 3);
    builder.cycle().backup->ledger.now_calls[1] = 5;
    RequireOne(CheckOne(builder), "I4", "flow 1 in the backup: stat says");
  }
}

TEST_CASE("a client log reads back as what was written") {
  History history;
  ParseHistory(
      "up 5 alice\nask 1 10 alice acquire 1 3 0 0 0\nask 2 11 alice release 77\n"
      "answer 1 20 granted 101 9 3 10 120000\nask 3 30 alice keep 101\nanswer 3 31 kept 500\n"
      "answer 2 32 gone\ndown 40 alice\nask 4 50 alice acquire 1 1 7 90 500\n",
      &history);
  REQUIRE(history.operations.size() == 4);
  REQUIRE(history.links.size() == 2);
  const Operation& granted = history.operations[0];
  CHECK(granted.outcome == Outcome::kGranted);
  CHECK(granted.token_id == 101);
  CHECK(granted.fence == 9);
  CHECK(granted.now_calls == 3);
  CHECK(granted.level == 10);
  CHECK(granted.hold_ms == 120'000);
  CHECK(granted.asked_us == 10);
  CHECK(granted.answered_us == 20);
  CHECK(history.operations[1].outcome == Outcome::kGone);
  CHECK(history.operations[2].outcome == Outcome::kKept);
  CHECK(history.operations[2].hold_ms == 500);
  CHECK(history.operations[3].outcome == Outcome::kUnknown);
  CHECK(history.links[0].up);
  CHECK_FALSE(history.links[1].up);
}

TEST_CASE("a client log of another form is refused") {
  for (const char* text : {"hello\n", "ask 1 10 alice steal 1\n", "ask 1 alice acquire 1 1 0 0\n",
                           "answer 9 10 gone\n", "ask 1 10 alice keep 5\nanswer 1 11 perhaps\n"}) {
    CAPTURE(text);
    History history;
    CHECK_THROWS_AS(ParseHistory(text, &history), std::runtime_error);
  }
}

}  // namespace
}  // namespace nowcalls::crash
