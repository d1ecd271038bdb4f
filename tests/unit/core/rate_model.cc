#include "unit/core/rate_model.h"

#include <algorithm>
#include <cmath>

namespace nowcalls::testing {
namespace {

constexpr int64_t kUnit = 1024;  // Of LeakyBucket's times: parts of a millisecond.

core::RateAnswer Refusal(TokenStatus status, RefusedBy limit) {
  return {.status = status, .refused_by = limit};
}

}  // namespace

int64_t RateModel::Sum(const Buckets& buckets, int64_t first, int64_t last) {
  int64_t sum = 0;
  for (const auto& [number, calls] : buckets) {
    if (number >= first && number <= last) sum += calls;
  }
  return sum;
}

double RateModel::CountOf(const ParamValue& value) const {
  double count = rule_.count;
  for (const core::ParamRule::Item& item : rule_.param->items) {
    if (item.value == value) count = item.count;
  }
  return count;
}

int64_t RateModel::WindowLimit(double count) const {
  if (rule_.threshold_type == core::ThresholdType::kAvgLocal) {
    count *= static_cast<double>(sessions);
  }
  if (!rule_.count_per_interval) count = count * rule_.window_interval_ms / 1000;
  return static_cast<int64_t>(std::floor(count + 1e-9));
}

bool RateModel::PassesGuard(int64_t now_ms) {
  if (guard_max_ == 0) return true;
  const int64_t now = now_ms / 100;
  if (Sum(guard_, now - 9, now) + 1 > guard_max_) return false;
  ++guard_[now];
  return true;
}

core::RateAnswer RateModel::Request(int64_t now_ms, int64_t count, bool prioritized) {
  if (!PassesGuard(now_ms)) return Refusal(TokenStatus::kTooManyRequest, RefusedBy::kNamespaceQps);
  const int64_t length_ms = rule_.window_interval_ms / rule_.sample_count;
  const int64_t now = now_ms / length_ms;
  const int64_t first = now - rule_.sample_count + 1;
  const int64_t limit = WindowLimit(rule_.count);
  const int64_t used = Sum(passed_, first, now);
  if (used + count <= limit) {
    passed_[now] += count;
    return {.status = TokenStatus::kOk, .remaining = limit - used - count};
  }
  if (prioritized && Sum(borrowed_, first, now) <= limit &&
      used + count + borrowed_[now] - passed_[first] <= limit) {
    borrowed_[now] += count;
    passed_[now + 1] += count;
    if (rule_.shadow) return {.status = TokenStatus::kOk};
    return {.status = TokenStatus::kShouldWait, .wait_ms = length_ms};
  }
  if (rule_.shadow) return {.status = TokenStatus::kOk};
  return Refusal(TokenStatus::kBlocked, count > limit ? RefusedBy::kOverLevel : RefusedBy::kRate);
}

core::RateAnswer RateModel::RequestParams(int64_t now_ms, int64_t count,
                                          const std::vector<ParamValue>& values) {
  if (values.empty()) return {.status = TokenStatus::kBadRequest};
  if (!PassesGuard(now_ms)) return Refusal(TokenStatus::kTooManyRequest, RefusedBy::kNamespaceQps);
  // Each value once, with what is asked for it in all.
  std::vector<std::pair<ParamValue, int64_t>> asked;
  for (const ParamValue& value : values) {
    const auto same = [&](const auto& pair) { return pair.first == value; };
    const auto found = std::find_if(asked.begin(), asked.end(), same);
    if (found == asked.end()) {
      asked.emplace_back(value, count);
    } else {
      found->second += count;
    }
  }
  for (const ParamValue& value : values) Use(value);
  bool passes = true;
  core::RateAnswer refusal;
  int64_t wait_ms = 0;
  int64_t remaining = 0;
  const auto entry = [&](const ParamValue& value) {
    return &*std::find_if(values_.begin(), values_.end(),
                          [&](const Value& v) { return v.value == value; });
  };
  for (const auto& [value, calls] : asked) {
    const Verdict verdict = Judge(now_ms, entry(value), calls, /*take=*/false);
    Value unused;
    unused.value = value;
    const bool ever = Judge(now_ms, &unused, calls, /*take=*/false).passes;
    const bool told_before = refusal.refused_by == RefusedBy::kOverLevel || (ever && !passes);
    if (!verdict.passes && !told_before) {
      refusal = Refusal(TokenStatus::kBlocked, ever ? RefusedBy::kParam : RefusedBy::kOverLevel);
      refusal.value =
          static_cast<uint32_t>(std::find(values.begin(), values.end(), value) - values.begin());
    }
    passes = passes && verdict.passes;
    wait_ms = std::max(wait_ms, verdict.wait_ms);
    remaining = verdict.remaining;
  }
  if (passes) {
    for (const auto& [value, calls] : asked) Judge(now_ms, entry(value), calls, /*take=*/true);
  }
  Forget();
  if (rule_.shadow && (!passes || wait_ms > 0)) {
    return {.status = TokenStatus::kOk};
  }
  if (!passes) return refusal;
  if (wait_ms > 0) return {.status = TokenStatus::kShouldWait, .wait_ms = wait_ms};
  return {.status = TokenStatus::kOk, .remaining = values.size() > 1 ? -1 : remaining};
}

RateModel::Value& RateModel::Use(const ParamValue& value) {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const Value& v) { return v.value == value; });
  if (found == values_.end()) {
    values_.emplace_front();
    values_.front().value = value;
  } else {
    values_.splice(values_.begin(), values_, found);
  }
  return values_.front();
}

