// What the checker says of request ids, cancels, operators and drains, each broken in turn.
#include <doctest/doctest.h>

#include <string>

#include "crash/checker.h"
#include "crash/checker_harness.h"

namespace nowcalls::crash {
namespace {

constexpr uint64_t kRequest = 7;

TEST_CASE("a request asked again is answered with its token, and nothing is wrong with it") {
  CycleBuilder builder;
  builder.Up(1, "alice").Granted(2, 101, 1, 3).WithRequest(kRequest);
  SUBCASE("on the same connection") {
    builder.Granted(10, 101, 1, 3, 100'000).WithRequest(kRequest).Dumped(101, 1, 3);
  }
  SUBCASE("behind a reconnect, with a higher nowCalls than the level has become") {
    builder.Down(5, "alice").Up(6, "alice");
    builder.Granted(10, 101, 1, 3).WithRequest(kRequest).Dumped(101, 1, 3);
    builder.last().now_calls = 11;
  }
  SUBCASE("when its token has ended, with another one") {
    builder.Release(5, 101, Outcome::kReleased);
    builder.Granted(10, 102, 1, 3).WithRequest(kRequest).Dumped(102, 1, 3);
  }
  SUBCASE("when its token may have ended, with a refusal") {
    builder.Release(5, 101, Outcome::kUnknown).RefusedAcquire(10, 1, 3).WithRequest(kRequest);
  }
  CHECK(CheckOne(builder) == Violations{});
}

TEST_CASE("two tokens for one request id are a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3).WithRequest(kRequest).Granted(10, 102, 1, 3).WithRequest(kRequest);
  builder.Dumped(101, 1, 3).Dumped(102, 1, 3);
  RequireOne(CheckOne(builder), "I10", "request 7 of client alice has token 102 beside token 101");
}

TEST_CASE("a second token for a request id after a restart is a violation") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  bool refused = false;
  SUBCASE("when the first was answered") { first.Granted(2, 101, 1, 3).WithRequest(kRequest); }
  SUBCASE("when the first was only found") {
    first.UnansweredAcquire(2, 1, 3).WithRequest(kRequest);
  }
  SUBCASE("and so is a refusal") {
    first.Granted(2, 101, 1, 3).WithRequest(kRequest);
    refused = true;
  }
  first.Dumped(101, 1, 3);
  CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  CycleBuilder second(2'000, 3'000);
  second.Up(2'001, "alice").Dumped(101, 1, 3);
  if (refused) {
    second.RefusedAcquire(2'010, 1, 3).WithRequest(kRequest);
    return RequireOne(checker.CheckCycle(second.cycle()), "I10", "a live token is refused");
  }
  second.Granted(2'010, 102, 1, 3).WithRequest(kRequest).Dumped(102, 1, 3);
  RequireOne(checker.CheckCycle(second.cycle()), "I10", "beside token 101");
}

TEST_CASE("an unanswered request that was asked again explains one token only") {
  CycleBuilder builder;
  SUBCASE("when none was answered") {
    builder.UnansweredAcquire(2, 1, 3).WithRequest(kRequest).Dumped(101, 1, 3);
  }
  SUBCASE("when one was answered") {
    builder.Granted(2, 101, 1, 3).WithRequest(kRequest).Dumped(101, 1, 3);
  }
  builder.UnansweredAcquire(900, 1, 3).WithRequest(kRequest).Dumped(102, 1, 3);
  RequireOne(CheckOne(builder), "I3", "nobody asked for token 102");
}

TEST_CASE("a token of another request, or one that is gone, is no answer to a request") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3).WithRequest(kRequest);
  SUBCASE("another's") {
    builder.Granted(10, 101, 1, 3).WithRequest(kRequest + 1).Dumped(101, 1, 3);
    RequireOne(CheckOne(builder), "I6", "token id 101 was given twice");
  }
  SUBCASE("one with another fence") {
    builder.Granted(10, 101, 1, 3).WithRequest(kRequest).Dumped(101, 1, 3);
    builder.last().fence = 105;
    RequireOne(CheckOne(builder), "I6", "token id 101 was given twice");
  }
  SUBCASE("one that is gone") {
    builder.Release(5, 101, Outcome::kReleased);
    builder.Granted(10, 101, 1, 3).WithRequest(kRequest);
    RequireOne(CheckOne(builder), "I2", "a token that is gone is given again");
  }
}

TEST_CASE("a token whose request was cancelled is gone") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3).WithRequest(kRequest);
  SUBCASE("it may be there while the cancel has no answer") {
    builder.Cancel(10, kRequest, Outcome::kUnknown).Dumped(101, 1, 3);
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("or not") {
    builder.Cancel(10, kRequest, Outcome::kUnknown);
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("it may not be there afterwards") {
    builder.Cancel(10, kRequest, Outcome::kReleased).Dumped(101, 1, 3);
    RequireOne(CheckOne(builder), "I2", "token 101 is gone, and in the ledger");
  }
  SUBCASE("and nobody may deny that it was there") {
    builder.Cancel(10, kRequest, Outcome::kGone);
    RequireOne(CheckOne(builder), "I1", "a live token is answered as gone");
  }
}

TEST_CASE("a grant after an answered cancel is a violation") {
  CycleBuilder builder;
  builder.Up(1, "alice").Cancel(10, kRequest, Outcome::kGone);
  SUBCASE("on the same connection") {
    builder.Granted(12, 101, 1, 3).WithRequest(kRequest).Dumped(101, 1, 3);
    RequireOne(CheckOne(builder), "I11", "granted though it was cancelled before");
  }
  SUBCASE("a session that ended meanwhile has forgotten it") {
    builder.Down(13, "alice").Up(14, "alice");
    builder.Granted(15, 101, 1, 3).WithRequest(kRequest).Dumped(101, 1, 3);
    CHECK(CheckOne(builder) == Violations{});
  }
}

TEST_CASE("a cancelled request explains no token") {
  CycleBuilder builder;
  builder.Up(1, "alice").UnansweredAcquire(2, 1, 3).WithRequest(kRequest).Dumped(101, 1, 3);
  SUBCASE("when the cancel was answered") {
    builder.Cancel(10, kRequest, Outcome::kGone);
    RequireOne(CheckOne(builder), "I3", "its request id was cancelled");
  }
  SUBCASE("when it was not it may") {
    builder.Cancel(10, kRequest, Outcome::kUnknown);
    CHECK(CheckOne(builder) == Violations{});
  }
}

TEST_CASE("what an operator took back is gone, and is no loss") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3);
  SUBCASE("absent") {
    SUBCASE("one that was reclaimed") { builder.Reclaim(10, 101, Outcome::kReleased); }
    SUBCASE("one that may have been") { builder.Reclaim(10, 101, Outcome::kUnknown); }
    SUBCASE("of a flow") { builder.ReclaimMany(10, Action::kReclaimFlow, 1, 1, false); }
    SUBCASE("of a flow that was purged") { builder.ReclaimMany(10, Action::kPurge, 1, 1, false); }
    SUBCASE("of a client") { builder.ReclaimMany(10, Action::kReclaimClient, 0, 1, false); }
    SUBCASE("perhaps of a flow") {
      builder.ReclaimMany(10, Action::kReclaimFlow, 1, 0, false, Outcome::kUnknown);
    }
    SUBCASE("and its holder hears so, whoever came first") {
      builder.Release(9, 101, Outcome::kGone).Reclaim(9, 101, Outcome::kReleased);
    }
    CHECK(CheckOne(builder) == Violations{});
  }
  SUBCASE("there") {
    SUBCASE("one") { builder.Reclaim(10, 101, Outcome::kReleased); }
    SUBCASE("of a flow") { builder.ReclaimMany(10, Action::kReclaimFlow, 1, 1, false); }
    SUBCASE("of a flow that was purged") { builder.ReclaimMany(10, Action::kPurge, 1, 1, false); }
    SUBCASE("of a client") { builder.ReclaimMany(10, Action::kReclaimClient, 0, 1, false); }
    builder.Dumped(101, 1, 3);
    RequireOne(CheckOne(builder), "I2", "token 101 is gone, and in the ledger");
  }
}

TEST_CASE("what an operator did not take back is lost") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3);
  SUBCASE("of another flow") { builder.ReclaimMany(10, Action::kReclaimFlow, 2, 1, false); }
  SUBCASE("of none") { builder.ReclaimMany(10, Action::kReclaimFlow, 1, 0, true); }
  SUBCASE("before it was granted") {
    builder.last().asked_us += 20 * 1'000;
    builder.last().answered_us += 20 * 1'000;
    builder.ReclaimMany(10, Action::kReclaimFlow, 1, 1, false);
  }
  RequireOne(CheckOne(builder), "I1", "token 101 is lost");
}

