// Waiting: acquires that wait for room, and the late answers that end their waits.
//
// Thread: loop. Admission grants. It may touch: queues in the lanes, unused keys, request ids of
// waiters, the wake list, counters of flows.
//
// A waiter that needs more room stops all behind it in its lane, unless it is at its own cap or
// above the level.
#ifndef NOWCALLS_CORE_GRANTS_WAITING_H_
#define NOWCALLS_CORE_GRANTS_WAITING_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "core/answers.h"
#include "core/step.h"
#include "core/tables/flow_table.h"
#include "core/tables/request_ids.h"
#include "core/tables/session_table.h"
#include "core/tables/slot.h"
#include "core/tables/wait_queues.h"
#include "core/tables/wake_list.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Waiting {
 public:
  Waiting(const Limits* limits, FlowTable* flows, SessionTable* sessions, RequestIds* request_ids,
          WakeList* wake_list, uint64_t* looks)
      : limits_(limits),
        flows_(flows),
        sessions_(sessions),
        request_ids_(request_ids),
        wake_list_(wake_list),
        looks_(looks) {}

  // --- Getting in. ---
  // 0: the request does not wait.
  int64_t WaitMsOf(const Flow& flow, const AcquireRequest& request) const;
  // `group_bytes`: WaitQueues::BytesOf.
  bool HasRoomFor(const LaneRef& ref, uint32_t owner, size_t group_bytes = 0) const;
  bool HasRoomFor(uint32_t owner) const;
  WaiterSlot Add(const Step& step, SessionSlot session_slot, const LaneRef& ref,
                 const AcquireRequest& request, int64_t wait_ms, WaitTicket ticket);
  // Also for another order of its items.
  void SetGroup(WaiterSlot slot, WaitingGroup group) { queues_.SetGroup(slot, std::move(group)); }
  // The same call, asked again. `superseded` answers the first.
  void Replace(const Step& step, WaiterSlot slot, WaitTicket ticket, int64_t wait_ms,
               const AcquireAnswer& superseded);

  // --- The line. ---
  // The first waiter of the class that freed room admits. Sets aside waiters that room cannot help.
  WaiterSlot FirstInLine(const LaneRef& ref, size_t queue_class);
  // Of a request that comes now, or came with `number`.
  bool AreAhead(const LaneRef& ref, bool prioritized, uint64_t number = UINT64_MAX) {
    return flows_->lane(ref).waiting() > 0 && LineIsAhead(ref, prioritized, number);
  }
  // A group goes to another item's lane, by arrival. The caller must look at the line that it
  // leaves.
  void Move(WaiterSlot slot, const LaneRef& to, uint32_t count);
  // Returns waiters set aside for a lower level, or for a share of it. REQUIRES: waiters.
  void RestoreLine(const LaneRef& ref);
  void OnNewRule(FlowSlot flow_slot);  // Puts all waiters back in line.

  // --- Ends of waits. ---
  void Answer(const Step& step, WaiterSlot slot, const AcquireAnswer& answer);
  void AnswerAll(const Step& step, WaiterSlot slot, AcquireAllAnswer answer);
  // In all lanes. `limit`: counted as a refusal, unless kNone.
  void RefuseAll(const Step& step, FlowSlot flow_slot, TokenStatus status, RefusedBy limit);
  void Expire(const Step& step, uint32_t waiters_max);  // Refuses waiters whose time is over.
  void RemoveAllOf(uint32_t owner);                     // Unanswered: the owner is gone.
  void Close(const Step& step);  // Answers NOT_AVAILABLE; from now on no request waits.

  std::vector<LateAnswer> TakeLateAnswers() { return std::exchange(late_answers_, {}); }
  bool has_late_answers() const { return !late_answers_.empty(); }
  const WaitQueues& queues() const { return queues_; }

 private:
  bool LineIsAhead(const LaneRef& ref, bool prioritized, uint64_t number);
  LateAnswer LateOf(WaiterSlot slot, const AcquireAnswer& answer) const;
  void NoteWait(const Step& step, WaiterSlot slot);
  bool LevelHasChanged(const LaneRef& ref) const;
  void ReturnSessionsToLookAt(const LaneRef& ref, int64_t level);
  std::vector<LaneRef> LanesThatWait(FlowSlot flow_slot) const;
  void Remove(WaiterSlot slot);
  void TrackWaiting(const LaneRef& ref);

  const Limits* const limits_;
  FlowTable* const flows_;
  SessionTable* const sessions_;
  RequestIds* const request_ids_;
  WakeList* const wake_list_;
  uint64_t* const looks_;
  WaitQueues queues_;
  bool closed_ = false;
  std::vector<LateAnswer> late_answers_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_GRANTS_WAITING_H_
