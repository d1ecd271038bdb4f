// ExpireJudge: what becomes of a token whose time is over.
//
// Thread: loop. Asks the expire strategy and bounds its answer; Sweep and Absence carry it out.
#ifndef NOWCALLS_CORE_EXPIRY_EXPIRE_JUDGE_H_
#define NOWCALLS_CORE_EXPIRY_EXPIRE_JUDGE_H_

#include <memory>

#include "base/time.h"
#include "core/expiry/mass_expiry.h"
#include "core/options.h"
#include "core/tables/flow_table.h"
#include "core/tables/session_table.h"
#include "core/tables/slot.h"
#include "core/tables/token_ids.h"
#include "core/tables/token_table.h"
#include "nowcalls/expire_strategy.h"

namespace nowcalls::core {

class ExpireJudge {
 public:
  ExpireJudge(const CoreOptions& options, const FlowTable* flows, SessionTable* sessions,
              const TokenTable* tokens, const TokenIds* ids, MassExpiry* mass_expiry);

  // Restart grace counts from now, for fences below `first_fence`.
  void Begin(Instant now, uint64_t first_fence) {
    ready_ = now;
    first_fence_ = first_fence;
  }

  // An extension ends within kExtendMsMax, for kResourceTimeout also within the longest hold;
  // behind that the token is reclaimed unasked.
  ExpireDecision Decide(Instant now, TokenSlot slot, ExpireCause cause);

 private:
  const FlowTable* const flows_;
  SessionTable* const sessions_;
  const TokenTable* const tokens_;
  const TokenIds* const ids_;
  MassExpiry* const mass_expiry_;
  const std::shared_ptr<ExpireStrategy> strategy_;
  Instant ready_{};
  uint64_t first_fence_ = 0;  // Of this run.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_EXPIRY_EXPIRE_JUDGE_H_
