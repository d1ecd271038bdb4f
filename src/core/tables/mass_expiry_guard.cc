#include "core/tables/mass_expiry_guard.h"

#include <algorithm>

#include "base/check.h"

namespace nowcalls::core {

void MassExpiryGuard::WentOffline(Loss* loss, int64_t now_ms) {
  // A session counts once, at its last loss.
  Forget(loss);
  // Moments are 50 ms wide, so the deque is short whatever number of sessions is lost.
  const int64_t at_ms = MomentOf(now_ms);
  while (!moments_.empty() && moments_.front().at_ms + kRememberedMs < at_ms) moments_.pop_front();
  if (moments_.empty() || moments_.back().at_ms < at_ms) {
    moments_.push_back({.at_ms = at_ms, .tally = {}});
  }
  NOWCALLS_CHECK(moments_.back().at_ms == at_ms);
  ++moments_.back().tally.lost;
  ++moments_.back().tally.away;
  *loss = {.at_ms = now_ms, .away = true};
}

void MassExpiryGuard::CameBack(Loss* loss) {
  if (!loss->away) return;
  loss->away = false;
  // A moment that is too old was dropped, with its counts.
  if (Moment* moment = Find(*loss)) --moment->tally.away;
}

void MassExpiryGuard::Forget(Loss* loss) {
  CameBack(loss);
  if (Moment* moment = Find(*loss)) --moment->tally.lost;
  *loss = Loss{};
}

// A session is judged when its window has passed, so losses of two windows count.
MassExpiryGuard::Tally MassExpiryGuard::Count(int64_t offline_since_ms, int64_t window_ms) const {
  window_ms = std::min(window_ms, kWindowMsMax);
  // Whole moments: the window is exact to 50 ms.
  Tally sum;
  auto moment = std::lower_bound(
      moments_.begin(), moments_.end(), MomentOf(offline_since_ms - window_ms),
      [](const Moment& candidate, int64_t at_ms) { return candidate.at_ms < at_ms; });
  for (; moment != moments_.end() && moment->at_ms <= offline_since_ms + window_ms; ++moment) {
    sum.lost += moment->tally.lost;
    sum.away += moment->tally.away;
  }
  return sum;
}

uint64_t MassExpiryGuard::SessionsMax(uint64_t lost) const {
  return enabled() && lost >= options_.sessions_min ? lost * 100 / options_.percent : 0;
}

MassExpiryGuard::Moment* MassExpiryGuard::Find(const Loss& loss) {
  if (loss.at_ms == Loss::kNone) return nullptr;
  const int64_t at_ms = MomentOf(loss.at_ms);
  const auto moment = std::lower_bound(
      moments_.begin(), moments_.end(), at_ms,
      [](const Moment& candidate, int64_t wanted_ms) { return candidate.at_ms < wanted_ms; });
  return moment != moments_.end() && moment->at_ms == at_ms ? &*moment : nullptr;
}

}  // namespace nowcalls::core
