#include "client/held_tokens.h"

#include <algorithm>

#include "base/check.h"
#include "base/limits.h"

namespace nowcalls::client {
namespace {

void SortById(std::vector<HeldPtr>* tokens) {
  std::sort(tokens->begin(), tokens->end(),
            [](const HeldPtr& a, const HeldPtr& b) { return a->grant.token < b->grant.token; });
}

}  // namespace

int64_t TimeMs(uint64_t told_ms) {
  return static_cast<int64_t>(std::min<uint64_t>(told_ms, kRuleTimeMsMax));
}

// The margin lets the release arrive before resourceTimeout, so that it is not counted as late.
int64_t Held::EndByRule() const {
  constexpr int64_t kMarginMsMax = 50;
  if (keep != KeepMode::kByRule || strategy() != TimedOut::kRelease) return INT64_MAX;
  const int64_t timeout_ms = TimeMs(terms->resource_timeout_ms);
  return granted_ms + timeout_ms - std::min(kMarginMsMax, timeout_ms / 10);
}

void HeldTokens::Add(HeldPtr held) {
  held->validity.Watch(contact_ms_);
  const uint64_t id = held->grant.token.value;
  NOWCALLS_CHECK(tokens_.emplace(id, std::move(held)).second);
}

HeldPtr HeldTokens::Find(uint64_t token_id) const {
  const auto found = tokens_.find(token_id);
  return found == tokens_.end() ? nullptr : found->second;
}

bool HeldTokens::Remove(Held* held) {
  const auto found = tokens_.find(held->grant.token.value);
  if (found == tokens_.end() || found->second.get() != held) return false;
  Plan(held, 0);
  ForgetAbsence(*held);
  tokens_.erase(found);
  return true;
}

void HeldTokens::Confirm(Held* held, int64_t sent_ms, uint64_t hold_ms,
                         const std::optional<wire::Terms>& terms) {
  held->confirmed_ms = sent_ms;
  held->hold_ms = TimeMs(hold_ms);
  held->validity.HoldFrom(sent_ms, held->hold_ms);
  // A keep may bring other terms, so the old clientOfflineTime leaves the count first.
  if (!terms) return;
  ForgetAbsence(*held);
  held->terms = terms;
  const int64_t offline_ms = TimeMs(terms->client_offline_ms);
  held->validity.AbsenceMax(offline_ms);
  ++absences_[offline_ms];
}

void HeldTokens::ForgetAbsence(const Held& held) {
  if (!held.terms) return;
  const auto found = absences_.find(TimeMs(held.terms->client_offline_ms));
  if (--found->second == 0) absences_.erase(found);
}

// Answers come in any order; the latest sending counts.
void HeldTokens::InContact(int64_t sent_ms) {
  if (sent_ms > *contact_ms_) *contact_ms_ = sent_ms;
}

std::vector<HeldPtr> HeldTokens::OutOfContact(int64_t now_ms) const {
  // No walk over the tokens until the smallest clientOfflineTime is over.
  std::vector<HeldPtr> gone;
  if (absences_.empty() || now_ms < contact_ms() + Validity::Sure(absence_ms())) return gone;
  for (const auto& [id, held] : tokens_) {
    if (now_ms >= held->validity.contact_end_ms()) gone.push_back(held);
  }
  SortById(&gone);
  return gone;
}

void HeldTokens::PlanNext(Held* held, int64_t since_ms) {
  constexpr int64_t kPauseMsMin = 10;  // Whatever hold a server tells.
  PlanEnd(held);
  if (!held->IsKept()) return;
  // At a third of the hold: one lost keep does no harm.
  const int64_t keep_ms = since_ms + std::max(held->hold_ms / 3 + 1, kPauseMsMin);
  if (held->due_ms == 0 || keep_ms < held->due_ms) Plan(held, keep_ms);
}

void HeldTokens::PlanEnd(Held* held) {
  const int64_t end_ms = std::min(held->validity.hold_end_ms(), held->EndByRule());
  Plan(held, end_ms == INT64_MAX ? 0 : end_ms);
}

void HeldTokens::Plan(Held* held, int64_t due_ms) {
  if (held->due_ms == due_ms) return;
  if (held->due_ms != 0) due_.erase(held->due);
  held->due_ms = due_ms;
  // Most tokens have the same hold, so the last one planned is the last one due.
  if (due_ms != 0) held->due = due_.insert(due_.end(), {due_ms, held->grant.token.value});
}

HeldPtr HeldTokens::TakeDue(int64_t now_ms) {
  if (due_.empty() || due_.begin()->first > now_ms) return nullptr;
  HeldPtr held = Find(due_.begin()->second);
  Plan(held.get(), 0);
  return held;
}

int64_t HeldTokens::NextDue() const {
  const int64_t at_ms = due_.empty() ? INT64_MAX : due_.begin()->first;
  if (absences_.empty()) return at_ms;
  return std::min(at_ms, contact_ms() + Validity::Sure(absence_ms()));
}

std::vector<HeldPtr> HeldTokens::All() const {
  std::vector<HeldPtr> all;
  all.reserve(tokens_.size());
  for (const auto& [id, held] : tokens_) all.push_back(held);
  SortById(&all);
  return all;
}

}  // namespace nowcalls::client
