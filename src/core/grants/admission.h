// Admission: grants, queues or refuses acquires, and grants waiters the room that calls make.
//
// Thread: loop. Calls that may make room end with GrantWaiters.
#ifndef NOWCALLS_CORE_GRANTS_ADMISSION_H_
#define NOWCALLS_CORE_GRANTS_ADMISSION_H_

#include <cstdint>
#include <optional>

#include "core/answers.h"
#include "core/books.h"
#include "core/grants/groups.h"
#include "core/grants/room.h"
#include "core/grants/waiting.h"
#include "core/other_kind.h"
#include "core/step.h"
#include "core/tables/slot.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Admission {
 public:
  Admission(Books* books, FlowTable* flows, WakeList* wake_list, Waiting* waiting,
            OtherKind* other_kind, const Room* room, Groups* groups)
      : books_(books),
        flows_(flows),
        wake_list_(wake_list),
        waiting_(waiting),
        other_kind_(other_kind),
        room_(room),
        groups_(groups) {}

  // See Core.
  std::optional<AcquireAnswer> Acquire(const Step& step, SessionSlot session_slot,
                                       const AcquireRequest& request, WaitTicket ticket);

  // Works off a piece of the wake list. While a rest waits for OnTime, later calls grant none.
  void GrantWaiters(const Step& step) {
    if (!is_behind_ && !wake_list_->empty()) GrantSomeWaiters(step);
  }
  void OnTime(const Step& step) {
    if (is_behind_) GrantSomeWaiters(step);
  }
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
  FlowTable* const flows_;
  WakeList* const wake_list_;
  Waiting* const waiting_;
  OtherKind* const other_kind_;
  const Room* const room_;
  Groups* const groups_;
  bool is_behind_ = false;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_GRANTS_ADMISSION_H_
