#include "core/admission.h"

#include <algorithm>
#include <utility>

namespace nowcalls::core {

std::optional<AcquireAnswer> Admission::Acquire(const Step& step, SessionSlot session_slot,
                                                const AcquireRequest& request, WaitTicket ticket) {
  // A request that cannot be granted, or was asked before.
  if (request.flow.value <= 0 || request.count < 1 || request.count > kCountMax) {
    return AcquireAnswer{.status = TokenStatus::kBadRequest};
  }
  if (request.request_id != 0) {
    std::optional<AcquireAnswer> answer;
    if (AnswerByRequestId(step, session_slot, request, ticket, &answer)) return answer;
  }
  const FlowSlot slot = books_->flows().Find(request.flow);
  if (slot == kNoFlow || !books_->flows().at(slot).active()) {
    return AcquireAnswer{.status = TokenStatus::kNoRuleExists};
  }
  Flow& flow = books_->flows().at(slot);
  other_kind_->OnAcquire(&flow);
  if (flow.draining) return books_->Refuse(slot, TokenStatus::kBlocked, RefusedBy::kDraining);
  if (const RefusedBy full = ServerLimit(); full != RefusedBy::kNone) {
    return books_->Refuse(slot, TokenStatus::kTooManyRequest, full);
  }

  // The limit that is in the way, if any; shadow mode only counts it.
  RefusedBy limit = LimitOf(flow, session_slot, request.count);
  if (limit == RefusedBy::kNone && waiting_->AreAhead(&flow, request.prioritized)) {
    limit = RefusedBy::kWaitersAhead;
  }
  if (limit != RefusedBy::kNone && flow.shadow) {
    books_->Count(&flow, [&](FlowCounters* c) { ++c->shadow_refused[static_cast<size_t>(limit)]; });
    limit = RefusedBy::kNone;
  }
  if (limit == RefusedBy::kNone) {
    const AcquireAnswer granted =
        Grant(step, session_slot, slot, static_cast<uint32_t>(request.count), request.request_id);
    // At its cap now, the session may have waiters that no longer stand in the way of others.
    if (flow.held_by_session != nullptr) books_->wake_list().Add(slot);
    return granted;
  }

  const int64_t wait_ms = waiting_->WaitMsOf(flow, request);
  if (wait_ms == 0 || limit == RefusedBy::kOverLevel) {
    return books_->Refuse(slot, TokenStatus::kBlocked, limit);
  }
  if (!waiting_->HasRoomFor(flow, ticket.owner)) {
    return books_->Refuse(slot, TokenStatus::kBlocked, RefusedBy::kQueueFull);
  }
  waiting_->Add(step, session_slot, slot, request, wait_ms, ticket);
  return std::nullopt;
}

// False: the request id stands for nothing, the request is one like any other. Otherwise `answer`
// is what Acquire returns.
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
    *answer = RefuseIfKnown(books_->flows().Find(request.flow), TokenStatus::kBlocked,
                            RefusedBy::kCancelled);
    return true;
  }
  const WaiterSlot waiter = request_ids.FindWaiter(id, request.request_id);
  return waiter != kNoWaiter && AnswerOfWaiter(step, waiter, request, ticket, answer);
}

AcquireAnswer Admission::AnswerOfToken(const Step& step, const AcquireRequest& request,
                                       TokenSlot token) {
  const TokenEntry& entry = books_->tokens().at(token);
  const Flow& flow = books_->flows().at(entry.flow_slot);
  if (flow.id != request.flow || entry.count != request.count) {
    return RefuseIfKnown(books_->flows().Find(request.flow), TokenStatus::kBadRequest,
                         RefusedBy::kRequestId);
  }
  return {.status = TokenStatus::kOk,
          .token_id = books_->IdOf(entry),
          .fence = Fence{entry.fence},
          .now_calls = flow.now_calls,
          .level = books_->flows().LevelOf(flow),
          .hold_ms = std::max<int64_t>(0, entry.deadline_ms - step.now.ms)};
}

