#include "core/waiting.h"

#include <algorithm>
#include <optional>

namespace nowcalls::core {

// Sentinel's acquireRefuseStrategy 3 queues prioritized requests; a request may ask for it itself.
int64_t Waiting::WaitMsOf(const Flow& flow, const AcquireRequest& request) const {
  constexpr int32_t kQueueOnServer = 3;
  if (closed_ || !flow.active()) return 0;
  const int64_t max = std::min(request.wait_ms_max, kWaitMsMax);
  if (request.wait_ms.has_value()) return std::clamp<int64_t>(*request.wait_ms, 0, max);
  const bool by_rule = request.prioritized && flow.rule->acquire_refuse_strategy == kQueueOnServer;
  return by_rule ? std::min<int64_t>(flow.rule->max_queueing_time_ms, max) : 0;
}

bool Waiting::HasRoomFor(uint32_t owner) const {
  return queues_.SizeOf(owner) < books_->options().limits.waiters_per_connection_max;
}

bool Waiting::HasRoomFor(const Flow& flow, uint32_t owner) const {
  const Limits& limits = books_->options().limits;
  return flow.waiters.size() < limits.waiters_per_rule_max && queues_.size() < limits.waiters_max &&
         HasRoomFor(owner);
}

void Waiting::Add(const Step& step, SessionSlot session_slot, FlowSlot flow_slot,
                  const AcquireRequest& request, int64_t wait_ms, WaitTicket ticket) {
  Flow& flow = books_->flows().at(flow_slot);
  books_->Count(&flow, [](FlowCounters* c) { ++c->queued; });
  const WaiterSlot waiter = queues_.Add({.ticket = ticket,
                                         .flow_slot = flow_slot,
                                         .session_slot = session_slot,
                                         .count = static_cast<uint32_t>(request.count),
                                         .prioritized = request.prioritized,
                                         .request_id = request.request_id,
                                         .since_ms = step.now.ms,
                                         .deadline_ms = step.now.ms + wait_ms},
                                        &flow.waiters);
  SessionState& session = books_->sessions().at(session_slot);
  ++session.waiters;
  if (request.request_id != 0) {
    books_->request_ids().AddWaiter(session.id, request.request_id, waiter);
  }
  TrackWaiting(flow);
}

void Waiting::Replace(const Step& step, WaiterSlot slot, WaitTicket ticket, int64_t wait_ms,
                      const AcquireAnswer& superseded) {
  late_answers_.push_back({queues_.at(slot).ticket, superseded});
  queues_.Readdress(slot, ticket, step.now.ms + wait_ms);
}

// A waiter that is set aside may have stood for all waiters that its session has at the cap. So
// these are looked at then, once for each session however many of its waiters were set aside.
WaiterSlot Waiting::FirstInLine(Flow* flow, size_t queue_class) {
  const FlowTable& flows = books_->flows();
  const int64_t level = flows.LevelOf(*flow);
  ReturnSessionsToLookAt(flow, level);
  for (;;) {
    const WaiterSlot slot = WaitQueues::First(flow->waiters, queue_class);
    if (slot != kNoWaiter && !flow->shadow) {
      const Waiter& waiter = queues_.at(slot);
      const bool too_large = waiter.count > level;
      if (too_large || waiter.count > flows.CapLeft(*flow, waiter.session_slot)) {
        if (too_large) {
          queues_.SetAsideAsTooLarge(slot, &flow->waiters);
        } else {
          queues_.SetAsideAtCap(slot, &flow->waiters);
        }
        WaitQueues::LookAt(waiter.session_slot, &flow->waiters);
        continue;
      }
    }
    if (!WaitQueues::HasToLookAt(flow->waiters)) return slot;
    ReturnSessionsToLookAt(flow, level);
  }
}

void Waiting::ReturnSessionsToLookAt(Flow* flow, int64_t level) {
  queues_.ReturnFirstOfThoseToLookAt(
      [&](SessionSlot session) { return books_->flows().CapLeft(*flow, session); }, level,
      &flow->waiters);
}

bool Waiting::LineIsAhead(Flow* flow, bool prioritized) {
  // Waiters that are about to be granted are ahead.
  if (flow->to_wake || LevelHasChanged(*flow)) RestoreLine(flow);
  return FirstInLine(flow, 0) != kNoWaiter || (!prioritized && FirstInLine(flow, 1) != kNoWaiter);
}

// By sessions that came or left since the flow's waiters were looked at.
bool Waiting::LevelHasChanged(const Flow& flow) const {
  return flow.level_by_session &&
         flow.levels_seen != books_->flows().name_space(flow.name_space).levels_changed;
}

void Waiting::RestoreLine(Flow* flow) {
  const FlowTable& flows = books_->flows();
  queues_.ReturnUpTo(flows.LevelOf(*flow), &flow->waiters);
  if (!LevelHasChanged(*flow)) return;
  flow->levels_seen = flows.name_space(flow->name_space).levels_changed;
  if (flow->rule->max_per_client_percent > 0) {
    queues_.ReturnFirstOfEach([&](SessionSlot session) { return flows.CapLeft(*flow, session); },
                              flows.LevelOf(*flow), &flow->waiters);
  }
}

void Waiting::OnNewRule(FlowSlot flow_slot) {
  Flow& flow = books_->flows().at(flow_slot);
  TrackWaiting(flow);
  queues_.ReturnAll(&flow.waiters);
  books_->wake_list().Add(flow_slot);
}

void Waiting::Answer(const Step& step, WaiterSlot slot, const AcquireAnswer& answer) {
  const Waiter& waiter = queues_.at(slot);
  const int64_t waited_ms = step.now.ms - waiter.since_ms;
  books_->Count(&books_->flows().at(waiter.flow_slot), [&](FlowCounters* c) {
    c->longest_wait_ms = std::max(c->longest_wait_ms, waited_ms);
  });
  late_answers_.push_back({waiter.ticket, answer});
  Remove(slot);
}

void Waiting::Remove(WaiterSlot slot) {
  const Waiter waiter = queues_.at(slot);
  Flow& flow = books_->flows().at(waiter.flow_slot);
  SessionState& session = books_->sessions().at(waiter.session_slot);
  --session.waiters;
  if (waiter.request_id != 0) {
    books_->request_ids().RemoveWaiter(session.id, waiter.request_id);
  }
  queues_.Remove(slot, &flow.waiters);
  WaitQueues::LookAt(waiter.session_slot, &flow.waiters);
  TrackWaiting(flow);
  books_->wake_list().Add(waiter.flow_slot);  // It may have stood in the way of others.
}

void Waiting::RefuseAll(const Step& step, FlowSlot flow_slot, TokenStatus status, RefusedBy limit) {
  const Flow& flow = books_->flows().at(flow_slot);
  for (const WaiterList& queue_class : flow.waiters.classes) {
    while (queue_class.head != kNoWaiter) {
      Answer(step, queue_class.head,
             limit == RefusedBy::kNone ? AcquireAnswer{.status = status}
                                       : books_->Refuse(flow_slot, status, limit));
    }
  }
}

void Waiting::Expire(const Step& step, uint32_t waiters_max) {
  for (; waiters_max > 0 && queues_.earliest_deadline_ms() <= step.now.ms; --waiters_max) {
    const WaiterSlot slot = queues_.Earliest();
    Answer(step, slot,
           books_->Refuse(queues_.at(slot).flow_slot, TokenStatus::kBlocked,
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

// The namespace knows which of its flows have waiters and a level that its sessions share.
void Waiting::TrackWaiting(const Flow& flow) {
  auto& waiting = books_->flows().name_space(flow.name_space).waiting_for_sessions;
  if (flow.waiters.size() > 0 && flow.level_by_session) {
    waiting.insert(flow.id.value);
  } else {
    waiting.erase(flow.id.value);
  }
}

}  // namespace nowcalls::core