void RateModel::Forget() {
  while (values_.size() > rule_.param->values_max) values_.pop_back();
}

RateModel::Verdict RateModel::Judge(int64_t now_ms, Value* value, int64_t count, bool take) const {
  switch (rule_.param->algorithm) {
    case core::ParamRule::Algorithm::kTokenBucket: return TokenBucket(now_ms, value, count, take);
    case core::ParamRule::Algorithm::kLeakyBucket: return LeakyBucket(now_ms, value, count, take);
    case core::ParamRule::Algorithm::kWindow: break;
  }
  return Window(now_ms, value, count, take);
}

RateModel::Verdict RateModel::Window(int64_t now_ms, Value* value, int64_t count, bool take) const {
  const int64_t now = now_ms * rule_.sample_count / rule_.window_interval_ms;
  const int64_t used = Sum(value->passed, now - rule_.sample_count + 1, now);
  const int64_t left = WindowLimit(CountOf(value->value)) - used - count;
  if (take) value->passed[now] += count;
  return {.passes = left >= 0, .remaining = left};
}

// After rejectTrafficShapingController.PerformChecking of sentinel-golang.
RateModel::Verdict RateModel::TokenBucket(int64_t now_ms, Value* value, int64_t count,
                                          bool take) const {
  const auto limit = static_cast<int64_t>(CountOf(value->value));
  const int64_t max = limit + rule_.param->burst_count;
  if (limit <= 0 || count > max) return {};
  int64_t left = 0;
  bool fills = false;
  const int64_t passed_ms = now_ms - value->filled_ms;
  if (!value->seen) {
    left = max - count;
    fills = true;
  } else if (passed_ms > rule_.param->duration_ms) {
    const int64_t fresh = passed_ms * limit / rule_.param->duration_ms;
    left = std::min(max, fresh + value->tokens) - count;
    fills = true;
  } else {
    left = value->tokens - count;
  }
  if (left < 0) return {};
  if (take) {
    value->seen = true;
    value->tokens = left;
    if (fills) value->filled_ms = now_ms;
  }
  return {.passes = true, .remaining = left};
}

// After throttlingTrafficShapingController.PerformChecking, with exact costs.
RateModel::Verdict RateModel::LeakyBucket(int64_t now_ms, Value* value, int64_t count,
                                          bool take) const {
  const double limit = CountOf(value->value);
  if (limit <= 0) return {};
  const int64_t now = now_ms * kUnit;
  const int64_t duration = rule_.param->duration_ms * kUnit;
  const auto cost = static_cast<int64_t>(static_cast<double>(count * duration) / limit);
  const bool fresh = !value->seen || value->last < now - duration;
  const int64_t expected = (fresh ? now - duration : value->last) + cost;
  const int64_t expected_ms = expected / kUnit;  // The clock has whole milliseconds.
  if (expected_ms > now_ms && expected - now >= rule_.max_queueing_time_ms * kUnit) return {};
  if (take) {
    value->seen = true;
    value->last = std::max(expected, now);
  }
  return {.passes = true, .wait_ms = std::max<int64_t>(0, expected_ms - now_ms)};
}

}  // namespace nowcalls::testing
