#include "core/mass_expiry_guard.h"

#include <algorithm>

namespace nowcalls::core {

void MassExpiryGuard::WentOffline(int64_t now_ms) {
  while (!moments_.empty() && moments_.front().at_ms + 2 * kWindowMsMax < now_ms) {
    moments_.pop_front();
  }
  const int64_t at_ms = MomentOf(now_ms);
  if (moments_.empty() || moments_.back().at_ms != at_ms) moments_.push_back({.at_ms = at_ms});
  ++moments_.back().lost;
  ++moments_.back().away;
}

void MassExpiryGuard::CameBack(int64_t offline_since_ms) {
  const int64_t wanted_ms = MomentOf(offline_since_ms);
  const auto moment = std::lower_bound(
      moments_.begin(), moments_.end(), wanted_ms,
      [](const Moment& candidate, int64_t at_ms) { return candidate.at_ms < at_ms; });
  const bool found = moment != moments_.end() && moment->at_ms == wanted_ms;
  if (found && moment->away > 0) --moment->away;
}

MassExpiryGuard::Verdict MassExpiryGuard::Judge(int64_t offline_since_ms, int64_t window_ms,
                                                uint64_t online) const {
  window_ms = std::min(window_ms, kWindowMsMax);
  Verdict verdict;
  verdict.sessions = online;
  for (const Moment& moment : moments_) {
    if (moment.at_ms < MomentOf(offline_since_ms - window_ms)) continue;
    if (moment.at_ms > offline_since_ms + window_ms) break;
    verdict.lost += moment.lost;
    verdict.sessions += moment.away;
  }
  verdict.mass = options_.percent > 0 && verdict.lost >= options_.sessions_min &&
                 verdict.lost * 100 >= verdict.sessions * options_.percent;
  return verdict;
}

}  // namespace nowcalls::core
