#include "core/grants/waiting.h"

#include <algorithm>
#include <memory>
#include <optional>

namespace nowcalls::core {
namespace {

// An end of a wait touches the tables of waiters, request ids and deadlines.
constexpr uint64_t kLooksPerAnswer = 8;

}  // namespace

// Sentinel's acquireRefuseStrategy 3 queues prioritized requests. A request may ask to wait itself.
int64_t Waiting::WaitMsOf(const Flow& flow, const AcquireRequest& request) const {
  constexpr int32_t kQueueOnServer = 3;
  if (closed_ || !flow.active()) return 0;
  const int64_t max = std::min(request.wait_ms_max, kWaitMsMax);
  if (request.wait_ms.has_value()) return std::clamp<int64_t>(*request.wait_ms, 0, max);
  const bool by_rule = request.prioritized && flow.rule->acquire_refuse_strategy == kQueueOnServer;
  return by_rule ? std::min<int64_t>(flow.rule->max_queueing_time_ms, max) : 0;
}

bool Waiting::HasRoomFor(uint32_t owner) const {
  return queues_.SizeOf(owner) < limits_->waiters_per_connection_max;
}

bool Waiting::HasRoomFor(const LaneRef& ref, uint32_t owner, size_t group_bytes) const {
  return flows_->lane(ref).waiting() < limits_->waiters_per_rule_max &&
         queues_.size() < limits_->waiters_max &&
         queues_.bytes() + group_bytes < limits_->waiter_bytes_max && HasRoomFor(owner);
}

WaiterSlot Waiting::Add(const Step& step, SessionSlot session_slot, const LaneRef& ref,
                        const AcquireRequest& request, int64_t wait_ms, WaitTicket ticket) {
  flows_->Count(&flows_->at(ref.flow_slot), [](TokenCounters* c) { ++c->queued; });
  Lane& lane = flows_->lane(ref);
  // Most lanes never have waiters, so the first one makes the queue.
  if (lane.waiters == nullptr) lane.waiters = std::make_unique<WaitQueue>();
  const WaiterSlot waiter = queues_.Add({.ticket = ticket,
                                         .lane = ref,
                                         .flow = flows_->at(ref.flow_slot).id,
                                         .session_slot = session_slot,
                                         .count = static_cast<uint32_t>(request.count),
                                         .prioritized = request.prioritized,
                                         .request_id = request.request_id,
                                         .hold_ms = request.hold_ms,
                                         .since_ms = step.now.ms,
                                         .deadline_ms = step.now.ms + wait_ms},
                                        lane.waiters.get());
  SessionState& session = sessions_->at(session_slot);
  ++session.waiters;
  if (request.request_id != 0) {
    request_ids_->AddWaiter(session.id, request.request_id, waiter);
  }
  TrackWaiting(ref);
  return waiter;
}

void Waiting::Replace(const Step& step, WaiterSlot slot, WaitTicket ticket, int64_t wait_ms,
                      const AcquireAnswer& superseded) {
  // The first call ends now; number, place and arrival stay for the second.
  late_answers_.push_back(LateOf(slot, superseded));
  queues_.Readdress(slot, ticket, step.now.ms + wait_ms);
}

// The first in line stops all behind it, so that it is served in the end. Waiters that no room
// helps are set aside on the way. Such a waiter may have stood for all waiters of its session at
// the cap. So the session is looked at again: once, however many of its waiters are set aside.
WaiterSlot Waiting::FirstInLine(const LaneRef& ref, size_t queue_class) {
  if (flows_->lane(ref).waiting() == 0) return kNoWaiter;
  WaitQueue* const queue = flows_->lane(ref).waiters.get();
  const bool shadow = flows_->at(ref.flow_slot).shadow;
  const int64_t level = flows_->LevelOf(ref);
  ReturnSessionsToLookAt(ref, level);
  for (;;) {
    const WaiterSlot slot = WaitQueues::First(*queue, queue_class);
    if (slot != kNoWaiter && !shadow) {
      const Waiter& waiter = queues_.at(slot);
      // Which set decides what brings the waiter back: the level, or its session's holds.
      const bool too_large = waiter.count > level;
      if (too_large ||
          waiter.count > flows_->CapLeft(flows_->at(ref.flow_slot), waiter.session_slot)) {
        if (too_large) {
          queues_.SetAsideAsTooLarge(slot, queue);
        } else {
          queues_.SetAsideAtCap(slot, queue);
        }
        WaitQueues::LookAt(waiter.session_slot, queue);
        continue;
      }
    }
    // A returned waiter may be older than `slot`: look once more before it is first.
    if (!WaitQueues::HasToLookAt(*queue)) return slot;
    ReturnSessionsToLookAt(ref, level);
  }
}

void Waiting::ReturnSessionsToLookAt(const LaneRef& ref, int64_t level) {
  queues_.ReturnFirstOfThoseToLookAt(
      [&](SessionSlot session) { return flows_->CapLeft(flows_->at(ref.flow_slot), session); },
      level, flows_->lane(ref).waiters.get());
}

bool Waiting::LineIsAhead(const LaneRef& ref, bool prioritized, uint64_t number) {
  const uint64_t looks_before = queues_.looks();
  // Waiters that are about to be granted are ahead: the lane may still be in the wake list.
  if (flows_->lane(ref).to_wake || LevelHasChanged(ref)) RestoreLine(ref);
  const auto is_ahead = [&](size_t queue_class) {
    const WaiterSlot first = FirstInLine(ref, queue_class);
    return first != kNoWaiter && queues_.NumberOf(first) < number;
  };
  // A prioritized request passes all others, which are class 1.
  const bool ahead = prioritized ? is_ahead(0) : FirstInLine(ref, 0) != kNoWaiter || is_ahead(1);
  *looks_ += queues_.looks() - looks_before;
  return ahead;
}

// Whether sessions came or left since the lane's waiters were looked at. REQUIRES: waiters.
bool Waiting::LevelHasChanged(const LaneRef& ref) const {
  const Flow& flow = flows_->at(ref.flow_slot);
  return flow.level_by_session && flows_->lane(ref).waiters->levels_seen !=
                                      flows_->name_space(flow.name_space).levels_changed;
}

void Waiting::RestoreLine(const LaneRef& ref) {
  WaitQueue* const queue = flows_->lane(ref).waiters.get();
  queues_.ReturnUpTo(flows_->LevelOf(ref), queue);
  if (!LevelHasChanged(ref)) return;
  const Flow& flow = flows_->at(ref.flow_slot);
  queue->levels_seen = flows_->name_space(flow.name_space).levels_changed;
  // A cap in percent moves with the level.
  if (flow.rule->max_per_client_percent > 0) {
    queues_.ReturnFirstOfEach(
        [&](SessionSlot session) { return flows_->CapLeft(flows_->at(ref.flow_slot), session); },
        flows_->LevelOf(ref), queue);
  }
}

std::vector<LaneRef> Waiting::LanesThatWait(FlowSlot flow_slot) const {
  std::vector<LaneRef> lanes;
  if (flows_->at(flow_slot).lane.waiting() > 0) lanes.push_back({flow_slot, kNoKey});
  for (const KeySlot key : flows_->keys().WaitingOf(flow_slot)) lanes.push_back({flow_slot, key});
  return lanes;
}

void Waiting::OnNewRule(FlowSlot flow_slot) {
  for (const LaneRef& ref : LanesThatWait(flow_slot)) {
    // Waiters set aside were judged by the old rule: return all, and wake the lane.
    if (ref.key_slot != kNoKey) flows_->RefreshKey(ref.key_slot);
    TrackWaiting(ref);
    WaitQueue* const queue = flows_->lane(ref).waiters.get();
    *looks_ += queue->size();
    queues_.ReturnAll(queue);
    wake_list_->Add(ref);
  }
}

void Waiting::Move(WaiterSlot slot, const LaneRef& to, uint32_t count) {
  const LaneRef from = queues_.at(slot).lane;
  Lane& lane = flows_->lane(to);
  if (lane.waiters == nullptr) lane.waiters = std::make_unique<WaitQueue>();
  WaitQueue* const left = flows_->lane(from).waiters.get();
  queues_.Move(slot, left, {to, flows_->at(to.flow_slot).id, count}, lane.waiters.get());
  // The group may have stood for its session's waiters in the line that it leaves.
  WaitQueues::LookAt(queues_.at(slot).session_slot, left);
  TrackWaiting(to);
  TrackWaiting(from);
  // The old key may have lived by this waiter alone.
  if (from.key_slot != kNoKey) flows_->EraseKeyIfUnused(from.key_slot);
}

void Waiting::Answer(const Step& step, WaiterSlot slot, const AcquireAnswer& answer) {
  NoteWait(step, slot);
  late_answers_.push_back(LateOf(slot, answer));
  Remove(slot);
}

void Waiting::AnswerAll(const Step& step, WaiterSlot slot, AcquireAllAnswer answer) {
  NoteWait(step, slot);
  late_answers_.push_back({.ticket = queues_.at(slot).ticket, .all = std::move(answer)});
  Remove(slot);
}

// A group's answer names the rule, and the value, in whose queue it waits.
LateAnswer Waiting::LateOf(WaiterSlot slot, const AcquireAnswer& answer) const {
  const Waiter& waiter = queues_.at(slot);
  if (queues_.GroupOf(slot) == nullptr) return {.ticket = waiter.ticket, .answer = answer};
  AcquireAllAnswer all{.status = answer.status,
                       .refused_by = answer.refused_by,
                       .flow = flows_->at(waiter.lane.flow_slot).id,
                       .now_calls = answer.now_calls,
                       .level = answer.level};
  if (waiter.lane.key_slot != kNoKey) all.value = flows_->keys().at(waiter.lane.key_slot).value;
  return {.ticket = waiter.ticket, .all = std::move(all)};
}

void Waiting::NoteWait(const Step& step, WaiterSlot slot) {
  const Waiter& waiter = queues_.at(slot);
  const int64_t waited_ms = step.now.ms - waiter.since_ms;
  Flow& flow = flows_->at(waiter.lane.flow_slot);
  flows_->Count(&flow, [&](TokenCounters* c) {
    c->longest_wait_ms = std::max(c->longest_wait_ms, waited_ms);
  });
  if (flow.waited_times == nullptr) flow.waited_times = std::make_unique<TimeHistogram>();
  flow.waited_times->Add(waited_ms);
}

void Waiting::Remove(WaiterSlot slot) {
  // A copy: the queues free the waiter before its key is looked at.
  const Waiter waiter = queues_.at(slot);
  WaitQueue* const queue = flows_->lane(waiter.lane).waiters.get();
  SessionState& session = sessions_->at(waiter.session_slot);
  --session.waiters;
  if (waiter.request_id != 0) {
    request_ids_->RemoveWaiter(session.id, waiter.request_id);
  }
  queues_.Remove(slot, queue);
  WaitQueues::LookAt(waiter.session_slot, queue);
  TrackWaiting(waiter.lane);
  wake_list_->Add(waiter.lane);  // It may have stood in the way of others.
  if (waiter.lane.key_slot != kNoKey) {
    flows_->EraseKeyIfUnused(waiter.lane.key_slot);
  }
}

void Waiting::RefuseAll(const Step& step, FlowSlot flow_slot, TokenStatus status, RefusedBy limit) {
  for (const LaneRef& ref : LanesThatWait(flow_slot)) {
    // The last waiter erases its key, unless tokens hold it. An erased key has no waiters, so the
    // loops end.
    const Lane& lane = flows_->lane(ref);
    *looks_ += kLooksPerAnswer * lane.waiting();
    for (size_t i = 0; i < 2; ++i) {
      while (lane.waiting() > 0 && lane.waiters->classes[i].head != kNoWaiter) {
        Answer(step, lane.waiters->classes[i].head,
               limit == RefusedBy::kNone ? AcquireAnswer{.status = status}
                                         : CountRefusal(flows_, ref, status, limit));
      }
    }
  }
}

void Waiting::Expire(const Step& step, uint32_t waiters_max) {
  for (; waiters_max > 0 && queues_.earliest_deadline_ms() <= step.now.ms; --waiters_max) {
    // The earliest first; the caller's bound leaves the rest to a later call.
    const WaiterSlot slot = queues_.Earliest();
    Answer(step, slot,
           CountRefusal(flows_, queues_.at(slot).lane, TokenStatus::kBlocked,
                        RefusedBy::kQueueTimeout));
  }
}

void Waiting::RemoveAllOf(uint32_t owner) {
  for (;;) {
    const WaiterSlot slot = queues_.FirstOf(owner);
    if (slot == kNoWaiter) return;
    Remove(slot);
  }
}

void Waiting::Close(const Step& step) {
  closed_ = true;
  for (;;) {
    const WaiterSlot slot = queues_.Earliest();
    if (slot == kNoWaiter) return;
    Answer(step, slot, {.status = TokenStatus::kNotAvailable});
  }
}

// Keeps the namespace's list of lanes with waiters and a level that its sessions share.
void Waiting::TrackWaiting(const LaneRef& ref) {
  const Flow& flow = flows_->at(ref.flow_slot);
  auto& waiting = flows_->name_space(flow.name_space).waiting_for_sessions;
  const Namespace::FlowAndKey entry{flow.key(), ref.key_slot};
  if (flows_->lane(ref).waiting() > 0 && flow.level_by_session) {
    waiting.insert(entry);
  } else {
    waiting.erase(entry);
  }
  if (ref.key_slot != kNoKey) flows_->keys().TrackWaiting(ref.key_slot);
}

}  // namespace nowcalls::core
