// ExpireJudge: what becomes of a token whose time is over.
//
// Thread: loop. It asks the expire strategy, tells it what it must know, and bounds its answer. It
// ends nothing itself: Sweep and Absence do what it says. It may touch what MassExpiry may.
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

  // The server is ready: restart grace counts from now.
  void Begin(Instant now) { ready_ = now; }

  // An extension is into the future, and not further than kExtendMsMax. One for kResourceTimeout
  // ends with the rule's longest hold. When that is over the token is reclaimed, unasked.
  ExpireDecision Decide(Instant now, TokenSlot slot, ExpireCause cause);

 private:
  Books* const books_;
  MassExpiry* const mass_expiry_;
  const std::shared_ptr<ExpireStrategy> strategy_;
  Instant ready_{};
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_EXPIRE_JUDGE_H_
