// Holding: what a session does with the tokens that it holds.
//
// Thread: loop. A session touches only tokens in the call's scope (TokenScope). Holding ends and
// moves tokens.
#ifndef NOWCALLS_CORE_HOLDING_H_
#define NOWCALLS_CORE_HOLDING_H_

#include "core/absence.h"
#include "core/answers.h"
#include "core/books.h"
#include "core/slot.h"
#include "core/step.h"
#include "nowcalls/call_outcome.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Holding {
 public:
  Holding(Books* books, Absence* absence) : books_(books), absence_(absence) {}

  // See Core.
  TokenStatus Release(const Step& step, SessionSlot session_slot, TokenId token, TokenScope scope,
                      CallOutcome outcome);
  KeepAnswer Keep(const Step& step, SessionSlot session_slot, TokenId token, TokenScope scope);

 private:
  // kNoToken: unknown, ended or out of scope.
  TokenSlot FindInScope(SessionSlot session_slot, TokenId token, TokenScope scope) const;

  Books* const books_;
  Absence* const absence_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_HOLDING_H_
