#include "core/core.h"

#include <algorithm>
#include <utility>

namespace nowcalls::core {
namespace {

// How often the clock mark is renewed, and how far the watermark moves before it is written.
constexpr int64_t kMarkEveryMs = 1000;
constexpr int64_t kIdleMarkMs = 60'000;

// Notices of NoteIfRoom that nobody has taken yet; more are only counted.
constexpr size_t kNoticesMax = 1000;

constexpr size_t kHistoryPerTimeStep = 1000;
constexpr uint32_t kWaitersPerTimeStep = 1000;
constexpr uint32_t kCancelsPerTimeStep = 1000;

}  // namespace

Core::Core(const CoreOptions& options)
    : options_(options),
      ids_(options.token_id_key),
      requests_(options.limits.cancels_per_session_max, options.limits.cancels_max),
      flows_(options.token_id_key),
      tokens_(options.token_id_key),
      history_(options.limits.history_max),
      expire_strategy_(options.expire_strategy),
      guard_(options.mass_expiry) {
  if (expire_strategy_ != nullptr) return;
  expire_strategy_ = std::make_shared<DefaultExpireStrategy>(ExpireOptions{
      .restart_grace_ms = options.restart_grace_ms, .mass_factor = options.mass_expiry_factor});
}

void Core::OnTime(const Turn& turn) {
  const Waking waking(this, turn);
  if (grants_behind_) GrantSomeWaiters(turn);
  ExpireWaiters(turn, kWaitersPerTimeStep);
  requests_.ForgetCancelled(turn.now.ms, kCancelsPerTimeStep);
  StepFound(turn, kDuePerStep);
  uint32_t budget = kDuePerStep;
  while (budget > 0 && turn.has_room_for_due()) {
    if (walk_.session == kNoSession) {
      if (offline_checks_.empty() || offline_checks_.begin()->first > turn.now.ms) break;
      BeginOfflineWalk(turn, offline_checks_.begin()->second);
      --budget;
    }
    budget -= StepOfflineWalk(turn, budget);
  }
  history_.DropSurplus(kHistoryPerTimeStep, turn.batch);
  std::erase_if(listings_, [&](const std::unique_ptr<Listing>& listing) {
    const bool idle = turn.now.ms - listing->used_ms >= options_.limits.listing_idle_ms;
    if (idle) tokens_.Detach(&listing->cursor);
    return idle;
  });
}

Instant Core::NextDeadline(bool has_room) const {
  if (grants_behind_ || history_.has_surplus()) return Instant{0};
  Instant next{std::min(waiters_.earliest_deadline_ms(), requests_.forget_ms())};
  if (has_room) {
    if (walk_.session != kNoSession || found_left() > 0) return Instant{0};
    if (!offline_checks_.empty()) next = std::min(next, Instant{offline_checks_.begin()->first});
  }
  if (MayScan()) {
    if (sweep_.resume) return Instant{0};
    if (!deadlines_.empty()) {
      next = std::min(next, std::max(sweep_.next, Instant{deadlines_.lowest_due_ms()}));
    }
  }
  for (const auto& listing : listings_) {
    next = std::min(next, Instant{listing->used_ms + options_.limits.listing_idle_ms});
  }
  return next;
}

Instant Core::NextMark() const { return Instant{clock_marked_ms_.value_or(0) + kIdleMarkMs}; }

void Core::Seal(const Turn& turn, const ClockSample& clock, bool may_be_last) {
  if (format_to_set_) turn.batch->FormatSet(*std::exchange(format_to_set_, std::nullopt));
  if (may_be_last || !clock_marked_ms_ || turn.now.ms - *clock_marked_ms_ >= kMarkEveryMs) {
    clock_marked_ms_ = turn.now.ms;
    turn.batch->ClockMarked({turn.now.ms, clock});
  }
  // Later tokens have deadlines after now, so the bound may not pass it.
  const int64_t bound_ms =
      deadlines_.empty() ? turn.now.ms : std::min(turn.now.ms, deadlines_.lowest_ms());
  if (!watermark_ms_ || bound_ms >= *watermark_ms_ + kMarkEveryMs) {
    watermark_ms_ = bound_ms;
    turn.batch->WatermarkRaised(bound_ms);
  }
  history_.Record(turn.batch);
  turn.batch->Sealed({.batch_number = ++batch_number_,
                      .next_fence = next_fence_,
                      .ledger_ms = turn.now.ms,
                      .live_tokens = tokens_.size(),
                      .live_count_sum = live_count_sum_,
                      .live_fence_sum = live_fence_sum_});
}

int64_t Core::LevelOf(const Flow& flow) const {
  if (!flow.active()) return 0;
  double level = flow.level_count;
  if (flow.level_by_session) {
    level *= flows_.name_space(flow.name_space).sessions_online;
  }
  return WholeCalls(level);
}

int64_t Core::oldest_issued_ms() const {
  const TokenSlot oldest = tokens_.all().head;
  return oldest == kNoToken ? 0 : tokens_.at(oldest).issued_ms;
}

std::vector<Notice> Core::TakeNotices() {
  if (const uint64_t dropped = std::exchange(notices_dropped_, 0); dropped > 0) {
    notices_.push_back({true, std::to_string(dropped) + " more notices at once are not shown"});
  }
  notices_of_many_ = 0;
  return std::exchange(notices_, {});
}

void Core::Note(bool warning, std::string text) { notices_.push_back({warning, std::move(text)}); }

void Core::NoteIfRoom(bool warning, std::string text) {
  if (notices_of_many_ >= kNoticesMax) {
    ++notices_dropped_;
  } else {
    ++notices_of_many_;
    Note(warning, std::move(text));
  }
}

}  // namespace nowcalls::core
