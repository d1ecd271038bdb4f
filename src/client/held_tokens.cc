#include "client/held_tokens.h"

#include <algorithm>

#include "base/check.h"

namespace nowcalls::client {

void HeldTokens::Add(HeldPtr held) {
  const uint64_t id = held->grant.token.value;
  NOWCALLS_CHECK(tokens_.emplace(id, std::move(held)).second);
}

HeldPtr HeldTokens::Find(uint64_t token_id) const {
  const auto found = tokens_.find(token_id);
  return found == tokens_.end() ? nullptr : found->second;
}

void HeldTokens::Remove(Held* held) {
  Plan(held, 0);
  const auto found = tokens_.find(held->grant.token.value);
  if (found != tokens_.end() && found->second.get() == held) tokens_.erase(found);
}

void HeldTokens::PlanNext(Held* held, int64_t since_ms, const RuleViews& rules) {
  constexpr int64_t kPauseMsMin = 10;  // Whatever hold a server tells.
  if (held->keep == KeepMode::kOff) return;
  const RuleView* const rule = rules.Find(held->grant.flow, held->param);
  const int64_t end_ms = EndByRule(rule, held->keep, held->granted_ms);
  Plan(held, std::min(since_ms + std::max(held->hold_ms / 3 + 1, kPauseMsMin), end_ms));
}

void HeldTokens::Plan(Held* held, int64_t due_ms) {
  if (held->due_ms != 0) due_.erase(held->due);
  held->due_ms = due_ms;
  // Most tokens have the same hold, so the last one planned is the last one due.
  if (due_ms != 0) held->due = due_.insert(due_.end(), {due_ms, held->grant.token.value});
}

HeldPtr HeldTokens::TakeDue(int64_t now_ms) {
  if (NextDue() > now_ms) return nullptr;
  HeldPtr held = Find(due_.begin()->second);
  Plan(held.get(), 0);
  return held;
}

std::vector<HeldPtr> HeldTokens::All() const {
  std::vector<HeldPtr> all;
  all.reserve(tokens_.size());
  for (const auto& [id, held] : tokens_) all.push_back(held);
  return all;
}

}  // namespace nowcalls::client
