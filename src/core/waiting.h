// Waiting: acquires that wait for room, and the late answers that end their waits.
//
// Thread: loop. Order among waiters: prioritized ones first; within a class first come, first
// served. A waiter that needs more room than there is stops all waiters behind it, so that it is
// served in the end. Only waiters that no room would help are passed over: at their own cap, or
// asking for more than the level.
//
// Each lane (core/lane.h) has a line of its own. Waiting says who is first in line, and ends waits
// without a token. Admission grants. It may touch: the queues in the lanes, keys that nobody uses
// any more, the request ids of waiters, the wake list, and counters of flows.
#ifndef NOWCALLS_CORE_WAITING_H_
#define NOWCALLS_CORE_WAITING_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/answers.h"
#include "core/books.h"
#include "core/slot.h"
#include "core/step.h"
#include "core/wait_queues.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Waiting {
 public:
  explicit Waiting(Books* books) : books_(books) {}

  // --- Getting in. ---
  // How long the request waits for room; 0: not at all.
  int64_t WaitMsOf(const Flow& flow, const AcquireRequest& request) const;
  // `group_bytes`: of the items of a group (WaitQueues::BytesOf).
  bool HasRoomFor(const LaneRef& ref, uint32_t owner, size_t group_bytes = 0) const;
  bool HasRoomFor(uint32_t owner) const;
  WaiterSlot Add(const Step& step, SessionSlot session_slot, const LaneRef& ref,
                 const AcquireRequest& request, int64_t wait_ms, WaitTicket ticket);
  // The waiter stands for a group, or for another order of its items. It waits in the lane of one.
  void SetGroup(WaiterSlot slot, WaitingGroup group) { queues_.SetGroup(slot, std::move(group)); }
  // The same call, asked again, takes the waiter's place in the queue. `superseded` answers the
  // first one.
  void Replace(const Step& step, WaiterSlot slot, WaitTicket ticket, int64_t wait_ms,
               const AcquireAnswer& superseded);

  // --- The line. ---
  // The first waiter of the class that freed room admits; kNoWaiter: none. Sets aside waiters that
  // room cannot help.
  WaiterSlot FirstInLine(const LaneRef& ref, size_t queue_class);
  // Whether waiters are ahead of a request that comes now, or came with this number.
  bool AreAhead(const LaneRef& ref, bool prioritized, uint64_t number = UINT64_MAX) {
    return books_->flows().lane(ref).waiting() > 0 && LineIsAhead(ref, prioritized, number);
  }
  // A group goes on to wait in the lane of another of its items, which asks for `count`, in its
  // place by arrival. REQUIRES: the caller looks at the line that it leaves.
  void Move(WaiterSlot slot, const LaneRef& to, uint32_t count);
  // Puts waiters back into line that were set aside for a lower level, or for a share of one.
  // REQUIRES: waiters.
  void RestoreLine(const LaneRef& ref);
  // The flow has got a new rule: all its waiters are in line again.
  void OnNewRule(FlowSlot flow_slot);

  // --- Ends of waits. ---
  void Answer(const Step& step, WaiterSlot slot, const AcquireAnswer& answer);
  void AnswerAll(const Step& step, WaiterSlot slot, AcquireAllAnswer answer);
  // Of all lanes of the flow. `limit`: counted as a refusal; kNone: not counted.
  void RefuseAll(const Step& step, FlowSlot flow_slot, TokenStatus status, RefusedBy limit);
  // Up to `waiters_max` waiters whose time is over.
  void Expire(const Step& step, uint32_t waiters_max);
  // Nobody listens to the answers with this owner.
  void RemoveAllOf(uint32_t owner);
  // Answers all waiters NOT_AVAILABLE; from now on no request waits.
  void Close(const Step& step);

  // In the order in which they were decided.
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

  Books* const books_;
  WaitQueues queues_;
  bool closed_ = false;
  std::vector<LateAnswer> late_answers_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_WAITING_H_
