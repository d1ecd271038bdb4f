// Holding: a session's tokens, and cancels of its acquires.
//
// Thread: loop. A session touches only tokens in the call's scope (TokenScope).
#ifndef NOWCALLS_CORE_HOLDING_H_
#define NOWCALLS_CORE_HOLDING_H_

#include <cstdint>

#include "core/answers.h"
#include "core/books.h"
#include "core/expiry/absence.h"
#include "core/grants/waiting.h"
#include "core/step.h"
#include "core/tables/slot.h"
#include "nowcalls/call_outcome.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Holding {
 public:
  Holding(Books* books, FlowTable* flows, TokenTable* tokens, RequestIds* request_ids,
          Waiting* waiting, Absence* absence)
      : books_(books),
        flows_(flows),
        tokens_(tokens),
        request_ids_(request_ids),
        waiting_(waiting),
        absence_(absence) {}

  // See Core.
  TokenStatus Release(const Step& step, SessionSlot session_slot, TokenId token, TokenScope scope,
                      CallOutcome outcome);
  KeepAnswer Keep(const Step& step, SessionSlot session_slot, TokenId token, TokenScope scope);
  TokenStatus Cancel(const Step& step, SessionSlot session_slot, uint64_t request_id);

 private:
  // kNoToken: unknown, ended or out of scope.
  TokenSlot FindInScope(SessionSlot session_slot, TokenId token, TokenScope scope) const;

  Books* const books_;
  FlowTable* const flows_;
  TokenTable* const tokens_;
  RequestIds* const request_ids_;
  Waiting* const waiting_;
  Absence* const absence_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_HOLDING_H_
