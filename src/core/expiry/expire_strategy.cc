#include "nowcalls/expire_strategy.h"

#include <algorithm>
#include <cmath>

namespace nowcalls {
namespace {

// A cut client gets `factor` times its rule's clientOfflineTime to come back, never less than once.
int64_t MassDueMs(const ExpiredToken& token, const TokenHolder& holder, double factor) {
  const double wait_ms = static_cast<double>(token.client_offline_time_ms) * std::max(1.0, factor);
  constexpr double kWaitMsMax = 1e15;  // Whole milliseconds, and more than any extension.
  return holder.offline_since_ms + std::llround(std::min(wait_ms, kWaitMsMax));
}

}  // namespace

ExpireDecision DefaultExpireStrategy::Decide(const ExpiredToken& token, const TokenHolder& holder,
                                             int64_t now_ms) {
  // When the token is due, by its cause. The restart grace counts from the server's readiness: a
  // session of before is offline from then on, and a keep could not arrive earlier.
  int64_t due_ms = 0;
  if (token.cause == ExpireCause::kClientOffline) {
    due_ms = holder.offline_since_ms + token.client_offline_time_ms;
    if (holder.from_before_restart) {
      due_ms = std::max(due_ms, holder.offline_since_ms + options_.restart_grace_ms);
    }
  } else if (token.restarted_ms > 0) {
    due_ms = token.restarted_ms + std::min(token.hold_ms, options_.restart_grace_ms);
  }
  // A network cut, for both causes: the client can neither keep nor come back.
  if (!holder.online && holder.mass_offline) {
    due_ms = std::max(due_ms, MassDueMs(token, holder, options_.mass_factor));
  }
  return due_ms > now_ms ? ExpireDecision::ExtendUntil(due_ms) : ExpireDecision::Reclaim();
}

ExpireDecision StrictExpireStrategy::Decide(const ExpiredToken& /*token*/,
                                            const TokenHolder& /*holder*/, int64_t /*now_ms*/) {
  return ExpireDecision::Reclaim();
}

}  // namespace nowcalls
