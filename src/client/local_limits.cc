#include "client/local_limits.h"

#include <algorithm>
#include <vector>

#include "client/answers.h"

namespace nowcalls::client {
namespace {

RefusedBy RefusedByRateOf(bool by_value) { return by_value ? RefusedBy::kParam : RefusedBy::kRate; }

}  // namespace

std::optional<std::optional<uint64_t>> LocalLimits::Share(Of of, FlowId flow, const Value& param,
                                                          uint64_t sessions) const {
  // kFail: none; kPass: all pass. A configured level overrides the rule. A flow without one, and
  // whose rule is unseen or has no fallbackToLocalWhenFail, passes under kByRule; kLocal fails an
  // unseen one.
  using Shared = std::optional<uint64_t>;
  if (mode_ == Fallback::kFail) return std::nullopt;
  if (mode_ == Fallback::kPass) return Shared();
  const auto configured = levels_.find(flow);
  const RuleView* const rule = rules_->Find(flow, param);
  if (mode_ == Fallback::kByRule && (rule == nullptr || !rule->fallback_to_local) &&
      configured == levels_.end()) {
    return Shared();
  }
  if (configured != levels_.end()) return Shared(configured->second);
  if (rule == nullptr) return std::nullopt;
  return Shared(of == Of::kLevel ? rule->Share(param, sessions)
                                 : rule->WindowShare(param, sessions));
}

int64_t LocalLimits::WindowMs(FlowId flow, const Value& param) const {
  constexpr int64_t kMsPerSecond = 1000;
  const RuleView* const rule = rules_->Find(flow, param);
  return rule == nullptr ? kMsPerSecond : rule->window_ms;
}

LocalLimits::Verdict LocalLimits::Judge(uint64_t before, uint32_t count,
                                        std::optional<uint64_t> share) {
  if (!share) {
    ++passed_;
    return {.admitted = true, .now_calls = before + count};
  }
  if (before + count > *share) {
    ++refused_;
    return {.now_calls = before, .level = *share};
  }
  ++granted_;
  return {.admitted = true, .now_calls = before + count, .level = *share};
}

void LocalLimits::Enter(const Held& held) {
  if (counts()) in_progress_[{held.grant.flow, held.param}] += held.grant.count;
}

std::optional<LocalLimits::Verdict> LocalLimits::Enter(const FlowDemand& demand,
                                                       uint64_t sessions) {
  const auto share = Share(Of::kLevel, demand.flow, demand.param, sessions);
  if (!share) return std::nullopt;
  const auto known = in_progress_.find({demand.flow, demand.param});
  const uint64_t before = known == in_progress_.end() ? 0 : known->second;
  const Verdict verdict = Judge(before, demand.count, *share);
  if (verdict.admitted) in_progress_[{demand.flow, demand.param}] = verdict.now_calls;
  return verdict;
}

void LocalLimits::Leave(FlowId flow, const Value& param, uint32_t count) {
  const auto known = in_progress_.find({flow, param});
  if (known == in_progress_.end()) return;
  if (known->second <= count) {
    in_progress_.erase(known);
  } else {
    known->second -= count;
  }
}

std::optional<LocalLimits::Verdict> LocalLimits::Pass(FlowId flow, const Value& param,
                                                      uint32_t count, uint64_t sessions,
                                                      int64_t now_ms) {
  const auto share = Share(Of::kWindow, flow, param, sessions);
  if (!share) return std::nullopt;
  const int64_t length_ms = WindowMs(flow, param);
  // Full: all windows begin anew, so memory stays bounded and some shares are admitted twice.
  if (windows_.size() >= kWindowsMax && !windows_.contains({flow, param})) windows_.clear();
  Window& window = windows_[{flow, param}];
  if (now_ms - window.begin_ms >= length_ms) window = {.begin_ms = now_ms};
  const Verdict verdict = Judge(window.calls, count, *share);
  if (verdict.admitted) window.calls += count;
  return verdict;
}

void LocalLimits::Uncount(FlowId flow, const Value& param, uint32_t count) {
  const auto known = windows_.find({flow, param});
  if (known == windows_.end()) return;
  known->second.calls -= std::min<uint64_t>(known->second.calls, count);
}

bool LocalLimits::Decide(AcquireCall* call, uint64_t sessions, int64_t now_ms) {
  // 1. Take demands in order, until one has no room or no fallback.
  std::vector<HeldPtr> held;
  std::optional<Answer> refusal;
  bool decided = true;
  for (const FlowDemand& demand : call->demands) {
    const auto verdict = demand.rate
                             ? Pass(demand.flow, demand.param, demand.count, sessions, now_ms)
                             : Enter(demand, sessions);
    decided = verdict.has_value();
    if (decided && !verdict->admitted) {
      refusal = LocalRefusalOf(demand.flow, verdict->now_calls, verdict->level);
      if (demand.rate) refusal->refused_by = RefusedByRateOf(demand.param.index() != 0);
    }
    if (!decided || refusal) break;
    if (demand.rate) {
      held.push_back(nullptr);
      continue;
    }
    auto token = std::make_shared<Held>();
    token->grant = {.flow = demand.flow,
                    .count = demand.count,
                    .now_calls = verdict->now_calls,
                    .level = verdict->level,
                    .local = true};
    token->param = demand.param;
    held.push_back(std::move(token));
  }
  // 2. All or none: give back the demands before it.
  if (!decided || refusal) {
    for (size_t i = 0; i < held.size(); ++i) {
      const FlowDemand& demand = call->demands[i];
      if (demand.rate) {
        Uncount(demand.flow, demand.param, demand.count);
      } else {
        Leave(*held[i]);
      }
    }
  }
  // 3. The answer; figures of a grant are those of the first demand.
  if (!decided) return false;
  if (refusal) {
    call->answer = *std::move(refusal);
  } else {
    call->answer.outcome = Outcome::kOk;
    call->answer.local = true;
    call->answer.flow = call->demands.front().flow;
    if (held.front() != nullptr) {
      call->answer.now_calls = held.front()->grant.now_calls;
      call->answer.level = held.front()->grant.level;
    }
    call->held = std::move(held);
  }
  return true;
}

bool LocalLimits::Decide(RateCall* call, uint64_t sessions, int64_t now_ms) {
  // All values or none: a refusal undoes the values before it.
  std::vector<Value> values = call->values;
  if (!call->by_value) values.emplace_back();
  Passed& answer = call->answer;
  size_t counted = 0;
  for (const Value& value : values) {
    const auto verdict = Pass(call->flow, value, call->options.count, sessions, now_ms);
    if (!verdict) return false;
    if (!verdict->admitted) {
      static_cast<Answer&>(answer) = LocalRefusalOf(call->flow, verdict->now_calls, verdict->level);
      answer.refused_by = RefusedByRateOf(call->by_value);
      for (size_t i = 0; i < counted; ++i) Uncount(call->flow, values[i], call->options.count);
      return true;
    }
    ++counted;
  }
  answer.outcome = Outcome::kOk;
  answer.local = true;
  answer.flow = call->flow;
  return true;
}

}  // namespace nowcalls::client
