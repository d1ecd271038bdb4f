#include "core/expiry/expire_judge.h"

#include <algorithm>

namespace nowcalls::core {
namespace {

std::shared_ptr<ExpireStrategy> StrategyOf(const CoreOptions& options) {
  if (options.expire_strategy != nullptr) return options.expire_strategy;
  return std::make_shared<DefaultExpireStrategy>(ExpireOptions{
      .restart_grace_ms = options.restart_grace_ms, .mass_factor = options.mass_expiry_factor});
}

}  // namespace

ExpireJudge::ExpireJudge(const CoreOptions& options, const FlowTable* flows, SessionTable* sessions,
                         const TokenTable* tokens, const TokenIds* ids, MassExpiry* mass_expiry)
    : flows_(flows),
      sessions_(sessions),
      tokens_(tokens),
      ids_(ids),
      mass_expiry_(mass_expiry),
      strategy_(StrategyOf(options)) {}

ExpireDecision ExpireJudge::Decide(Instant now, TokenSlot slot, ExpireCause cause) {
  const TokenEntry& entry = tokens_->at(slot);
  const Flow& flow = flows_->at(entry.flow_slot);
  SessionState& session = sessions_->at(entry.session_slot);
  const int64_t hold_end_ms = flow.HoldEndMs(entry.issued_ms);
  const bool times_out = cause == ExpireCause::kResourceTimeout;
  // The longest hold is over: no strategy may extend it.
  if (times_out && hold_end_ms <= now.ms) return ExpireDecision::Reclaim();
  // The mass verdict is needed below. It is made now and not at the break, since only now it is
  // known how many sessions went together.
  if (!session.online()) mass_expiry_->Judge(&session, now.ms, flow.client_offline_time_ms);

  const ExpiredToken token{.cause = cause,
                           .id = ids_->FromFence(Fence{entry.fence}),
                           .flow = flow.id,
                           .count = entry.count,
                           .issued_ms = entry.issued_ms,
                           .deadline_ms = entry.deadline_ms,
                           .hold_ms = flow.hold_ms,
                           .client_offline_time_ms = flow.client_offline_time_ms,
                           .restarted_ms = entry.fence < first_fence_ ? ready_.ms : 0};
  const TokenHolder holder{.online = session.online(),
                           .offline_since_ms = session.offline_since_ms,
                           .from_before_restart = session.from_before_restart,
                           .mass_offline = session.mass.mass};
  const ExpireDecision decision = strategy_->Decide(token, holder, now.ms);

  // The answer may be a program's own: one into the past counts as none, a long one is cut.
  if (decision.kind() != ExpireDecision::Kind::kExtend) return decision;
  if (decision.until_ms() <= now.ms) return ExpireDecision::Leave();
  const int64_t until_ms = std::min(decision.until_ms(), now.ms + kExtendMsMax);
  return ExpireDecision::ExtendUntil(times_out ? std::min(until_ms, hold_end_ms) : until_ms);
}

}  // namespace nowcalls::core