// As AnswerByRequestId: the client has given the first call up, so this one takes its place in the
// queue, or ends the wait if it does not wait itself.
bool Admission::AnswerOfWaiter(const Step& step, WaiterSlot slot, const AcquireRequest& request,
                               WaitTicket ticket, std::optional<AcquireAnswer>* answer) {
  const FlowSlot flow_slot = books_->flows().Find(request.flow);
  const Waiter& waiter = waiting_->queues().at(slot);
  if (waiter.flow_slot != flow_slot || waiter.count != request.count) {
    *answer = RefuseIfKnown(flow_slot, TokenStatus::kBadRequest, RefusedBy::kRequestId);
    return true;
  }
  const bool other_connection = waiter.ticket.owner != ticket.owner;
  if (other_connection && !waiting_->HasRoomFor(ticket.owner)) {
    *answer = books_->Refuse(flow_slot, TokenStatus::kBlocked, RefusedBy::kQueueFull);
    return true;
  }
  const AcquireAnswer superseded =
      books_->Refuse(flow_slot, TokenStatus::kBlocked, RefusedBy::kSuperseded);
  const int64_t wait_ms = waiting_->WaitMsOf(books_->flows().at(flow_slot), request);
  if (wait_ms == 0) {
    waiting_->Answer(step, slot, superseded);
    GrantWaiters(step);
    return false;
  }
  waiting_->Replace(step, slot, ticket, wait_ms, superseded);
  return true;
}

TokenStatus Admission::Cancel(const Step& step, SessionSlot session_slot, uint64_t request_id) {
  // A cancel may forget several, since it remembers one more; OnTime forgets the rest.
  constexpr uint32_t kForgottenPerCancel = 8;
  RequestIds& request_ids = books_->request_ids();
  const SessionId id = books_->sessions().at(session_slot).id;
  request_ids.ForgetCancelled(step.now.ms, kForgottenPerCancel);
  request_ids.Cancel(id, request_id, step.now.ms + books_->options().limits.cancel_remembered_ms);

  const TokenSlot token = books_->tokens().FindRequest(session_slot, request_id);
  const WaiterSlot waiter = request_ids.FindWaiter(id, request_id);
  if (token != kNoToken) {
    absence_->EndToken(step, token, EndReason::kCancelled);
  } else if (waiter != kNoWaiter) {
    const FlowSlot flow_slot = waiting_->queues().at(waiter).flow_slot;
    waiting_->Answer(step, waiter,
                     books_->Refuse(flow_slot, TokenStatus::kBlocked, RefusedBy::kCancelled));
  } else {
    return TokenStatus::kAlreadyRelease;
  }
  return TokenStatus::kReleaseOk;
}

// The limit in the way of every grant, whatever its rule.
RefusedBy Admission::ServerLimit() const {
  if (disk_low_) return RefusedBy::kDiskLow;
  const bool full = books_->tokens().size() >= books_->options().limits.tokens_max;
  return full ? RefusedBy::kTokenLimit : RefusedBy::kNone;
}

RefusedBy Admission::LimitOf(const Flow& flow, SessionSlot session_slot, int64_t count) const {
  const FlowTable& flows = books_->flows();
  RefusedBy limit = RefusedBy::kNone;
  if (count > flows.LevelOf(flow) - flow.now_calls) {
    limit = RefusedBy::kLevel;
  } else if (count > flows.CapLeft(flow, session_slot)) {
    limit = RefusedBy::kClientCap;
  }
  if (limit == RefusedBy::kNone) return limit;
  // Room alone would not help a request for more than there can be.
  const bool can_fit = count <= flows.LevelOf(flow) && count <= flows.CapOf(flow);
  return can_fit ? limit : RefusedBy::kOverLevel;
}

AcquireAnswer Admission::Grant(const Step& step, SessionSlot session_slot, FlowSlot flow_slot,
                               uint32_t count, uint64_t request_id) {
  const TokenSlot token = books_->IssueToken(step, session_slot, flow_slot, count, request_id);
  const TokenEntry& entry = books_->tokens().at(token);
  const Flow& flow = books_->flows().at(flow_slot);
  return {.status = TokenStatus::kOk,
          .token_id = books_->IdOf(entry),
          .fence = Fence{entry.fence},
          .now_calls = flow.now_calls,
          .level = books_->flows().LevelOf(flow),
          .hold_ms = flow.hold_ms};
}

