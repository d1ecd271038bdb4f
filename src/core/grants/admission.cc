#include "core/grants/admission.h"

#include <algorithm>
#include <utility>

namespace nowcalls::core {

std::optional<AcquireAnswer> Admission::Acquire(const Step& step, SessionSlot session_slot,
                                                const AcquireRequest& request, WaitTicket ticket) {
  // 1. A request that cannot be granted, or was asked before. A repeated request id is answered
  // before the rule is looked up: its token may outlive the rule.
  if (request.flow.value <= 0 || request.count < 1 || request.count > kCountMax) {
    return AcquireAnswer{.status = TokenStatus::kBadRequest};
  }
  if (request.request_id != 0) {
    std::optional<AcquireAnswer> answer;
    if (AnswerByRequestId(step, session_slot, request, ticket, &answer)) return answer;
  }
  // 2. The rule. Without it, a rule of the other kind tells a wrong request from a missing rule.
  const FlowSlot slot = flows_->Find(request.key());
  if (slot == kNoFlow || !flows_->at(slot).active()) {
    const FlowSlot other = FindOther(*flows_, request.key());
    if (other == kNoFlow) return AcquireAnswer{.status = TokenStatus::kNoRuleExists};
    return CountRefusal(flows_, {other}, TokenStatus::kBadRequest, RefusedBy::kParam);
  }
  if (!request.param.has_value()) return AcquireIn(step, session_slot, {slot}, request, ticket);

  // 3. Under a rule by value, the value's lane. A new key that got neither a token nor a waiter is
  // erased again, so refused requests leave no memory behind.
  const KeyTable& keys = flows_->keys();
  if (keys.size() >= books_->options().limits.keys_max &&
      keys.Find(slot, *request.param) == kNoKey) {
    return CountRefusal(flows_, {slot}, TokenStatus::kTooManyRequest, RefusedBy::kKeyLimit);
  }
  const KeySlot key = flows_->FindOrAddKey(slot, *request.param);
  std::optional<AcquireAnswer> answer = AcquireIn(step, session_slot, {slot, key}, request, ticket);
  flows_->EraseKeyIfUnused(key);
  return answer;
}

// REQUIRES: the flow of the lane has an active rule.
std::optional<AcquireAnswer> Admission::AcquireIn(const Step& step, SessionSlot session_slot,
                                                  const LaneRef& lane,
                                                  const AcquireRequest& request,
                                                  WaitTicket ticket) {
  // Refusals that no wait helps.
  Flow& flow = flows_->at(lane.flow_slot);
  other_kind_->OnAcquire(&flow);
  if (flow.draining) return CountRefusal(flows_, lane, TokenStatus::kBlocked, RefusedBy::kDraining);
  if (const RefusedBy full = room_->ServerLimit(); full != RefusedBy::kNone) {
    return CountRefusal(flows_, lane, TokenStatus::kTooManyRequest, full);
  }

  // The limit that is in the way, if any; shadow mode only counts it. Waiters in line come first:
  // an acquire that does not wait may not take the room that they wait for.
  RefusedBy limit = room_->LimitOf(flow, lane.key_slot, session_slot, request.count);
  if (limit == RefusedBy::kNone && waiting_->AreAhead(lane, request.prioritized)) {
    limit = RefusedBy::kWaitersAhead;
  }
  if (limit != RefusedBy::kNone && flow.shadow) {
    flows_->Count(&flow,
                  [&](TokenCounters* c) { ++c->shadow_refused[static_cast<size_t>(limit)]; });
    limit = RefusedBy::kNone;
  }
  if (limit == RefusedBy::kNone) {
    const AcquireAnswer granted = Grant(step, {.session_slot = session_slot,
                                               .lane = lane,
                                               .count = static_cast<uint32_t>(request.count),
                                               .request_id = request.request_id,
                                               .hold_ms = request.hold_ms});
    // Now at its cap, the session may have waiters that no longer stop the others.
    if (flow.held_by_session != nullptr) wake_list_->Add(lane);
    return granted;
  }

  // A wait, unless no room would help or the queue is full.
  const int64_t wait_ms = waiting_->WaitMsOf(flow, request);
  if (wait_ms == 0 || limit == RefusedBy::kOverLevel) {
    return CountRefusal(flows_, lane, TokenStatus::kBlocked, limit);
  }
  if (!waiting_->HasRoomFor(lane, ticket.owner)) {
    return CountRefusal(flows_, lane, TokenStatus::kBlocked, RefusedBy::kQueueFull);
  }
  waiting_->Add(step, session_slot, lane, request, wait_ms, ticket);
  return std::nullopt;
}

// False: the request id stands for nothing, and the request is handled as a new one. Otherwise
// `answer` is what Acquire returns.
bool Admission::AnswerByRequestId(const Step& step, SessionSlot session_slot,
                                  const AcquireRequest& request, WaitTicket ticket,
                                  std::optional<AcquireAnswer>* answer) {
  const SessionId id = books_->sessions().at(session_slot).id;
  const TokenSlot token = books_->tokens().FindRequest(session_slot, request.request_id);
  if (token != kNoToken) {
    *answer = AnswerOfToken(step, request, token);
    return true;
  }
  const RequestIds& request_ids = books_->request_ids();
  if (request_ids.IsCancelled(id, request.request_id, step.now.ms)) {
    *answer = RefuseIfKnown(request, TokenStatus::kBlocked, RefusedBy::kCancelled);
    return true;
  }
  const WaiterSlot waiter = request_ids.FindWaiter(id, request.request_id);
  return waiter != kNoWaiter && AnswerOfWaiter(step, waiter, request, ticket, answer);
}

AcquireAnswer Admission::AnswerOfToken(const Step& step, const AcquireRequest& request,
                                       TokenSlot token) {
  const TokenEntry& entry = books_->tokens().at(token);
  const LaneRef lane{entry.flow_slot, books_->tokens().KeyOf(token)};
  // A token of a group with others does not answer a single acquire.
  uint32_t tokens = 0;
  books_->tokens().ForEachOfRequest(entry.session_slot, request.request_id,
                                    [&](TokenSlot) { ++tokens; });
  if (tokens > 1 || !IsOf(lane, request) || entry.count != request.count) {
    return RefuseIfKnown(request, TokenStatus::kBadRequest, RefusedBy::kRequestId);
  }
  return {.status = TokenStatus::kOk,
          .token_id = books_->IdOf(entry),
          .fence = Fence{entry.fence},
          .now_calls = flows_->lane(lane).now_calls,
          .level = flows_->LevelOf(lane),
          .hold_ms = std::max<int64_t>(0, entry.deadline_ms - step.now.ms),
          .terms = flows_->at(entry.flow_slot).terms()};
}

// Whether the request asks for this lane.
bool Admission::IsOf(const LaneRef& lane, const AcquireRequest& request) const {
  if (flows_->at(lane.flow_slot).id != request.flow) return false;
  if (lane.key_slot == kNoKey) return !request.param.has_value();
  return request.param == flows_->keys().at(lane.key_slot).value.view();
}

// As AnswerByRequestId. The client has given the first call up. This one takes its place in the
// queue, or ends the wait if it does not wait itself.
bool Admission::AnswerOfWaiter(const Step& step, WaiterSlot slot, const AcquireRequest& request,
                               WaitTicket ticket, std::optional<AcquireAnswer>* answer) {
  const Waiter& waiter = waiting_->queues().at(slot);
  const LaneRef lane = waiter.lane;
  const bool is_group = waiting_->queues().GroupOf(slot) != nullptr;
  if (is_group || !IsOf(lane, request) || waiter.count != request.count) {
    *answer = RefuseIfKnown(request, TokenStatus::kBadRequest, RefusedBy::kRequestId);
    return true;
  }
  const bool other_connection = waiter.ticket.owner != ticket.owner;
  if (other_connection && !waiting_->HasRoomFor(ticket.owner)) {
    *answer = CountRefusal(flows_, lane, TokenStatus::kBlocked, RefusedBy::kQueueFull);
    return true;
  }
  // The answer that the first call still gets, by its own ticket.
  const AcquireAnswer superseded =
      CountRefusal(flows_, lane, TokenStatus::kBlocked, RefusedBy::kSuperseded);
  const int64_t wait_ms = waiting_->WaitMsOf(flows_->at(lane.flow_slot), request);
  if (wait_ms == 0) {
    // The waiters behind the place that is given up come before this request.
    waiting_->Answer(step, slot, superseded);
    GrantWaiters(step);
    return false;
  }
  waiting_->Replace(step, slot, ticket, wait_ms, superseded);
  return true;
}

AcquireAnswer Admission::Grant(const Step& step, const NewToken& wanted) {
  const TokenSlot token = books_->IssueToken(step, wanted);
  const TokenEntry& entry = books_->tokens().at(token);
  const Flow& flow = flows_->at(wanted.lane.flow_slot);
  return {.status = TokenStatus::kOk,
          .token_id = books_->IdOf(entry),
          .fence = Fence{entry.fence},
          .now_calls = flows_->LaneOf(flow, wanted.lane.key_slot).now_calls,
          .level = flows_->LevelOf(flow, wanted.lane.key_slot),
          .hold_ms = entry.deadline_ms - step.now.ms,
          .terms = flow.terms()};
}

// A request id may be asked for with a flow that does not exist, where a refusal cannot be counted.
AcquireAnswer Admission::RefuseIfKnown(const AcquireRequest& request, TokenStatus status,
                                       RefusedBy limit) {
  const FlowKey key = request.key();
  FlowSlot slot = flows_->Find(key);
  if (slot == kNoFlow) slot = flows_->Find({key.id, OtherThan(key.kind)});
  if (slot == kNoFlow) return {.status = status, .refused_by = limit};
  return CountRefusal(flows_, {slot}, status, limit);
}

void Admission::GrantSomeWaiters(const Step& step) {
  // An item that is looked at, of a group or a waiter, takes some four looks at tables.
  constexpr uint64_t kLooksPerCost = 4;
  uint32_t left = books_->options().grants_per_call_max;
  uint64_t cost = 0;
  while (left > 0 && !wake_list_->empty()) {
    // An entry that ran out of cost puts itself back, behind all others: lanes take turns.
    const WakeList::Entry next = wake_list_->Take();
    const uint32_t spent = next.lane.flow_slot != kNoFlow
                               ? GrantWaitersOf(step, next.lane, left)
                               : GrantWaitersIn(step, next.name_space, left);
    cost += spent;
    left -= std::min(left, spent);
  }
  books_->looks() += kLooksPerCost * cost;
  is_behind_ = !wake_list_->empty();
}

// A piece of a namespace's lanes, by flow id; returns its cost.
uint32_t Admission::GrantWaitersIn(const Step& step, NamespaceSlot slot, uint32_t cost_max) {
  Namespace& name_space = flows_->name_space(slot);
  if (!name_space.to_wake) return 1;  // The namespace was erased, and another has its slot.
  uint32_t cost = 0;
  while (cost < cost_max) {
    const auto next = name_space.waiting_for_sessions.upper_bound(name_space.wake_after);
    // The walk is over. If the levels changed on its way, it begins once more.
    if (next == name_space.waiting_for_sessions.end()) {
      name_space.to_wake = std::exchange(name_space.wake_again, false);
      name_space.wake_after = {FlowKey{}, kNoKey};
      if (name_space.to_wake) wake_list_->PutBack(slot);
      return std::max<uint32_t>(1, cost);
    }
    name_space.wake_after = *next;
    const LaneRef ref{flows_->Find(next->first), next->second};
    // A lane that is in the wake list itself is left to that entry.
    const bool in_list = flows_->lane(ref).to_wake;
    cost += in_list ? 1 : GrantWaitersOf(step, ref, cost_max - cost);
  }
  wake_list_->PutBack(slot);
  return cost;
}

// Ends waits until that has cost `cost_max`, or a little more; returns the cost. Each look at a
// waiter costs, and so does a lane without a waiter to grant: there may be as many lanes as
// waiters.
uint32_t Admission::GrantWaitersOf(const Step& step, const LaneRef& ref, uint32_t cost_max) {
  const KeyTable& keys = flows_->keys();
  if (ref.key_slot != kNoKey && keys.at(ref.key_slot).flow_slot != ref.flow_slot) {
    return 1;  // The key was erased, and another may have its slot.
  }
  Lane& lane = flows_->lane(ref);
  lane.to_wake = false;
  if (lane.waiting() == 0) return 1;
  const uint64_t looks_before = waiting_->queues().looks();
  uint32_t ended = 0;
  const auto cost = [&] {
    const uint64_t looks = waiting_->queues().looks() - looks_before;
    return std::max<uint32_t>(1, ended + static_cast<uint32_t>(looks));
  };
  // The level may have changed: waiters that were set aside for it come back first. Then the
  // classes, prioritized waiters before others.
  waiting_->RestoreLine(ref);
  for (size_t i = 0; i < 2; ++i) {
    for (;;) {
      // A key goes with its last waiter, if it has no token.
      const WaiterSlot first = waiting_->FirstInLine(ref, i);
      if (first == kNoWaiter) break;
      // Not before one wait has ended: every piece makes progress.
      if (ended > 0 && cost() >= cost_max) {
        wake_list_->Add(ref);
        return cost();
      }
      const uint32_t work = GrantWaiter(step, first);
      if (work == 0) return cost();  // All behind it wait for the same room.
      ended += work;
    }
  }
  return cost();
}

// Returns how many tokens were looked at; 0: the waiter still waits for room in its lane.
uint32_t Admission::GrantWaiter(const Step& step, WaiterSlot slot) {
  const Waiter waiter = waiting_->queues().at(slot);
  Flow& flow = flows_->at(waiter.lane.flow_slot);
  const RefusedBy limit =
      room_->LimitOf(flow, waiter.lane.key_slot, waiter.session_slot, waiter.count);
  if (limit != RefusedBy::kNone && !flow.shadow) return 0;
  // A group is looked at whole: granted, refused, or moved to another line.
  if (waiting_->queues().GroupOf(slot) != nullptr) return groups_->Serve(step, slot);
  // A limit of the server refuses the waiter: no room in its lane would help.
  if (const RefusedBy full = room_->ServerLimit(); full != RefusedBy::kNone) {
    waiting_->Answer(step, slot,
                     CountRefusal(flows_, waiter.lane, TokenStatus::kTooManyRequest, full));
    return 1;
  }
  flows_->Count(&flow, [&](TokenCounters* c) {
    ++c->granted_from_queue;
    if (limit != RefusedBy::kNone) ++c->shadow_refused[static_cast<size_t>(limit)];
  });
  waiting_->Answer(step, slot,
                   Grant(step, {.session_slot = waiter.session_slot,
                                .lane = waiter.lane,
                                .count = waiter.count,
                                .request_id = waiter.request_id,
                                .hold_ms = waiter.hold_ms}));
  return 1;
}

}  // namespace nowcalls::core
