#include "core/rates/rates.h"

#include <algorithm>

#include "base/limits.h"
#include "core/rules/param_items.h"

namespace nowcalls::core {
namespace {

// Calls. More is as good as no limit, and sums of such numbers fit an i64.
constexpr double kLimitMax = 1e15;

// Buckets of a value's window. A request may ask for a thousand values, and each begins a window.
constexpr int32_t kValueBucketsMax = 100;

// Time for which `params` shows a value, beside the rule's last interval.
constexpr int64_t kShownMs = RecentCalls::kMinuteMs;

int64_t Whole(double count) { return WholeCalls(std::min(count, kLimitMax)); }

// The count of a rule or an item, of all sessions together.
double OfSessions(const FlowTable& flows, const Flow& flow, double count) {
  if (!flow.level_by_session) return count;
  return count * flows.name_space(flow.name_space).sessions_online;
}

int64_t WindowLimit(const FlowTable& flows, const Flow& flow, double count) {
  return Whole(flow.rule->CallsInInterval(OfSessions(flows, flow, count)));
}

// Whether calls fit the next bucket: the oldest bucket will have left the window, and what was
// borrowed has come. Sentinel's maxOccupyRatio is 1: a window may have borrowed as much as it may
// have.
bool MayBorrow(const SlidingWindow& window, int64_t count, int64_t limit) {
  if (window.borrowed() > limit) return false;
  return window.passed() + count + window.borrowed_from_next() - window.oldest() <= limit;
}

RateAnswer Blocked(RefusedBy limit) {
  return {.status = TokenStatus::kBlocked, .refused_by = limit};
}

// Sentinel answers an i32.
int64_t Remaining(int64_t left) { return std::clamp<int64_t>(left, 0, INT32_MAX); }

// Values that a rule remembers: its own number, or Sentinel's: 4000 in each bucket of a window, or
// in each second of a hotspot rule.
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

int64_t Rates::WindowLimitOf(const FlowTable& flows, const Flow& flow) {
  return WindowLimit(flows, flow, flow.rule->count);
}

RateAnswer Rates::Request(const Step& step, const RateRequest& request) {
  FlowSlot slot;
  if (auto refusal = Enter(step, {request.flow, FlowKind::kFlow}, request.count, &slot)) {
    return *refusal;
  }
  const Wish wish{.flow = slot, .count = request.count, .prioritized = request.prioritized};
  return Conclude(step, wish, Ask(step, wish));
}

RateAnswer Rates::RequestParams(const Step& step, FlowId flow_id, int64_t count,
                                std::span<const Param> values) {
  const auto too_long = [](const Param& value) { return value.bytes.size() > kParamBytesMax; };
  if (values.empty() || std::any_of(values.begin(), values.end(), too_long)) {
    return {.status = TokenStatus::kBadRequest};
  }
  FlowSlot slot;
  if (auto refusal = Enter(step, {flow_id, FlowKind::kValue}, count, &slot)) return *refusal;
  const Flow& flow = flows_->at(slot);
  RateState& rate = rates_->Of(slot, *flow.rule);
  ParamValues& table = rates_->values();

  // First pass: note on each value what the request asks of it in all. A value named twice gets the
  // sum, and its first position.
  asked_.clear();
  for (uint32_t i = 0; i < values.size(); ++i) {
    const ValueSlot used = table.Use(&rate.values, values[i]);
    if (table.at(used).asked == 0) asked_.push_back({used, i});
    table.at(used).asked += count;
  }
  RateAnswer answer = AskValues(step, flow);
  // Several values have no remainder in common.
  if (values.size() > 1 && answer.status == TokenStatus::kOk) answer.remaining = -1;
  TakeValues(step, flow, answer);
  // Values are dropped last, so a request may have more values than the rule remembers.
  table.Trim(&rate.values, ValuesMaxOf(*flow.rule), step.now.ms);

  rate.window.Advance(step.now.ms);
  // The flow's window counts the request once, for listings; it limits nothing.
  if (answer.status != TokenStatus::kBlocked || flow.shadow) rate.window.Add(count);
  return Count(slot, &rate, count, answer);
}

bool Rates::MayEverPass(const Wish& wish) const {
  const Flow& flow = flows_->at(wish.flow);
  if (!wish.param.has_value()) return wish.count <= WindowLimitOf(*flows_, flow);
  return MayValueEverPass(flow, CountOf(*flow.rule, *wish.param), wish.count);
}

RateAnswer Rates::Ask(const Step& step, const Wish& wish) {
  const Flow& flow = flows_->at(wish.flow);
  RateState& rate = rates_->Of(wish.flow, *flow.rule);
  rate.window.Advance(step.now.ms);
  if (!wish.param.has_value()) return AskWindow(wish, &rate);
  ParamValues& table = rates_->values();
  const ValueSlot slot = table.Use(&rate.values, *wish.param);
  table.at(slot).asked = wish.count;
  asked_.assign(1, Asked{slot});
  const RateAnswer answer = AskValues(step, flow);
  table.at(slot).asked = 0;
  // Trim here, too: another item may refuse the group, and then Conclude never comes.
  table.Trim(&rate.values, ValuesMaxOf(*flow.rule), step.now.ms);
  return answer;
}

RateAnswer Rates::Conclude(const Step& step, const Wish& wish, const RateAnswer& answer) {
  const Flow& flow = flows_->at(wish.flow);
  RateState& rate = rates_->Of(wish.flow, *flow.rule);
  const bool passes = answer.status != TokenStatus::kBlocked;
  if (wish.param.has_value()) {
    ParamValues& table = rates_->values();
    const ValueSlot slot = table.Use(&rate.values, *wish.param);
    table.at(slot).asked = wish.count;
    asked_.assign(1, Asked{slot});
    // Another value of the group may have pushed this one out since Ask. Asked again, it has a pace
    // to be taken from.
    if (passes) AskValue(step, flow, slot);
    TakeValues(step, flow, answer);
    table.Trim(&rate.values, ValuesMaxOf(*flow.rule), step.now.ms);
    if (passes || flow.shadow) rate.window.Add(wish.count);
  } else if (passes) {
    // Calls that only shadow mode lets pass stay out of the window. Else a flow at twice its limit
    // would count nearly all as refused, not half.
    if (answer.status == TokenStatus::kShouldWait) {
      rate.window.Borrow(wish.count);
    } else {
      rate.window.Add(wish.count);
    }
    // Long windows survive a restart.
    if (RateTable::IsSaved(*flow.rule)) rates_->OnPassed(wish.flow, step.now.ms, step.batch);
  }
  return Count(wish.flow, &rate, wish.count, answer);
}

// Checks that do not depend on what has passed. Sets the slot, or returns the refusal.
std::optional<RateAnswer> Rates::Enter(const Step& step, const FlowKey& key, int64_t count,
                                       FlowSlot* slot) {
  if (key.id.value <= 0 || count < 1 || count > kCountMax) {
    return RateAnswer{.status = TokenStatus::kBadRequest};
  }
  *slot = flows_->Find(key);
  const bool exists = *slot != kNoFlow && flows_->at(*slot).active();
  // Without its rule, the other kind's rule of the id decides which error it is.
  const FlowSlot asked = exists ? *slot : FindOther(*flows_, key);
  if (asked == kNoFlow) return RateAnswer{.status = TokenStatus::kNoRuleExists};
  Flow& flow = flows_->at(asked);
  const auto refuse = [&](TokenStatus status, RefusedBy limit) {
    flows_->Count(&flow, [&](TokenCounters* c) { ++c->refused[static_cast<size_t>(limit)]; });
    return RateAnswer{.status = status, .refused_by = limit};
  };
  if (!exists) return refuse(TokenStatus::kBadRequest, RefusedBy::kParam);
  other_kind_->OnRequest(&flow);
  // The guard is last: it counts requests that the rule has to decide.
  if (flow.draining) return refuse(TokenStatus::kBlocked, RefusedBy::kDraining);
  if (!PassesGuard(step, flow.name_space)) {
    return refuse(TokenStatus::kTooManyRequest, RefusedBy::kNamespaceQps);
  }
  return std::nullopt;
}

// A request counts against the guard whatever its answer, unless the guard itself refuses it.
bool Rates::PassesGuard(const Step& step, NamespaceSlot slot) {
  const int64_t max = flows_->name_space(slot).guard;
  if (max == 0) return true;
  SlidingWindow& guard = rates_->Guard(slot);
  guard.Advance(step.now.ms);
  if (guard.passed() >= max) return false;
  guard.Add(1);
  return true;
}

RateAnswer Rates::AskWindow(const Wish& wish, RateState* rate) const {
  const SlidingWindow& window = rate->window;
  const int64_t limit = WindowLimitOf(*flows_, flows_->at(wish.flow));
  if (wish.count > limit) return Blocked(RefusedBy::kOverLevel);
  const int64_t left = limit - window.passed() - wish.count;
  if (left >= 0) return {.status = TokenStatus::kOk, .remaining = Remaining(left)};
  // Full: a prioritized request may borrow from the next bucket, and waits for its begin.
  if (!wish.prioritized || !MayBorrow(window, wish.count, limit)) {
    return Blocked(RefusedBy::kRate);
  }
  return {.status = TokenStatus::kShouldWait, .wait_ms = window.length_ms()};
}

RateAnswer Rates::AskValues(const Step& step, const Flow& flow) {
  ParamValues& table = rates_->values();
  PaceAnswer all{.passes = true, .remaining = INT64_MAX};
  std::optional<RateAnswer> blocked;
  for (const Asked& asked : asked_) {
    const PaceAnswer one = AskValue(step, flow, asked.slot);
    all.wait_ms = std::max(all.wait_ms, one.wait_ms);
    all.remaining = std::min(all.remaining, one.remaining);
    if (one.passes) continue;
    // The answer is the first refusal, unless a later one is for ever: no wait helps then.
    const ValueRate& value = table.at(asked.slot);
    const bool ever = MayValueEverPass(flow, value.count, value.asked);
    if (ever && blocked.has_value()) continue;
    blocked = Blocked(ever ? RefusedBy::kParam : RefusedBy::kOverLevel);
    blocked->value = asked.position;
    if (!ever) break;
  }
  // All fit: the longest wait and the least remainder count.
  if (blocked.has_value()) return *blocked;
  if (all.wait_ms > 0) return {.status = TokenStatus::kShouldWait, .wait_ms = all.wait_ms};
  return {.status = TokenStatus::kOk, .remaining = Remaining(all.remaining)};
}

// Takes the calls of all values, or counts them as blocked on the value in the way. `answer`: of
// AskValues. Clears what the request noted.
void Rates::TakeValues(const Step& step, const Flow& flow, const RateAnswer& answer) {
  ParamValues& table = rates_->values();
  for (const Asked& asked : asked_) {
    ValueRate& value = table.at(asked.slot);
    if (answer.status != TokenStatus::kBlocked) {
      TakeValue(step, flow, asked.slot);
    } else if (asked.position == answer.value) {
      value.recent.Block(step.now.ms, flow.rule->rate_interval_ms(), value.asked);
      value.minute.Block(step.now.ms, kShownMs, value.asked);
    }
    value.asked = 0;
  }
}

PaceAnswer Rates::AskValue(const Step& step, const Flow& flow, ValueSlot slot) {
  ParamValues& table = rates_->values();
  ValueRate& value = table.at(slot);
  // The value's count is a copy, renewed after each change of the rule.
  if (value.rule_number != flow.rule_number) {
    value.count = CountOf(*flow.rule, value.value.view());
    value.rule_number = flow.rule_number;
  }
  const int64_t now_ms = step.now.ms;
  // Also a refused value is shown for a minute.
  value.idle_ms = std::max(value.busy_ms, now_ms + kShownMs);
  switch (flow.rule->param->algorithm) {
    case ParamRule::Algorithm::kTokenBucket: {
      const Pace pace = PaceOf(flow, value.count);
      return PaceIn<TokenBucket>(&table, slot).Ask(now_ms, pace, value.asked);
    }
    case ParamRule::Algorithm::kLeakyBucket: {
      const Pace pace = PaceOf(flow, value.count);
      return PaceIn<LeakyBucket>(&table, slot).Ask(now_ms, pace, value.asked);
    }
    case ParamRule::Algorithm::kWindow: break;
  }
  SlidingWindow& window = WindowIn(&table, slot, *flow.rule);
  window.Advance(now_ms);
  const int64_t left = WindowLimit(*flows_, flow, value.count) - window.passed() - value.asked;
  return {.passes = left >= 0, .remaining = left};
}

// REQUIRES: AskValue in this step. `busy_ms` is when the value is as good as one never seen.
void Rates::TakeValue(const Step& step, const Flow& flow, ValueSlot slot) {
  ValueRate& value = rates_->values().at(slot);
  const int64_t now_ms = step.now.ms;
  value.recent.Pass(now_ms, flow.rule->rate_interval_ms(), value.asked);
  value.minute.Pass(now_ms, kShownMs, value.asked);
  if (auto* window = std::get_if<SlidingWindow>(&value.pace)) {
    window->Add(value.asked);
    value.busy_ms = now_ms + window->length_ms() * static_cast<int64_t>(window->buckets());
  } else if (auto* tokens = std::get_if<TokenBucket>(&value.pace)) {
    const Pace pace = PaceOf(flow, value.count);
    tokens->Take(now_ms, pace, value.asked);
    value.busy_ms = now_ms + TokenBucket::IdleAfterMs(pace);
  } else if (auto* leak = std::get_if<LeakyBucket>(&value.pace)) {
    const Pace pace = PaceOf(flow, value.count);
    leak->Take(now_ms, pace, value.asked);
    value.busy_ms = now_ms + LeakyBucket::IdleAfterMs(pace);
  }
  value.idle_ms = std::max(value.idle_ms, value.busy_ms);
}

// Asks a fresh pace, as of a value never seen: if that refuses, no wait helps.
bool Rates::MayValueEverPass(const Flow& flow, double count, int64_t asked) const {
  switch (flow.rule->param->algorithm) {
    case ParamRule::Algorithm::kTokenBucket:
      return TokenBucket{}.Ask(0, PaceOf(flow, count), asked).passes;
    case ParamRule::Algorithm::kLeakyBucket:
      return LeakyBucket{}.Ask(0, PaceOf(flow, count), asked).passes;
    case ParamRule::Algorithm::kWindow: break;
  }
  return asked <= WindowLimit(*flows_, flow, count);
}

// `of_session`: what the rule gives the value, or gives it for each session online.
Pace Rates::PaceOf(const Flow& flow, double of_session) const {
  const ParamRule& param = *flow.rule->param;
  const double count = OfSessions(*flows_, flow, of_session);
  return {.limit = Whole(count),
          .exact_limit = count,
          .duration_ms = param.duration_ms,
          .burst = std::min(param.burst_count, static_cast<int64_t>(kLimitMax)),
          .queueing_ms = flow.rule->max_queueing_time_ms};
}

RateAnswer Rates::Count(FlowSlot slot, RateState* rate, int64_t count, RateAnswer answer) {
  Flow& flow = flows_->at(slot);
  const auto calls = static_cast<uint64_t>(count);
  const auto limit = static_cast<size_t>(answer.refused_by);
  const bool blocked = answer.status == TokenStatus::kBlocked;
  // Counted as the rule decided; what the client gets in shadow mode is kOk.
  if (blocked && flow.shadow) {
    flows_->Count(&flow, [&](TokenCounters* c) { ++c->shadow_refused[limit]; });
  } else if (blocked) {
    flows_->Count(&flow, [&](TokenCounters* c) { ++c->refused[limit]; });
  }
  if (flow.shadow && answer.status != TokenStatus::kOk) answer = {.status = TokenStatus::kOk};
  rates_->Count(rate, [&](RateCounters* c) {
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
