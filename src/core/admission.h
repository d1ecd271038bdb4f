// Admission: grants, queues or refuses acquires, and grants waiters the room that calls make.
//
// Thread: loop. Room tells the limits. Calls that make room put lanes into the wake list and end
// with GrantWaiters.
#ifndef NOWCALLS_CORE_ADMISSION_H_
#define NOWCALLS_CORE_ADMISSION_H_

#include <cstdint>
#include <optional>

#include "core/absence.h"
#include "core/answers.h"
#include "core/books.h"
#include "core/groups.h"
#include "core/other_kind.h"
#include "core/room.h"
#include "core/slot.h"
#include "core/step.h"
#include "core/waiting.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Admission {
 public:
  Admission(Books* books, Waiting* waiting, Absence* absence, OtherKind* other_kind,
            const Room* room, Groups* groups)
      : books_(books),
        waiting_(waiting),
        absence_(absence),
        other_kind_(other_kind),
        room_(room),
        groups_(groups) {}

  // See Core.
  std::optional<AcquireAnswer> Acquire(const Step& step, SessionSlot session_slot,
                                       const AcquireRequest& request, WaitTicket ticket);
  TokenStatus Cancel(const Step& step, SessionSlot session_slot, uint64_t request_id);

  // Works off a bounded piece of the wake list. While a rest waits for OnTime, later calls grant
  // none: the bound holds for all together.
  void GrantWaiters(const Step& step) {
    if (!is_behind_ && !books_->wake_list().empty()) GrantSomeWaiters(step);
  }
  // Continues with waiters that a call has left.
  void OnTime(const Step& step) {
    if (is_behind_) GrantSomeWaiters(step);
  }
  // A call has left waiters to OnTime.
  bool is_behind() const { return is_behind_; }

 private:
  // Acquire.
  bool AnswerByRequestId(const Step& step, SessionSlot session_slot, const AcquireRequest& request,
                         WaitTicket ticket, std::optional<AcquireAnswer>* answer);
  AcquireAnswer AnswerOfToken(const Step& step, const AcquireRequest& request, TokenSlot token);
  bool AnswerOfWaiter(const Step& step, WaiterSlot slot, const AcquireRequest& request,
                      WaitTicket ticket, std::optional<AcquireAnswer>* answer);
  std::optional<AcquireAnswer> AcquireIn(const Step& step, SessionSlot session_slot,
                                         const LaneRef& lane, const AcquireRequest& request,
                                         WaitTicket ticket);
  bool IsOf(const LaneRef& lane, const AcquireRequest& request) const;
  AcquireAnswer Grant(const Step& step, const NewToken& wanted);
  AcquireAnswer RefuseIfKnown(const AcquireRequest& request, TokenStatus status, RefusedBy limit);

  // Waiters.
  void GrantSomeWaiters(const Step& step);
  uint32_t GrantWaitersIn(const Step& step, NamespaceSlot slot, uint32_t cost_max);
  uint32_t GrantWaitersOf(const Step& step, const LaneRef& ref, uint32_t cost_max);
  uint32_t GrantWaiter(const Step& step, WaiterSlot slot);

  Books* const books_;
  Waiting* const waiting_;
  Absence* const absence_;
  OtherKind* const other_kind_;
  const Room* const room_;
  Groups* const groups_;
  bool is_behind_ = false;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_ADMISSION_H_
