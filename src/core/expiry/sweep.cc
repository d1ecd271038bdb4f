#include "core/expiry/sweep.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace nowcalls::core {

bool Sweep::MayScan() const {
  if (in_flight_) return false;
  // A scan goes on before all finds were looked at, so that batches never wait for it. Two steps of
  // finds are the bound.
  return resume_ ? finds_left() < 2 * size_t{books_->options().sweep_keys_max} : finds_left() == 0;
}

std::optional<ledger::ScanRequest> Sweep::BeginScan(Instant now) {
  if (!MayScan()) return std::nullopt;
  if (!resume_) {
    if (now < NextScan()) return std::nullopt;
    // The core's own count, which knows uncommitted tokens: a bound from an earlier scan could pass
    // a record that was on its way.
    lower_ms_ = books_->deadlines().lowest_ms();
    upper_ms_ = now.ms;
    began_ = now;
  }
  in_flight_ = true;
  return ledger::ScanRequest{.lower_ms = lower_ms_,
                             .upper_ms = upper_ms_,
                             .resume = resume_,
                             .after = after_,
                             .keys_max = books_->options().sweep_keys_max,
                             .budget_us = books_->options().sweep_budget_us};
}

Instant Sweep::NextScan() const {
  if (!MayScan()) return kNever;
  // A scan that was begun goes on at once; a new one waits for its interval and a due token.
  if (resume_) return Instant{0};
  const DeadlineCounter& deadlines = books_->deadlines();
  if (deadlines.empty()) return kNever;
  return std::max(began_ + books_->options().sweep_interval_ms, Instant{deadlines.lowest_due_ms()});
}

Status Sweep::OnScanDone(const Step& step, const ledger::ScanResult& result) {
  NOWCALLS_CHECK(in_flight_);
  in_flight_ = false;
  NOWCALLS_RETURN_IF_ERROR(result.status);
  // A step that ran out of keys or time says where the next begins.
  resume_ = result.more && !result.expired.empty();
  after_ = resume_ ? result.expired.back() : ledger::TokenKey{};
  found_.erase(found_.begin(), found_.begin() + static_cast<ptrdiff_t>(found_next_));
  found_next_ = 0;
  found_.insert(found_.end(), result.expired.begin(), result.expired.end());
  OnTime(step);
  return {};
}

void Sweep::OnTime(const Step& step) {
  fences_.clear();
  // Bounded by looks and by the records that the batch takes; the rest waits in `found_`.
  for (uint32_t left = Step::kDueLooksMax; left > 0 && finds_left() > 0 && step.has_room_for_due();
       --left) {
    if (fences_.empty()) LoadAhead();
    const ledger::TokenKey& key = found_[found_next_++];
    const TokenSlot slot = books_->tokens().Find(fences_.back());
    fences_.pop_back();
    // Released or renewed since the scan began; the record of that may still be on its way.
    if (slot == kNoToken || books_->tokens().at(slot).deadline_ms != key.deadline_ms ||
        books_->tokens().at(slot).ledger_family() != key.family) {
      continue;
    }
    EndOrSpare(step, slot);
  }
  // One line for a whole scan.
  if (finds_left() == 0 && !in_flight_ && !resume_) NoteEnd();
}

// Fetches the next finds, which are far apart in memory: all index places first, then all entries.
// `fences_` is a stack, so it is filled from the back.
void Sweep::LoadAhead() {
  constexpr size_t kAhead = 16;
  const size_t count = std::min(kAhead, finds_left());
  for (size_t i = count; i > 0; --i) {
    fences_.push_back(books_->ids().ToFence(found_[found_next_ + i - 1].id).value);
    books_->tokens().Prefetch(fences_.back());
  }
  std::for_each(fences_.rbegin(), fences_.rend(),
                [this](uint64_t fence) { books_->tokens().PrefetchEntry(fence); });
}

void Sweep::EndOrSpare(const Step& step, TokenSlot slot) {
  const ExpireDecision decision = judge_->Decide(step.now, slot, ExpireCause::kResourceTimeout);
  if (decision.kind() == ExpireDecision::Kind::kReclaim) {
    ++reclaimed_;
    step.batch->CountDue();
    return absence_->EndToken(step, slot, EndReason::kResourceTimeout);
  }
  // Leave: the next scan finds the token again. Extend: an ordinary move, so the ledger has the
  // deadline that holds.
  ++spared_;
  if (decision.kind() == ExpireDecision::Kind::kExtend) {
    step.batch->CountDue();
    books_->MoveToken(step, slot, decision.until_ms(), decision.until_ms() - step.now.ms);
  }
}

void Sweep::NoteEnd() {
  const uint64_t reclaimed = std::exchange(reclaimed_, 0);
  const uint64_t spared = std::exchange(spared_, 0);
  if (reclaimed + spared == 0) return;
  std::string text = "sweep: reclaimed " + std::to_string(reclaimed) +
                     (reclaimed == 1 ? " expired token" : " expired tokens");
  if (spared > 0) text += ", spared " + std::to_string(spared);
  notices_->Add({.text = std::move(text), .fields = {}});
}

}  // namespace nowcalls::core
