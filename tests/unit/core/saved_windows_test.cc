// Windows of ten seconds and longer survive a restart: what the ledger has of them, and when.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "base/prng.h"
#include "core/loading.h"
#include "core/rates/rates.h"
#include "support/core_harness.h"
#include "support/sample.h"
#include "unit/core/rate_model.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::ReadLedger;

constexpr int64_t kWindowMs = 10'000;  // In ten buckets.

Rule LongRule(int64_t flow = 1) {
  Rule rule;
  rule.resource = "db";
  rule.flow_id = FlowId{flow};
  rule.count = 10;
  rule.threshold_type = ThresholdType::kGlobal;
  rule.window_interval_ms = kWindowMs;
  return rule;
}

RateAnswer Call(CoreHarness* h, int64_t count, int64_t flow = 1, bool prioritized = false) {
  return h->core().rates().Request(
      h->step(), {.flow = FlowId{flow}, .count = count, .prioritized = prioritized});
}

TEST_CASE("a restart hands out no fresh quota of a window of ten seconds") {
  CoreHarness h;
  h.InstallRules({LongRule()});
  REQUIRE(Call(&h, 60).status == TokenStatus::kOk);
  h.Pass(3000);
  REQUIRE(Call(&h, 20).status == TokenStatus::kOk);
  h.Pass(1000);
  h.Restart(2000);
  CHECK(Call(&h, 21).status == TokenStatus::kBlocked);
  CHECK(Call(&h, 20).remaining == 0);
  // The first sixty leave the window at their own time.
  h.Pass(kWindowMs - 6001);
  CHECK(Call(&h, 60).status == TokenStatus::kBlocked);
  h.Pass(1001);
  CHECK(Call(&h, 60).status == TokenStatus::kOk);
}

TEST_CASE("a crash loses the last second of a window, an orderly end nothing") {
  CoreHarness h;
  h.InstallRules({LongRule()});
  SUBCASE("crash") {
    Call(&h, 60);
    h.Pass(999);
    h.Restart();
    CHECK(Call(&h, 100).status == TokenStatus::kOk);
  }
  SUBCASE("end") {
    Call(&h, 60);
    h.core().CloseQueues(h.step());
    h.Commit();
    h.Restart();
    CHECK(Call(&h, 41).status == TokenStatus::kBlocked);
    CHECK(Call(&h, 40).status == TokenStatus::kOk);
  }
  SUBCASE("end, and calls that pass while the server ends") {
    Call(&h, 60);
    h.core().CloseQueues(h.step());
    Call(&h, 15);
    h.Commit();
    Call(&h, 15);
    h.Commit();
    h.Restart();
    CHECK(Call(&h, 11).status == TokenStatus::kBlocked);
    CHECK(Call(&h, 10).status == TokenStatus::kOk);
  }
}

TEST_CASE("while the disk is low no window is written, and then they are again") {
  CoreHarness h;
  h.InstallRules({LongRule()});
  h.core().SetDiskLow(true);
  Call(&h, 60);
  h.Pass(5000);
  CHECK(ReadLedger(&h.store()).rates.empty());
  h.core().SetDiskLow(false);
  h.Pass(1);
  CHECK(ReadLedger(&h.store()).rates.size() == 1);
}