TEST_CASE("a live token that an operator does not find is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3);
  SUBCASE("by itself") { builder.Reclaim(10, 101, Outcome::kGone); }
  SUBCASE("among those of its flow") { builder.ReclaimMany(10, Action::kReclaimFlow, 1, 0, false); }
  RequireOne(CheckOne(builder), "I1", "a live token is answered as gone");
}

TEST_CASE("a token that is both released and reclaimed with success is a violation") {
  CycleBuilder builder;
  builder.Granted(2, 101, 1, 3).Release(10, 101, Outcome::kReleased);
  builder.Reclaim(10, 101, Outcome::kReleased);
  RequireOne(CheckOne(builder), "I2", "a request on a token that is gone");
}

TEST_CASE("a token that nobody was told of and an operator took back stays gone") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.UnansweredAcquire(2, 1, 3).Reclaim(10, 101, Outcome::kReleased);
  SUBCASE("in the same cycle") {
    first.Dumped(101, 1, 3);
    RequireOne(checker.CheckCycle(first.cycle()), "I2", "token 101 came back");
  }
  SUBCASE("in the next one") {
    CHECK(checker.CheckCycle(first.cycle()) == Violations{});
    CycleBuilder second(2'000, 3'000);
    second.UnansweredAcquire(2'010, 1, 3).Dumped(101, 1, 3);
    RequireOne(checker.CheckCycle(second.cycle()), "I2", "token 101 came back");
  }
}

