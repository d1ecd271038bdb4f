// Calls a second of each value of a parameter.
#include <algorithm>
#include <string>

#include "base/limits.h"
#include "core/rates.h"

namespace nowcalls::core {
namespace {

constexpr size_t kValuesMax = 4000;

}  // namespace

RateAnswer Rates::RequestParams(const Step& step, FlowId flow_id, int64_t count,
                                std::span<const Param> values) {
  if (flow_id.value <= 0 || count < 1 || count > kCountMax || values.empty()) {
    return {.status = TokenStatus::kBadRequest};
  }
  const FlowSlot slot = books_->flows().Find(flow_id);
  if (slot == kNoFlow || !books_->flows().at(slot).active()) {
    return {.status = TokenStatus::kNoRuleExists};
  }
  const Flow& flow = books_->flows().at(slot);
  const double limit = LimitOf(flow);
  if (values_.size() > kValuesMax) values_.clear();
  double least = limit;
  for (const Param& value : values) {
    SlidingWindow& window = WindowOf(flow, value);
    window.Advance(step.now.ms);
    least = std::min(least, limit - static_cast<double>(window.passed() + count));
  }
  if (least < 0) return {.status = TokenStatus::kBlocked, .refused_by = RefusedBy::kParam};
  for (const Param& value : values) WindowOf(flow, value).Add(count);
  return {.status = TokenStatus::kOk,
          .remaining = values.size() == 1 ? static_cast<int64_t>(least) : -1};
}

SlidingWindow& Rates::WindowOf(const Flow& flow, const Param& value) {
  std::string key = std::to_string(flow.id.value);
  key += static_cast<char>(value.type);
  key += value.bytes;
  return values_.try_emplace(std::move(key), flow.rule->window_interval_ms, flow.rule->sample_count)
      .first->second;
}

}  // namespace nowcalls::core
