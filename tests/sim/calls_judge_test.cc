// The judge of calls a second by itself: each broken promise is named, and none that was kept.
#include "sim/calls_judge.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace nowcalls::sim {
namespace {

constexpr int64_t kLongMs = 10'000;
constexpr int64_t kSaveMs = 1'200;

// Flow 1 allows two calls a second; flow 2 twenty in ten seconds, in a window of the ledger.
struct RateCourt {
  RateCourt() {
    judge.AddLane(1, {.name_space = "shop"});
    judge.AddLane(2, {.interval_ms = kLongMs, .in_ledger = true, .name_space = "shop"});
    judge.SetSaveMs(kSaveMs);
    for (const int64_t flow : {1, 2}) Set(flow, {.in_force = true, .count = 2});
  }

  void Set(int64_t flow, const LevelSetting& setting) {
    levels.Asked(++event, {{flow, [setting](const LevelSetting&) { return setting; }}});
    levels.Answered(++event, true);
  }
  void Pass(int64_t duration_ms) {
    timeline.RunUntil(timeline.now_us() + duration_ms * kMs, [] { return false; });
  }
  CallsId Ask(int64_t flow, int64_t count, bool misfit = false) {
    return judge.Asked(++event, {.calls = {{flow, count}}, .misfit = misfit});
  }
  void Answer(CallsId id, TokenStatus status, int64_t wait_ms = 0) {
    judge.Answered(++event, id, status, wait_ms);
  }
  // A request that is answered after so long.
  void Request(int64_t flow, int64_t count, TokenStatus status = TokenStatus::kOk,
               int64_t took_ms = 0) {
    const CallsId id = Ask(flow, count);
    Pass(took_ms);
    Answer(id, status, status == TokenStatus::kShouldWait ? 100 : 0);
  }
  void Restart(bool orderly, bool clock_jumped = false) {
    judge.Died(orderly);
    judge.Ready(clock_jumped ? ClockGap::kAnyhow : ClockGap::kNone);
  }
  // The invariant of the first violation; empty when there is none.
  std::string Verdict() const { return accused.empty() ? "" : accused.front().substr(0, 2); }