TEST_CASE("a grant under a drain is a violation") {
  Checker checker(Flows(), kGraceMs);
  CycleBuilder first;
  first.Granted(2, 101, 1, 3).WithRequest(kRequest).Drain(10, 1, true);
  SUBCASE("asked for after it was acknowledged") {
    first.Granted(20, 102, 1, 3).Dumped(101, 1, 3).Dumped(102, 1, 3);
    RequireOne(checker.CheckCycle(first.cycle()), "I12", "granted under a drain");
  }
  SUBCASE("a token of before is told again") {
    first.Granted(20, 101, 1, 3).WithRequest(kRequest).Dumped(101, 1, 3);
    CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  }
  SUBCASE("its end was asked for") {
    first.Drain(15, 1, false, Outcome::kUnknown);
    first.Granted(20, 102, 1, 3).Dumped(101, 1, 3).Dumped(102, 1, 3);
    CHECK(checker.CheckCycle(first.cycle()) == Violations{});
  }
  SUBCASE("also after a restart") {
    first.Dumped(101, 1, 3);
    CHECK(checker.CheckCycle(first.cycle()) == Violations{});
    CycleBuilder second(2'000, 3'000);
    second.Granted(2'010, 102, 1, 3).Dumped(101, 1, 3).Dumped(102, 1, 3);
    RequireOne(checker.CheckCycle(second.cycle()), "I12", "granted under a drain");
  }
}

}  // namespace
}  // namespace nowcalls::crash