// A request id may be asked for with a flow that does not exist, where a refusal cannot be counted.
AcquireAnswer Admission::RefuseIfKnown(FlowSlot slot, TokenStatus status, RefusedBy limit) {
  if (slot == kNoFlow) return {.status = status, .refused_by = limit};
  return books_->Refuse(slot, status, limit);
}

void Admission::GrantSomeWaiters(const Step& step) {
  WakeList& wake_list = books_->wake_list();
  uint32_t left = books_->options().grants_per_call_max;
  while (left > 0 && !wake_list.empty()) {
    const WakeList::Entry next = wake_list.Take();
    left -= std::min(left, next.flow_slot != kNoFlow ? GrantWaitersOf(step, next.flow_slot, left)
                                                     : GrantWaitersIn(step, next.name_space, left));
  }
  is_behind_ = !wake_list.empty();
}

// A piece of a namespace's flows, by flow id; returns its cost.
uint32_t Admission::GrantWaitersIn(const Step& step, NamespaceSlot slot, uint32_t cost_max) {
  Namespace& name_space = books_->flows().name_space(slot);
  if (!name_space.to_wake) return 1;  // The namespace was erased, and another has its slot.
  uint32_t cost = 0;
  while (cost < cost_max) {
    const auto next = name_space.waiting_for_sessions.upper_bound(name_space.wake_after);
    if (next == name_space.waiting_for_sessions.end()) {
      name_space.to_wake = std::exchange(name_space.wake_again, false);
      name_space.wake_after = 0;
      if (name_space.to_wake) books_->wake_list().PutBack(slot);
      return std::max<uint32_t>(1, cost);
    }
    name_space.wake_after = *next;
    const FlowSlot flow_slot = books_->flows().Find(FlowId{*next});
    const bool in_list = books_->flows().at(flow_slot).to_wake;
    cost += in_list ? 1 : GrantWaitersOf(step, flow_slot, cost_max - cost);
  }
  books_->wake_list().PutBack(slot);
  return cost;
}

// Ends waits until that has cost `cost_max`, or a little more; returns the cost. Each look at a
// waiter costs, and so does a flow without a waiter to grant: there may be as many flows as
// waiters.
uint32_t Admission::GrantWaitersOf(const Step& step, FlowSlot slot, uint32_t cost_max) {
  Flow& flow = books_->flows().at(slot);
  flow.to_wake = false;
  if (flow.waiters.size() == 0) return 1;
  const uint64_t looks_before = waiting_->queues().looks();
  uint32_t ended = 0;
  const auto cost = [&] {
    const uint64_t looks = waiting_->queues().looks() - looks_before;
    return std::max<uint32_t>(1, ended + static_cast<uint32_t>(looks));
  };
  waiting_->RestoreLine(&flow);
  for (size_t i = 0; i < flow.waiters.classes.size(); ++i) {
    for (;;) {
      const WaiterSlot first = waiting_->FirstInLine(&flow, i);
      if (first == kNoWaiter) break;
      if (ended > 0 && cost() >= cost_max) {
        books_->wake_list().Add(slot);
        return cost();
      }
      if (!GrantWaiter(step, first)) return cost();  // All behind it wait for the same room.
      ++ended;
    }
  }
  return cost();
}

// Whether the wait is over.
bool Admission::GrantWaiter(const Step& step, WaiterSlot slot) {
  const Waiter waiter = waiting_->queues().at(slot);
  Flow& flow = books_->flows().at(waiter.flow_slot);
  const RefusedBy limit = LimitOf(flow, waiter.session_slot, waiter.count);
  if (limit != RefusedBy::kNone && !flow.shadow) return false;
  if (const RefusedBy full = ServerLimit(); full != RefusedBy::kNone) {
    waiting_->Answer(step, slot,
                     books_->Refuse(waiter.flow_slot, TokenStatus::kTooManyRequest, full));
    return true;
  }
  books_->Count(&flow, [&](FlowCounters* c) {
    ++c->granted_from_queue;
    if (limit != RefusedBy::kNone) ++c->shadow_refused[static_cast<size_t>(limit)];
  });
  waiting_->Answer(
      step, slot,
      Grant(step, waiter.session_slot, waiter.flow_slot, waiter.count, waiter.request_id));
  return true;
}

}  // namespace nowcalls::core
