#include "core/rates.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "core/rate_table.h"

namespace nowcalls::core {
namespace {

// What a sum of at most the limit leaves; whole, and no more than the wire's i32 carries.
int64_t Remaining(double left) {
  return static_cast<int64_t>(std::clamp(std::floor(left), 0.0, double{INT32_MAX}));
}

RateAnswer Pass(FlowRate* rate, const RateRequest& request, double left) {
  rate->window.Add(request.count);
  rate->counters.passed += static_cast<uint64_t>(request.count);
  ++rate->counters.requests_passed;
  return {.status = TokenStatus::kOk, .remaining = Remaining(left)};
}

// Sentinel's maxOccupyRatio: calls that wait for the next bucket, of those that a window may have.
constexpr double kMaxOccupyRatio = 1.0;

bool MayBorrow(const SlidingWindow& window, int64_t count, double limit) {
  if (static_cast<double>(window.lent()) > kMaxOccupyRatio * limit) return false;
  const int64_t then = window.passed() + count + window.lent_by_next() - window.oldest();
  return static_cast<double>(then) <= limit;
}

}  // namespace

RateAnswer Rates::Request(const Step& step, const RateRequest& request) {
  if (request.flow.value <= 0 || request.count < 1 || request.count > kCountMax) {
    return {.status = TokenStatus::kBadRequest};
  }
  const FlowSlot slot = books_->flows().Find(request.flow);
  if (slot == kNoFlow || !books_->flows().at(slot).active()) {
    return {.status = TokenStatus::kNoRuleExists};
  }
  const Flow& flow = books_->flows().at(slot);
  if (!PassesGuard(step, flow.name_space)) {
    return {.status = TokenStatus::kTooManyRequest, .refused_by = RefusedBy::kNamespaceQps};
  }
  FlowRate& rate = books_->rates().Of(slot, *flow.rule);
  rate.window.Advance(step.now.ms);
  const double limit = LimitOf(flow);
  const double left = limit - static_cast<double>(rate.window.passed() + request.count);
  if (left >= 0 || flow.shadow) return Pass(&rate, request, left);
  if (request.prioritized && MayBorrow(rate.window, request.count, limit)) {
    rate.window.Borrow(request.count);
    rate.counters.borrowed += static_cast<uint64_t>(request.count);
    return {.status = TokenStatus::kShouldWait, .wait_ms = rate.window.length_ms()};
  }
  rate.counters.blocked += static_cast<uint64_t>(request.count);
  ++rate.counters.requests_blocked;
  return {.status = TokenStatus::kBlocked, .refused_by = RefusedBy::kRate};
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

double Rates::LimitOf(const Flow& flow) const {
  double count = flow.rule->count;
  if (flow.level_by_session) count *= books_->flows().name_space(flow.name_space).sessions_online;
  if (flow.rule->count_per_interval) return count;
  constexpr double kMsPerSecond = 1000;
  return count * flow.rule->window_interval_ms / kMsPerSecond;
}

}  // namespace nowcalls::core
