// ExpireJudge: what becomes of a token whose time is over.
//
// Thread: loop. Asks the expire strategy and bounds its answer; Sweep and Absence carry it out. It
// may touch what MassExpiry may.
#ifndef NOWCALLS_CORE_EXPIRE_JUDGE_H_
#define NOWCALLS_CORE_EXPIRE_JUDGE_H_

#include <memory>

#include "base/time.h"
#include "core/books.h"
#include "core/mass_expiry.h"
#include "core/slot.h"
#include "nowcalls/expire_strategy.h"

namespace nowcalls::core {

class ExpireJudge {
 public:
  ExpireJudge(Books* books, MassExpiry* mass_expiry);

  // Restart grace counts from now.
  void Begin(Instant now) { ready_ = now; }

  // An extension ends in the future, within kExtendMsMax; for kResourceTimeout also within the
  // longest hold, behind which the token is reclaimed unasked.
  ExpireDecision Decide(Instant now, TokenSlot slot, ExpireCause cause);

 private:
  Books* const books_;
  MassExpiry* const mass_expiry_;
  const std::shared_ptr<ExpireStrategy> strategy_;
  Instant ready_{};
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_EXPIRE_JUDGE_H_