TEST_CASE("calls a second of the future count for nothing, are told of once, and go") {
  CoreHarness h;
  h.InstallRules({LongRule()});
  Call(&h, 60);
  h.Pass(1000);
  ledger::CommitBatch batch;
  const ledger::Seal seal = *ReadLedger(&h.store()).seal;
  for (const int64_t ahead_ms : {kWindowMs / 10, 1'000 * kWindowMs}) {
    const int64_t begin_ms = seal.ledger_ms - seal.ledger_ms % 1000 + ahead_ms;
    batch.RateSet({.key = {FlowId{1}, begin_ms}, .passed = 40});
  }
  batch.Sealed({.batch_number = seal.batch_number + 1,
                .next_fence = seal.next_fence,
                .ledger_ms = seal.ledger_ms});
  REQUIRE(h.store().Commit(batch).ok());
  h.Restart();
  CHECK(Call(&h, 41).status == TokenStatus::kBlocked);
  CHECK(Call(&h, 1).remaining == 39);
  h.Pass(1000);
  for (const ledger::RateBucket& bucket : ReadLedger(&h.store()).rates) {
    CHECK(bucket.key.begin_ms <= h.now().ms);
  }
}

TEST_CASE("calls a second without a batch are damage") {
  Core core(testing::HarnessOptions());
  REQUIRE(core.loading()
              .LoadRule({"shop", FlowId{1}, ledger::RuleState::kActive, RuleToJson(LongRule())})
              .ok());
  REQUIRE(core.loading().LoadRate({.key = {FlowId{1}, 1000}, .passed = 1}).ok());
  CHECK(core.FinishLoad(std::nullopt).code() == StatusCode::kCorruption);
}

TEST_CASE("a window is written once a second at most, and leaves the ledger when it is empty") {
  CoreHarness h;
  h.InstallRules({LongRule()});
  for (int i = 0; i < 30; ++i) {
    Call(&h, 1);
    h.Pass(100);
  }
  h.Pass(1000);
  const std::vector<ledger::RateBucket> saved = ReadLedger(&h.store()).rates;
  REQUIRE(saved.size() >= 3);
  int64_t passed = 0;
  for (const ledger::RateBucket& bucket : saved) {
    CHECK(bucket.key.flow == FlowId{1});
    CHECK(bucket.key.begin_ms % (kWindowMs / 10) == 0);
    passed += bucket.passed;
  }
  CHECK(passed == 30);
  h.Pass(kWindowMs + 1000);
  CHECK(ReadLedger(&h.store()).rates.empty());
}

TEST_CASE("windows under ten seconds, and those of values, are not written") {
  CoreHarness h;
  Rule brief = LongRule();
  brief.window_interval_ms = 9000;
  brief.sample_count = 9;
  h.InstallRules({brief});
  Call(&h, 1);
  h.Pass(2000);
  CHECK(ReadLedger(&h.store()).rates.empty());
  CHECK(h.core().books().rates().next_save_ms() == INT64_MAX);
}

TEST_CASE("a window leaves the ledger with its rule, and when it gets another form") {
  CoreHarness h;
  h.InstallRules({LongRule(1), LongRule(2)});
  Call(&h, 1, 1);
  Call(&h, 1, 2);
  h.Pass(1000);
  REQUIRE(ReadLedger(&h.store()).rates.size() == 2);
  h.InstallRules({LongRule(2)});
  REQUIRE(ReadLedger(&h.store()).rates.size() == 1);
  Rule longer = LongRule(2);
  longer.window_interval_ms = 20'000;
  h.InstallRules({longer});
  CHECK(ReadLedger(&h.store()).rates.empty());
  h.Restart();
  CHECK(Call(&h, 200, 2).status == TokenStatus::kOk);
}

TEST_CASE("many windows are written in pieces") {
  constexpr int64_t kFlows = 3000;
  CoreHarness h;
  std::vector<Rule> rules;
  for (int64_t flow = 1; flow <= kFlows; ++flow) rules.push_back(LongRule(flow));
  h.InstallRules(rules);
  for (int64_t flow = 1; flow <= kFlows; ++flow) Call(&h, 1, flow);
  h.Sleep(1000);
  h.core().OnTime(h.step());
  h.Commit();
  const size_t first = ReadLedger(&h.store()).rates.size();
  CHECK(first >= 300);
  CHECK(first <= 1000);
  CHECK(h.core().NextDeadline() <= h.now());
  h.Pass(0);
  CHECK(ReadLedger(&h.store()).rates.size() == static_cast<size_t>(kFlows));
}

TEST_CASE("windows that are saved and loaded are those of the model, with borrowing") {
  for (const uint64_t n : testing::SampleOf(1000, 50)) {
    const uint64_t seed = testing::SampleSeed() + n;
    Prng prng(seed);
    CoreHarness h;
    const Rule rule = LongRule();
    h.InstallRules({rule});
    testing::RateModel model(rule, /*guard_max=*/0);
    for (int i = 0; i < 60; ++i) {
      h.Pass(static_cast<int64_t>(prng.Below(prng.Below(4) == 0 ? 8000 : 900)));
      if (prng.Below(10) == 0) {
        h.core().CloseQueues(h.step());
        h.Commit();
        h.Restart(static_cast<int64_t>(prng.Below(3000)));
      }
      const auto count = static_cast<int64_t>(1 + prng.Below(30));
      const bool prioritized = prng.Below(3) == 0;
      const RateAnswer answer = Call(&h, count, 1, prioritized);
      const RateAnswer wanted = model.Request(h.now().ms, count, prioritized);
      CAPTURE(seed);
      CAPTURE(i);
      REQUIRE(answer.status == wanted.status);
      REQUIRE(answer.remaining == wanted.remaining);
    }
  }
}

}  // namespace
}  // namespace nowcalls::core
