#include "core/rates.h"

#include <algorithm>

#include "base/limits.h"
#include "core/rate_table.h"
#include "core/rules/param_items.h"

namespace nowcalls::core {
namespace {

// More is as good as no limit, and sums of such numbers fit an i64.
constexpr double kLimitMax = 1e15;

// Of a value's window. A request may ask for a thousand values, and each begins a window.
constexpr int32_t kValueBucketsMax = 100;

int64_t Whole(double count) { return WholeCalls(std::min(count, kLimitMax)); }

// The count of a rule or an item, of all sessions together.
double OfSessions(const Books& books, const Flow& flow, double count) {
  if (!flow.level_by_session) return count;
  return count * books.flows().name_space(flow.name_space).sessions_online;
}

int64_t WindowLimit(const Books& books, const Flow& flow, double count) {
  constexpr double kMsPerSecond = 1000;
  count = OfSessions(books, flow, count);
  if (!flow.rule->count_per_interval) count = count * flow.rule->window_interval_ms / kMsPerSecond;
  return Whole(count);
}

// Sentinel's maxOccupyRatio is 1: a window may have borrowed as much as it may have.
bool MayBorrow(const SlidingWindow& window, int64_t count, int64_t limit) {
  if (window.borrowed() > limit) return false;
  return window.passed() + count + window.borrowed_from_next() - window.oldest() <= limit;
}

RateAnswer Blocked(RefusedBy limit) {
  return {.status = TokenStatus::kBlocked, .refused_by = limit};
}

// Sentinel answers an i32.
int64_t Remaining(int64_t left) { return std::clamp<int64_t>(left, 0, INT32_MAX); }

// How many values a rule remembers: the rule's own number, or Sentinel's: 4000 in each bucket of a
// window, or in each second of a hotspot rule.
size_t ValuesMaxOf(const Rule& rule) {
  constexpr int64_t kValuesPerBucket = 4000;
  constexpr int64_t kHotspotValuesMax = 20'000;
  constexpr int64_t kMsPerSecond = 1000;
  int64_t most = rule.param->values_max;
  if (most == 0 && rule.param->algorithm == ParamRule::Algorithm::kWindow) {
    most = kValuesPerBucket * rule.sample_count;
  } else if (most == 0) {
    most = kValuesPerBucket * std::max<int64_t>(rule.param->duration_ms / kMsPerSecond, 1);
    most = std::min(most, kHotspotValuesMax);
  }
  return static_cast<size_t>(std::min<int64_t>(most, kParamValuesMax));
}

template <typename PaceType>
PaceType& PaceIn(ParamValues* values, ValueSlot slot) {
  if (auto* pace = std::get_if<PaceType>(&values->at(slot).pace)) return *pace;
  return values->Begin(slot, PaceType{});
}

SlidingWindow& WindowIn(ParamValues* values, ValueSlot slot, const Rule& rule) {
  if (auto* window = std::get_if<SlidingWindow>(&values->at(slot).pace)) return *window;
  SlidingWindow window(rule.window_interval_ms, std::min(rule.sample_count, kValueBucketsMax));
  const size_t buckets = window.buckets();
  return values->Begin(slot, std::move(window), buckets);
}

}  // namespace

int64_t Rates::WindowLimitOf(const Books& books, const Flow& flow) {
  return WindowLimit(books, flow, flow.rule->count);
}

RateAnswer Rates::Request(const Step& step, const RateRequest& request) {
  FlowSlot slot;
  if (auto refusal = Enter(step, {request.flow, FlowKind::kFlow}, request.count, &slot)) {
    return *refusal;
  }
  const Flow& flow = books_->flows().at(slot);
  FlowRate& rate = books_->rates().Of(slot, *flow.rule);
  rate.window.Advance(step.now.ms);
  const RateAnswer answer = Judge(&rate, request, WindowLimitOf(*books_, flow));
  if (answer.status != TokenStatus::kBlocked && RateTable::IsSaved(*flow.rule)) {
    books_->rates().OnPassed(slot, step.now.ms, step.batch);
  }
  return Conclude(slot, &rate, request.count, answer);
}

RateAnswer Rates::RequestParams(const Step& step, FlowId flow_id, int64_t count,
                                std::span<const Param> values) {
  const auto too_long = [](const Param& value) { return value.bytes.size() > kParamBytesMax; };
  if (values.empty() || std::any_of(values.begin(), values.end(), too_long)) {
    return {.status = TokenStatus::kBadRequest};
  }
  FlowSlot slot;
  if (auto refusal = Enter(step, {flow_id, FlowKind::kValue}, count, &slot)) return *refusal;
  const Flow& flow = books_->flows().at(slot);
  FlowRate& rate = books_->rates().Of(slot, *flow.rule);
  ParamValues& table = books_->rates().values();

  asked_.clear();
  for (const Param& value : values) {
    const ValueSlot used = table.Use(&rate.values, value);
    if (table.at(used).asked == 0) asked_.push_back(used);
    table.at(used).asked += count;
  }
  RateAnswer answer = JudgeValues(step, flow);
  if (values.size() > 1 && answer.status == TokenStatus::kOk) answer.remaining = -1;
  for (const ValueSlot used : asked_) table.at(used).asked = 0;
  table.Trim(&rate.values, ValuesMaxOf(*flow.rule), step.now.ms);

  rate.window.Advance(step.now.ms);
  if (answer.status != TokenStatus::kBlocked || flow.shadow) rate.window.Add(count);
  return Conclude(slot, &rate, count, answer);
}

std::optional<RateAnswer> Rates::Enter(const Step& step, const FlowKey& key, int64_t count,
                                       FlowSlot* slot) {
  if (key.id.value <= 0 || count < 1 || count > kCountMax) {
    return RateAnswer{.status = TokenStatus::kBadRequest};
  }
  FlowTable& flows = books_->flows();
  *slot = flows.Find(key);
  const bool exists = *slot != kNoFlow && flows.at(*slot).active();
  const FlowSlot asked = exists ? *slot : flows.FindOther(key);
  if (asked == kNoFlow) return RateAnswer{.status = TokenStatus::kNoRuleExists};
  Flow& flow = flows.at(asked);
  const auto refuse = [&](TokenStatus status, RefusedBy limit) {
    books_->Count(&flow, [&](FlowCounters* c) { ++c->refused[static_cast<size_t>(limit)]; });
    return RateAnswer{.status = status, .refused_by = limit};
  };
  if (!exists) return refuse(TokenStatus::kBadRequest, RefusedBy::kParam);
  other_kind_->OnRequest(&flow);
  if (flow.draining) return refuse(TokenStatus::kBlocked, RefusedBy::kDraining);
  if (!PassesGuard(step, flow.name_space)) {
    return refuse(TokenStatus::kTooManyRequest, RefusedBy::kNamespaceQps);
  }
  return std::nullopt;
}

// Requests count, whatever their answer; those that the guard refuses do not.
bool Rates::PassesGuard(const Step& step, NamespaceSlot slot) {
  const int64_t max = books_->options().limits.namespace_qps_max;
  if (max == 0) return true;
  SlidingWindow& guard = books_->rates().Guard(slot);
  guard.Advance(step.now.ms);
  if (guard.passed() >= max) return false;
  guard.Add(1);
  return true;
}

RateAnswer Rates::Judge(FlowRate* rate, const RateRequest& request, int64_t limit) {
  SlidingWindow& window = rate->window;
  const int64_t left = limit - window.passed() - request.count;
  if (left >= 0) {
    window.Add(request.count);
    return {.status = TokenStatus::kOk, .remaining = Remaining(left)};
  }
  if (!request.prioritized || !MayBorrow(window, request.count, limit)) {
    return Blocked(RefusedBy::kRate);
  }
  window.Borrow(request.count);
  return {.status = TokenStatus::kShouldWait, .wait_ms = window.length_ms()};
}

RateAnswer Rates::JudgeValues(const Step& step, const Flow& flow) {
  ParamValues& table = books_->rates().values();
  PaceAnswer all{.passes = true, .remaining = INT64_MAX};
  for (const ValueSlot slot : asked_) {
    const PaceAnswer one = Ask(step, flow, slot);
    if (!one.passes) {
      ValueRate& value = table.at(slot);
      value.recent.Block(step.now.ms, flow.rule->rate_interval_ms(), value.asked);
      return Blocked(RefusedBy::kParam);
    }
    all.wait_ms = std::max(all.wait_ms, one.wait_ms);
    all.remaining = std::min(all.remaining, one.remaining);
  }
  for (const ValueSlot slot : asked_) Take(step, flow, slot);
  if (all.wait_ms > 0) return {.status = TokenStatus::kShouldWait, .wait_ms = all.wait_ms};
  return {.status = TokenStatus::kOk, .remaining = Remaining(all.remaining)};
}

PaceAnswer Rates::Ask(const Step& step, const Flow& flow, ValueSlot slot) {
  ParamValues& table = books_->rates().values();
  ValueRate& value = table.at(slot);
  if (value.rule_number != flow.rule_number) {
    value.count = CountOf(*flow.rule, value.value.view());
    value.rule_number = flow.rule_number;
  }
  const int64_t now_ms = step.now.ms;
  switch (flow.rule->param->algorithm) {
    case ParamRule::Algorithm::kTokenBucket: {
      const Pace pace = PaceOf(flow, value);
      value.idle_ms = now_ms + TokenBucket::IdleAfterMs(pace);
      return PaceIn<TokenBucket>(&table, slot).Ask(now_ms, pace, value.asked);
    }
    case ParamRule::Algorithm::kLeakyBucket: {
      const Pace pace = PaceOf(flow, value);
      value.idle_ms = now_ms + LeakyBucket::IdleAfterMs(pace);
      return PaceIn<LeakyBucket>(&table, slot).Ask(now_ms, pace, value.asked);
    }
    case ParamRule::Algorithm::kWindow: break;
  }
  SlidingWindow& window = WindowIn(&table, slot, *flow.rule);
  window.Advance(now_ms);
  value.idle_ms = now_ms + window.length_ms() * static_cast<int64_t>(window.buckets());
  const int64_t left = WindowLimit(*books_, flow, value.count) - window.passed() - value.asked;
  return {.passes = left >= 0, .remaining = left};
}

// REQUIRES: Ask in this step.
void Rates::Take(const Step& step, const Flow& flow, ValueSlot slot) {
  ValueRate& value = books_->rates().values().at(slot);
  value.recent.Pass(step.now.ms, flow.rule->rate_interval_ms(), value.asked);
  if (auto* window = std::get_if<SlidingWindow>(&value.pace)) {
    window->Add(value.asked);
  } else if (auto* tokens = std::get_if<TokenBucket>(&value.pace)) {
    tokens->Take(step.now.ms, PaceOf(flow, value), value.asked);
  } else if (auto* leak = std::get_if<LeakyBucket>(&value.pace)) {
    leak->Take(step.now.ms, PaceOf(flow, value), value.asked);
  }
}

Pace Rates::PaceOf(const Flow& flow, const ValueRate& value) const {
  const ParamRule& param = *flow.rule->param;
  const double count = OfSessions(*books_, flow, value.count);
  return {.limit = Whole(count),
          .exact_limit = count,
          .duration_ms = param.duration_ms,
          .burst = std::min(param.burst_count, static_cast<int64_t>(kLimitMax)),
          .queueing_ms = flow.rule->max_queueing_time_ms};
}

RateAnswer Rates::Conclude(FlowSlot slot, FlowRate* rate, int64_t count, RateAnswer answer) {
  Flow& flow = books_->flows().at(slot);
  const auto calls = static_cast<uint64_t>(count);
  const auto limit = static_cast<size_t>(answer.refused_by);
  const bool blocked = answer.status == TokenStatus::kBlocked;
  if (blocked && flow.shadow) {
    books_->Count(&flow, [&](FlowCounters* c) { ++c->shadow_refused[limit]; });
  } else if (blocked) {
    books_->Count(&flow, [&](FlowCounters* c) { ++c->refused[limit]; });
  }
  if (flow.shadow && answer.status != TokenStatus::kOk) answer = {.status = TokenStatus::kOk};
  books_->rates().Count(rate, [&](RateCounters* c) {
    switch (answer.status) {
      case TokenStatus::kOk: c->passed += calls; break;
      case TokenStatus::kShouldWait: c->borrowed += calls; break;
      default:
        c->blocked += calls;
        ++c->requests_blocked;
        return;
    }
    ++c->requests_passed;
  });
  return answer;
}

}  // namespace nowcalls::core
