#include "crash/kill_moment.h"

#include <utility>

namespace nowcalls::crash {

std::string NameOf(KillMoment moment) {
  switch (moment) {
    case KillMoment::kLoad: return "load";
    case KillMoment::kRecovery: return "recovery";
    case KillMoment::kBackup: return "backup";
    case KillMoment::kRulesLoad: return "rules load";
    case KillMoment::kSweep: return "sweep";
    case KillMoment::kSigterm: return "SIGTERM";
  }
  return {};
}

KillMoment KillMoments::Next(Prng* prng) {
  static constexpr std::pair<KillMoment, int> kShares[] = {
      {KillMoment::kLoad, 7},      {KillMoment::kRecovery, 3}, {KillMoment::kBackup, 3},
      {KillMoment::kRulesLoad, 3}, {KillMoment::kSweep, 3},    {KillMoment::kSigterm, 1}};
  if (deck_.empty()) {
    for (const auto& [moment, share] : kShares) deck_.insert(deck_.end(), share, moment);
  }
  std::swap(deck_[prng->Below(deck_.size())], deck_.back());
  const KillMoment moment = deck_.back();
  deck_.pop_back();
  return moment;
}

}  // namespace nowcalls::crash
