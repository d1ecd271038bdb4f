// Calls a second against a model: random rules, and requests at random moments. Each sequence has a
// flow of its own, so that its windows are new.
#include "unit/core/rate_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/prng.h"
#include "core/rates/rates.h"
#include "core/rules/param_items.h"
#include "support/core_harness.h"
#include "support/sample.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;
using testing::RateModel;

constexpr uint64_t kSequences = 10'000;
constexpr uint64_t kUsualSequences = 400;
constexpr int kCallsPerSequence = 60;
constexpr uint32_t kGuardMax = 20;

std::string AnswerText(const RateAnswer& answer) {
  return std::string(TokenStatusName(answer.status)) + " " +
         std::string(RefusedByName(answer.refused_by)) + " remaining " +
         std::to_string(answer.remaining) + " wait " + std::to_string(answer.wait_ms);
}

// One of the values; the chance of each is the same.
template <typename T>
T OneOf(Prng* prng, std::initializer_list<T> values) {
  return *(values.begin() + static_cast<ptrdiff_t>(prng->Below(values.size())));
}

Rule RandomRule(Prng* prng, FlowId flow) {
  Rule rule;
  rule.resource = "r";
  rule.flow_id = flow;
  rule.count = OneOf<double>(prng, {0, 1, 2, 5, 10, 0.4, 3.5});
  rule.window_interval_ms = OneOf(prng, {100, 1000, 3000, 60'000});
  rule.sample_count = OneOf(prng, {1, 2, 10, 20});
  rule.threshold_type = ThresholdType::kGlobal;
  rule.shadow = prng->Below(8) == 0;
  return rule;
}

ParamValue RandomValue(Prng* prng) {
  const auto n = static_cast<char>(prng->Below(6));
  return OneOf<ParamValue>(prng, {{ParamType::kInt, std::string("\0\0\0", 3) + n},
                                  {ParamType::kLong, std::string("\0\0\0\0\0\0\0", 7) + n},
                                  {ParamType::kString, std::string(1, n)},
                                  {ParamType::kString, std::string(40, n)}});
}

ParamRule RandomParam(Prng* prng, ParamRule::Algorithm algorithm) {
  ParamRule param;
  param.algorithm = algorithm;
  param.burst_count = OneOf<int64_t>(prng, {0, 0, 3, 100});
  param.duration_ms = OneOf<int64_t>(prng, {1000, 1000, 5000});
  param.values_max = OneOf<uint32_t>(prng, {2, 5, 30});
  for (uint64_t i = prng->Below(4); i > 0; --i) {
    const ParamValue value = RandomValue(prng);
    const auto same = [&](const ParamRule::Item& item) { return item.value == value; };
    if (std::any_of(param.items.begin(), param.items.end(), same)) continue;
    param.items.push_back({value, OneOf<double>(prng, {0, 1, 4, 16})});
  }
  SortItems(&param);
  return param;
}

class RateLife {
 public:
  RateLife() : h_(Options()) {}

  void Flow(uint64_t seed) {
    Prng prng(seed);
    Rule rule = RandomRule(&prng, NextFlow());
    rule.threshold_type = OneOf(&prng, {ThresholdType::kGlobal, ThresholdType::kAvgLocal});
    rule.count_per_interval = prng.Below(4) == 0;
    RateModel model = Begin(&prng, rule);
    for (int i = 0; i < kCallsPerSequence; ++i) {
      Pass(&prng, rule);
      if (prng.Below(10) == 0) ChangeSessions(&prng, &model);
      const auto count = OneOf<int64_t>(&prng, {1, 1, 1, 2, 7});
      const bool prioritized = prng.Below(3) == 0;
      const RateAnswer answer = h_.core().rates().Request(
          h_.step(), {.flow = rule.flow_id, .count = count, .prioritized = prioritized});
      CheckSame(answer, model.Request(h_.now().ms, count, prioritized), seed, i);
    }
    End(rule);
  }

  void Params(uint64_t seed, ParamRule::Algorithm algorithm) {
    Prng prng(seed);
    Rule rule = RandomRule(&prng, NextFlow());
    // Powers of two, so that a leaky bucket's costs are exact; 0 blocks.
    if (algorithm != ParamRule::Algorithm::kWindow) {
      rule.count = OneOf<double>(&prng, {0, 1, 2, 8, 64, 2048});
    }
    rule.param = RandomParam(&prng, algorithm);
    rule.max_queueing_time_ms = OneOf(&prng, {0, 1, 200, 3000});
    RateModel model = Begin(&prng, rule);
    for (int i = 0; i < kCallsPerSequence; ++i) {
      Pass(&prng, rule);
      std::vector<ParamValue> values(prng.Below(8) == 0 ? prng.Below(4) : 1);
      for (ParamValue& value : values) value = RandomValue(&prng);
      std::vector<Param> views;
      for (const ParamValue& value : values) views.push_back(value.view());
      const auto count = OneOf<int64_t>(&prng, {1, 1, 1, 2, 5});
      const RateAnswer answer =
          h_.core().rates().RequestParams(h_.step(), rule.flow_id, count, views);
      CheckSame(answer, model.RequestParams(h_.now().ms, count, values), seed, i);
    }
    End(rule);
  }

 private:
  static CoreOptions Options() {
    CoreOptions options = testing::HarnessOptions();
    options.limits.namespace_qps_max = kGuardMax;
    return options;
  }

  FlowId NextFlow() { return FlowId{++last_flow_}; }

  RateModel Begin(Prng* prng, const Rule& rule) {
    h_.Sleep(10'000);  // The namespace's guard has forgotten the sequence before.
    h_.InstallRules({rule});
    RateModel model(rule, kGuardMax);
    ChangeSessions(prng, &model);
    return model;
  }

  void End(const Rule& rule) {
    const FlowSlot slot = h_.core().flows().Find(rule.key());
    const RateState* rate = h_.core().books().rates().Find(slot);
    if (rate != nullptr && rule.param) CHECK(rate->values.list.size <= rule.param->values_max);
  }

  // A moment later, a bucket later, or so much later that all is forgotten.
  void Pass(Prng* prng, const Rule& rule) {
    const auto interval = static_cast<uint64_t>(rule.window_interval_ms);
    const auto most = OneOf<uint64_t>(prng, {1, 3, 40, interval / 8, interval, 3 * interval});
    h_.Sleep(static_cast<int64_t>(prng->Below(most + 1)));
  }

  void ChangeSessions(Prng* prng, RateModel* model) {
    const uint64_t wanted = prng->Below(4);
    while (sessions_.size() < wanted) {
      sessions_.push_back(h_.Hello("client-" + std::to_string(sessions_.size())));
    }
    while (sessions_.size() > wanted) {
      h_.Goodbye(sessions_.back());
      sessions_.pop_back();
    }
    model->sessions = static_cast<int64_t>(wanted);
  }

  static void CheckSame(const RateAnswer& answer, const RateAnswer& wanted, uint64_t seed, int i) {
    if (AnswerText(answer) == AnswerText(wanted)) return;
    CAPTURE(seed);
    CAPTURE(i);
    REQUIRE(AnswerText(answer) == AnswerText(wanted));
  }

  CoreHarness h_;
  std::vector<SessionSlot> sessions_;
  int64_t last_flow_ = 0;
};

TEST_CASE("calls a second are answered as by the model, with borrowing and the namespace's guard") {
  RateLife life;
  for (const uint64_t n : testing::SampleOf(kSequences, kUsualSequences)) {
    life.Flow(testing::SampleSeed() + n);
  }
}

TEST_CASE("calls a second of values in windows are answered as by the model") {
  RateLife life;
  for (const uint64_t n : testing::SampleOf(kSequences, kUsualSequences)) {
    life.Params(testing::SampleSeed() + n, ParamRule::Algorithm::kWindow);
  }
}

TEST_CASE("token buckets of values are answered as by the model") {
  RateLife life;
  for (const uint64_t n : testing::SampleOf(kSequences, kUsualSequences)) {
    life.Params(testing::SampleSeed() + n, ParamRule::Algorithm::kTokenBucket);
  }
}

TEST_CASE("leaky buckets of values are answered as by the model") {
  RateLife life;
  for (const uint64_t n : testing::SampleOf(kSequences, kUsualSequences)) {
    life.Params(testing::SampleSeed() + n, ParamRule::Algorithm::kLeakyBucket);
  }
}

}  // namespace
}  // namespace nowcalls::core