  Timeline timeline;
  LevelHistory levels;
  Hindrances hindrances;
  std::vector<std::string> accused;
  CallsJudge judge{&timeline, &levels, &hindrances,
                   [this](const std::string& what) { accused.push_back(what); }};
  uint64_t event = 0;
};

TEST_CASE("no more calls pass in a window than the rule allows") {
  RateCourt court;
  court.Request(1, 2);
  SUBCASE("within the window") {
    court.Pass(800);
    court.Request(1, 1);
    REQUIRE(court.accused.size() == 1);
    CHECK(court.accused.front() ==
          "S4 3 calls of flow 1 passed within 898 ms, of a window that allows 2");
  }
  SUBCASE("perhaps behind it") {
    court.Pass(800);
    court.Request(1, 2, TokenStatus::kOk, 100);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("under another server") {
    court.Restart(/*orderly=*/true);
    court.Request(1, 2);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("beside a call that is borrowed from the next bucket") {
    court.Request(1, 2, TokenStatus::kShouldWait);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("under the server before, whose answer comes late") {
    const CallsId late = court.Ask(1, 2);
    court.Restart(/*orderly=*/false);
    court.Request(1, 2);
    court.Answer(late, TokenStatus::kOk);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("under a rule that is new") {
    court.Set(1, {});
    court.Set(1, {.in_force = true, .count = 2});
    court.Request(1, 2);
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("a window of the ledger holds across restarts, but for calls that a crash may forget") {
  RateCourt court;
  court.Request(2, 20);
  SUBCASE("after an orderly end") {
    court.Restart(/*orderly=*/true);
    court.Pass(8'000);
    court.Request(2, 1);
    CHECK(court.Verdict() == "S4");
  }
  SUBCASE("after a crash") {
    court.Pass(kSaveMs + 1);
    court.Restart(/*orderly=*/false);
    court.Request(2, 1);
    CHECK(court.Verdict() == "S4");
  }
  SUBCASE("after two") {
    court.Pass(kSaveMs + 1);
    court.Restart(/*orderly=*/false);
    court.Restart(/*orderly=*/false);
    court.Request(2, 1);
    CHECK(court.Verdict() == "S4");
  }
  SUBCASE("after a crash before they were due") {
    court.Pass(kSaveMs);
    court.Restart(/*orderly=*/false);
    court.Request(2, 20);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("after a crash of a server that was held up") {
    court.hindrances.Add(500, 2'000);
    court.Pass(2'500);
    court.Restart(/*orderly=*/false);
    court.Request(2, 20);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("after a machine has lost them") {
    court.Pass(kSaveMs);
    court.judge.Synced();
    court.Pass(1'000);
    court.judge.BatchesLost();
    court.Restart(/*orderly=*/false);
    court.Request(2, 20);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("after a machine has lost what came later") {
    court.Pass(kSaveMs + 1);
    court.judge.Synced();
    court.judge.BatchesLost();
    court.Restart(/*orderly=*/false);
    court.Request(2, 1);
    CHECK(court.Verdict() == "S4");
  }
  SUBCASE("after a reboot with another time") {
    court.Pass(kSaveMs + 1);
    court.Restart(/*orderly=*/false, /*clock_jumped=*/true);
    court.Request(2, 20);
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("a request is blocked only if its window may have been full") {
  RateCourt court;
  SUBCASE("empty") {
    court.Request(1, 2, TokenStatus::kBlocked);
    CHECK(court.Verdict() == "S5");
  }
  SUBCASE("asked for more than fits") {
    court.Request(1, 3, TokenStatus::kBlocked);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("full") {
    court.Request(1, 1);
    court.Pass(1'000);
    court.Request(1, 2, TokenStatus::kBlocked);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("full long ago") {
    court.Request(1, 1);
    court.Pass(1'300);
    court.Request(1, 2, TokenStatus::kBlocked);
    CHECK(court.Verdict() == "S5");
  }
  SUBCASE("full of what was borrowed") {
    court.Request(1, 1, TokenStatus::kShouldWait);
    court.Request(1, 2, TokenStatus::kBlocked);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("full of what is not answered") {
    court.Ask(1, 1);
    court.Request(1, 2, TokenStatus::kBlocked);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("full before a restart that empties it") {
    court.Request(1, 2);
    court.Restart(/*orderly=*/true);
    court.Request(1, 1, TokenStatus::kBlocked);
    CHECK(court.Verdict() == "S5");
  }
  SUBCASE("full before a crash, of calls that it may not have forgotten") {
    const CallsId late = court.Ask(2, 20);
    court.Restart(/*orderly=*/false);
    court.Answer(late, TokenStatus::kOk);
    court.Request(2, 1, TokenStatus::kBlocked);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("full, and the clock stood still while the machine was down") {
    court.Request(2, 20);
    court.Pass(20'000);
    court.Restart(/*orderly=*/false, /*clock_jumped=*/true);
    court.Pass(5'000);
    court.Request(2, 1, TokenStatus::kBlocked);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("drained") {
    court.Set(1, {.in_force = true, .draining = true, .count = 2});
    court.Request(1, 1, TokenStatus::kBlocked);
    CHECK(court.Verdict().empty());
  }
}

TEST_CASE("no more requests of a namespace pass its guard, and none is refused for less") {
  RateCourt court;
  court.judge.SetGuard(2);
  court.Request(1, 1);
  SUBCASE("too many") {
    court.Request(2, 1);
    court.Pass(800);
    court.Request(1, 1);
    CHECK(court.Verdict() == "S4");
    CHECK(court.accused.front() == "S4 3 requests of namespace shop passed its guard, of 2");
  }
  SUBCASE("of two namespaces") {
    court.Request(2, 1);
    court.judge.AddLane(3, {.name_space = "default"});
    court.Set(3, {.in_force = true, .count = 2});
    court.Request(3, 1);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("refused") {
    court.Request(1, 2, TokenStatus::kBlocked);
    court.Request(1, 1, TokenStatus::kTooManyRequest);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("refused for less") {
    court.Request(1, 1, TokenStatus::kTooManyRequest);
    CHECK(court.Verdict() == "S5");
  }
  SUBCASE("refused for requests of a server that is gone") {
    court.Request(2, 1);
    court.Restart(/*orderly=*/true);
    court.Request(1, 1, TokenStatus::kTooManyRequest);
    CHECK(court.Verdict() == "S5");
  }
}

TEST_CASE("a request that is refused as wrong, or for want of a rule, was so") {
  RateCourt court;
  SUBCASE("no rule") {
    court.Request(1, 1, TokenStatus::kNoRuleExists);
    CHECK(court.Verdict() == "S5");
  }
  SUBCASE("no rule of that flow") {
    court.Request(9, 1, TokenStatus::kNoRuleExists);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("wrong") {
    court.Request(1, 1, TokenStatus::kBadRequest);
    CHECK(court.Verdict() == "S5");
  }
  SUBCASE("a misfit that is refused") {
    court.Answer(court.Ask(1, 1, /*misfit=*/true), TokenStatus::kBadRequest);
    CHECK(court.Verdict().empty());
  }
  SUBCASE("a misfit that passes") {
    court.Answer(court.Ask(1, 1, /*misfit=*/true), TokenStatus::kOk);
    CHECK(court.Verdict() == "S5");
  }
  SUBCASE("too many") {
    court.Request(1, 1, TokenStatus::kTooManyRequest);
    CHECK(court.Verdict() == "S5");
  }
}

}  // namespace
}  // namespace nowcalls::sim
