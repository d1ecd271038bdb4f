#include "core/tables/spared_tokens.h"

#include <algorithm>

namespace nowcalls::core {

void SparedTokens::WaitForStrategy(FlowSlot flow, uint64_t fence, int64_t ask_ms) {
  flows_.insert(flow);
  for_strategy_[ask_ms].push_back(fence);
}

void SparedTokens::WaitForRule(FlowSlot flow, uint64_t fence, int64_t due_ms) {
  flows_.insert(flow);
  // A new entry is due never, so the first token sets its moment.
  ForRule& waiting = for_rule_[flow];
  MoveForward(flow, &waiting, due_ms);
  waiting.fences.push_back(fence);
}

int64_t SparedTokens::next_ms() const {
  int64_t next_ms = INT64_MAX;
  if (!for_strategy_.empty()) next_ms = for_strategy_.begin()->first;
  if (!rules_due_.empty()) next_ms = std::min(next_ms, rules_due_.begin()->first);
  return next_ms;
}

std::vector<uint64_t> SparedTokens::TakeDue(int64_t now_ms) {
  std::vector<uint64_t> fences;
  // One list a call, those of the strategy first: the caller asks until nothing is due.
  if (!for_strategy_.empty() && for_strategy_.begin()->first <= now_ms) {
    fences = std::move(for_strategy_.begin()->second);
    for_strategy_.erase(for_strategy_.begin());
  } else if (!rules_due_.empty() && rules_due_.begin()->first <= now_ms) {
    const auto waiting = for_rule_.find(rules_due_.begin()->second);
    fences = std::move(waiting->second.fences);
    for_rule_.erase(waiting);
    rules_due_.erase(rules_due_.begin());
  }
  return fences;
}

void SparedTokens::MoveForward(FlowSlot flow, ForRule* waiting, int64_t due_ms) {
  // Only forward. Under a longer time the tokens are looked at early, and wait again.
  if (due_ms >= waiting->due_ms) return;
  rules_due_.erase({waiting->due_ms, flow});
  waiting->due_ms = due_ms;
  rules_due_.emplace(due_ms, flow);
}

}  // namespace nowcalls::core
