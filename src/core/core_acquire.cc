// Admission: who gets a token now, who waits for one, and who is told which limit is in the way.
//
// Order among waiters: prioritized ones first, first come first served within a class. One that
// needs more than there is room for stops all behind it, so that it is served in the end. Only
// those that no room would help are passed over: at their own cap, or asking for more than the
// level.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/core.h"

namespace nowcalls::core {

std::optional<AcquireAnswer> Core::Acquire(const Turn& turn, SessionSlot session,
                                           const AcquireRequest& request, WaitTicket ticket) {
  const Waking waking(this, turn);
  if (request.flow.value <= 0 || request.count < 1 || request.count > kCountMax) {
    return AcquireAnswer{.status = TokenStatus::kBadRequest};
  }
  if (request.request_id != 0) {
    std::optional<AcquireAnswer> answer;
    if (AnswerByRequestId(turn, session, request, ticket, &answer)) return answer;
  }
  const FlowSlot slot = flows_.Find(request.flow);
  if (slot == kNoFlow || !flows_.at(slot).active()) {
    return AcquireAnswer{.status = TokenStatus::kNoRuleExists};
  }
  Flow& flow = flows_.at(slot);
  if (flow.draining) return Refuse(slot, TokenStatus::kBlocked, RefusedBy::kDraining);
  if (const RefusedBy full = ServerLimit(); full != RefusedBy::kNone) {
    return Refuse(slot, TokenStatus::kTooManyRequest, full);
  }
  RefusedBy limit = LimitOf(flow, session, request.count);
  if (limit == RefusedBy::kNone && WaitersAhead(&flow, request.prioritized)) {
    limit = RefusedBy::kWaitersAhead;
  }
  if (limit != RefusedBy::kNone && flow.shadow) {
    Count(&flow, [&](FlowCounters* c) { ++c->shadow_refused[static_cast<size_t>(limit)]; });
    limit = RefusedBy::kNone;
  }
  const auto count = static_cast<uint32_t>(request.count);
  if (limit == RefusedBy::kNone) {
    const AcquireAnswer granted = Grant(turn, session, slot, count, request.request_id);
    // At its cap now, the session may have waiters that no longer stand in the way of others.
    if (flow.held_by_session != nullptr) Wake(slot);
    return granted;
  }

  const int64_t wait_ms = WaitOf(flow, request);
  // Room alone would not help those who ask for more than there can be.
  const bool can_fit = request.count <= LevelOf(flow) && request.count <= CapOf(flow);
  if (wait_ms == 0 || !can_fit) return Refuse(slot, TokenStatus::kBlocked, limit);
  if (QueueIsFull(flow, ticket)) {
    return Refuse(slot, TokenStatus::kBlocked, RefusedBy::kQueueFull);
  }
  Enqueue(turn, session, slot, request, wait_ms, ticket);
  return std::nullopt;
}

// False: the request id stands for nothing, the request is one like any other. Otherwise `answer`
// is what Acquire returns.
bool Core::AnswerByRequestId(const Turn& turn, SessionSlot session, const AcquireRequest& request,
                             WaitTicket ticket, std::optional<AcquireAnswer>* answer) {
  const SessionId id = sessions_.at(session).id;
  const TokenSlot token = tokens_.FindRequest(session, request.request_id);
  if (token != kNoToken) {
    *answer = AnswerOfToken(turn, request, token);
    return true;
  }
  if (requests_.IsCancelled(id, request.request_id, turn.now.ms)) {
    *answer =
        RefuseIfKnown(flows_.Find(request.flow), TokenStatus::kBlocked, RefusedBy::kCancelled);
    return true;
  }
  const WaiterSlot waiting = requests_.FindWaiter(id, request.request_id);
  if (waiting == kNoWaiter) return false;
  const FlowSlot flow = flows_.Find(request.flow);
  const Waiter waiter = waiters_.at(waiting);
  if (waiter.flow != flow || waiter.count != request.count) {
    *answer = RefuseIfKnown(flow, TokenStatus::kBadRequest, RefusedBy::kRequestId);
    return true;
  }
  const bool other_connection = waiter.ticket.owner != ticket.owner;
  if (other_connection &&
      waiters_.SizeOf(ticket.owner) >= options_.limits.waiters_per_connection_max) {
    *answer = Refuse(flow, TokenStatus::kBlocked, RefusedBy::kQueueFull);
    return true;
  }
  // The client has given the first call up; this one takes its place in the queue.
  const AcquireAnswer superseded = Refuse(flow, TokenStatus::kBlocked, RefusedBy::kSuperseded);
  const int64_t wait_ms = WaitOf(flows_.at(flow), request);
  if (wait_ms == 0) {
    AnswerLate(turn, waiting, superseded);
    GrantWaiters(turn);
    return false;
  }
  late_answers_.push_back({waiter.ticket, superseded});
  waiters_.Readdress(waiting, ticket, turn.now.ms + wait_ms);
  return true;
}

AcquireAnswer Core::AnswerOfToken(const Turn& turn, const AcquireRequest& request,
                                  TokenSlot token) {
  const TokenEntry& entry = tokens_.at(token);
  const Flow& flow = flows_.at(entry.flow);
  if (flow.id != request.flow || entry.count != request.count) {
    return RefuseIfKnown(flows_.Find(request.flow), TokenStatus::kBadRequest,
                         RefusedBy::kRequestId);
  }
  return {.status = TokenStatus::kOk,
          .token_id = IdOf(entry),
          .fence = Fence{entry.fence},
          .now_calls = flow.now_calls,
          .level = LevelOf(flow),
          .hold_ms = std::max<int64_t>(0, entry.deadline_ms - turn.now.ms)};
}

TokenStatus Core::Cancel(const Turn& turn, SessionSlot session, uint64_t request_id) {
  // More than one comes to be remembered; OnTime has the rest.
  constexpr uint32_t kForgottenPerCancel = 8;
  const Waking waking(this, turn);
  const SessionId id = sessions_.at(session).id;
  requests_.ForgetCancelled(turn.now.ms, kForgottenPerCancel);
  requests_.Cancel(id, request_id, turn.now.ms + options_.limits.cancel_remembered_ms);
  const TokenSlot token = tokens_.FindRequest(session, request_id);
  const WaiterSlot waiting = requests_.FindWaiter(id, request_id);
  if (token != kNoToken) {
    EndToken(turn, token, EndReason::kCancelled);
  } else if (waiting != kNoWaiter) {
    const FlowSlot flow = waiters_.at(waiting).flow;
    AnswerLate(turn, waiting, Refuse(flow, TokenStatus::kBlocked, RefusedBy::kCancelled));
  } else {
    return TokenStatus::kAlreadyRelease;
  }
  return TokenStatus::kReleaseOk;
}

// What stands in the way of every grant, whatever its rule.
RefusedBy Core::ServerLimit() const {
  if (disk_low_) return RefusedBy::kDiskLow;
  return tokens_.size() >= options_.limits.tokens_max ? RefusedBy::kTokenLimit : RefusedBy::kNone;
}

RefusedBy Core::LimitOf(const Flow& flow, SessionSlot session, int64_t count) const {
  if (count > LevelOf(flow) - flow.now_calls) return RefusedBy::kLevel;
  return count > CapLeft(flow, session) ? RefusedBy::kClientCap : RefusedBy::kNone;
}

// What one session may hold. A share of the level is one call at least: with none a client could
// never do anything.
int64_t Core::CapOf(const Flow& flow) const {
  if (!flow.rule->capped()) return INT64_MAX;
  if (flow.rule->max_per_client > 0) return flow.rule->max_per_client;
  const double share = static_cast<double>(LevelOf(flow)) * flow.rule->max_per_client_percent / 100;
  return std::max<int64_t>(1, WholeCalls(share));
}

// What the session may be granted under the rule until it is at its cap; INT64_MAX without one.
int64_t Core::CapLeft(const Flow& flow, SessionSlot session) const {
  if (flow.held_by_session == nullptr || !flow.rule->capped()) return INT64_MAX;
  const auto held = flow.held_by_session->find(session);
  return CapOf(flow) - (held == flow.held_by_session->end() ? 0 : held->second);
}

// The first of the class that room would let go; those that no room that others make would help are
// set aside on the way. One of those may have stood for all that its session has at the cap, so
// these are looked at then, once for each session however many of its waiters were set aside.
WaiterSlot Core::FirstInLine(Flow* flow, size_t queue_class) {
  const int64_t level = LevelOf(*flow);
  const auto look = [&] {
    waiters_.ReturnFirstOfThoseToLookAt(
        [&](SessionSlot session) { return CapLeft(*flow, session); }, level, &flow->waiters);
  };
  look();
  for (;;) {
    const WaiterSlot slot = WaitQueues::First(flow->waiters, queue_class);
    if (slot != kNoWaiter && !flow->shadow) {
      const Waiter& waiter = waiters_.at(slot);
      const bool too_large = waiter.count > level;
      if (too_large || waiter.count > CapLeft(*flow, waiter.session)) {
        if (too_large) {
          waiters_.SetAsideAsTooLarge(slot, &flow->waiters);
        } else {
          waiters_.SetAsideAtCap(slot, &flow->waiters);
        }
        WaitQueues::LookAt(waiter.session, &flow->waiters);
        continue;
      }
    }
    if (!WaitQueues::HasToLookAt(flow->waiters)) return slot;
    look();
  }
}

bool Core::WaitersAhead(Flow* flow, bool prioritized) {
  if (flow->waiters.size() == 0) return false;
  // Those who are about to be granted are ahead.
  if (flow->to_wake || LevelHasChanged(*flow)) RestoreLine(flow);
  return FirstInLine(flow, 0) != kNoWaiter || (!prioritized && FirstInLine(flow, 1) != kNoWaiter);
}

// A session holds less under the rule than before, or has one waiter less. Its waiters are looked
// at when somebody asks for the first in line, once for all that happens until then.
void Core::ReturnToLine(Flow* flow, SessionSlot session) {
  WaitQueues::LookAt(session, &flow->waiters);
}

// Sentinel's acquireRefuseStrategy 3 queues prioritized requests; a request may ask for it itself.
int64_t Core::WaitOf(const Flow& flow, const AcquireRequest& request) const {
  constexpr int32_t kQueueOnServer = 3;
  if (queues_closed_ || !flow.active()) return 0;
  if (request.wait_ms.has_value()) return std::clamp<int64_t>(*request.wait_ms, 0, kWaitMsMax);
  const bool by_rule = request.prioritized && flow.rule->acquire_refuse_strategy == kQueueOnServer;
  return by_rule ? std::min<int64_t>(flow.rule->max_queueing_time_ms, kWaitMsMax) : 0;
}

bool Core::QueueIsFull(const Flow& flow, WaitTicket ticket) const {
  const Limits& limits = options_.limits;
  return flow.waiters.size() >= limits.waiters_per_rule_max ||
         waiters_.size() >= limits.waiters_max ||
         waiters_.SizeOf(ticket.owner) >= limits.waiters_per_connection_max;
}

void Core::Enqueue(const Turn& turn, SessionSlot session, FlowSlot slot,
                   const AcquireRequest& request, int64_t wait_ms, WaitTicket ticket) {
  Flow& flow = flows_.at(slot);
  Count(&flow, [](FlowCounters* c) { ++c->queued; });
  const WaiterSlot waiter = waiters_.Add({.ticket = ticket,
                                          .flow = slot,
                                          .session = session,
                                          .count = static_cast<uint32_t>(request.count),
                                          .prioritized = request.prioritized,
                                          .request_id = request.request_id,
                                          .since_ms = turn.now.ms,
                                          .deadline_ms = turn.now.ms + wait_ms},
                                         &flow.waiters);
  if (request.request_id != 0) {
    requests_.AddWaiter(sessions_.at(session).id, request.request_id, waiter);
  }
  TrackWaiting(flow);
}

void Core::TrackWaiting(const Flow& flow) {
  auto& waiting = flows_.name_space(flow.name_space).waiting_for_sessions;
  if (flow.waiters.size() > 0 && flow.level_by_session) {
    waiting.insert(flow.id.value);
  } else {
    waiting.erase(flow.id.value);
  }
}

AcquireAnswer Core::Grant(const Turn& turn, SessionSlot session, FlowSlot slot, uint32_t count,
                          uint64_t request_id) {
  const TokenEntry& entry = tokens_.at(IssueToken(turn, session, slot, count, request_id));
  const Flow& flow = flows_.at(slot);
  return {.status = TokenStatus::kOk,
          .token_id = IdOf(entry),
          .fence = Fence{entry.fence},
          .now_calls = flow.now_calls,
          .level = LevelOf(flow),
          .hold_ms = flow.hold_ms};
}

// A request id may be asked for with a flow that does not exist: nowhere to count that.
AcquireAnswer Core::RefuseIfKnown(FlowSlot slot, TokenStatus status, RefusedBy limit) {
  if (slot == kNoFlow) return {.status = status, .refused_by = limit};
  return Refuse(slot, status, limit);
}

AcquireAnswer Core::Refuse(FlowSlot slot, TokenStatus status, RefusedBy limit) {
  Flow& flow = flows_.at(slot);
  Count(&flow, [&](FlowCounters* c) { ++c->refused[static_cast<size_t>(limit)]; });
  return {
      .status = status, .refused_by = limit, .now_calls = flow.now_calls, .level = LevelOf(flow)};
}

// Ends the wait with an answer.
void Core::AnswerLate(const Turn& turn, WaiterSlot slot, const AcquireAnswer& answer) {
  const Waiter waiter = waiters_.at(slot);
  const int64_t waited_ms = turn.now.ms - waiter.since_ms;
  Count(&flows_.at(waiter.flow),
        [&](FlowCounters* c) { c->longest_wait_ms = std::max(c->longest_wait_ms, waited_ms); });
  late_answers_.push_back({waiter.ticket, answer});
  RemoveWaiter(slot);
}

void Core::RemoveWaiter(WaiterSlot slot) {
  const Waiter waiter = waiters_.at(slot);
  Flow& flow = flows_.at(waiter.flow);
  if (waiter.request_id != 0) {
    requests_.RemoveWaiter(sessions_.at(waiter.session).id, waiter.request_id);
  }
  waiters_.Remove(slot, &flow.waiters);
  ReturnToLine(&flow, waiter.session);
  TrackWaiting(flow);
  Wake(waiter.flow);  // It may have stood in the way of others.
}

void Core::DropWaiters(const Turn& turn, uint32_t owner) {
  const Waking waking(this, turn);
  RemoveWaitersOf(owner);
}

void Core::RemoveWaitersOf(uint32_t owner) {
  for (;;) {
    const WaiterSlot slot = waiters_.FirstOf(owner);
    if (slot == kNoWaiter) return;
    RemoveWaiter(slot);
  }
}

void Core::CloseQueues(const Turn& turn) {
  queues_closed_ = true;
  for (;;) {
    const WaiterSlot slot = waiters_.Earliest();
    if (slot == kNoWaiter) return;
    AnswerLate(turn, slot, {.status = TokenStatus::kNotAvailable});
  }
}

void Core::RefuseWaiters(const Turn& turn, FlowSlot flow, TokenStatus status, RefusedBy limit) {
  for (size_t i = 0; i < flows_.at(flow).waiters.classes.size(); ++i) {
    for (;;) {
      const WaiterSlot slot = flows_.at(flow).waiters.classes[i].head;
      if (slot == kNoWaiter) break;
      AnswerLate(turn, slot,
                 limit == RefusedBy::kNone ? AcquireAnswer{.status = status}
                                           : Refuse(flow, status, limit));
    }
  }
}

void Core::ExpireWaiters(const Turn& turn, uint32_t waiters_max) {
  for (; waiters_max > 0 && waiters_.earliest_deadline_ms() <= turn.now.ms; --waiters_max) {
    const WaiterSlot slot = waiters_.Earliest();
    const FlowSlot flow = waiters_.at(slot).flow;
    AnswerLate(turn, slot, Refuse(flow, TokenStatus::kBlocked, RefusedBy::kQueueTimeout));
  }
}

std::vector<LateAnswer> Core::TakeLateAnswers() { return std::exchange(late_answers_, {}); }

// The flow has more room, or other waiters than before.
void Core::Wake(FlowSlot slot) {
  Flow& flow = flows_.at(slot);
  if (flow.to_wake || flow.waiters.size() == 0) return;
  flow.to_wake = true;
  to_wake_.push_back({.flow = slot});
}

// Levels that are shared among sessions have changed. However many flows that concerns, it takes a
// moment here: clients may come and go as often as they like.
void Core::WakeNamespace(NamespaceSlot slot) {
  Namespace& name_space = flows_.name_space(slot);
  ++name_space.levels_changed;
  if (name_space.waiting_for_sessions.empty()) return;
  if (name_space.to_wake) {
    name_space.wake_again = name_space.wake_after > 0;
    return;
  }
  name_space.to_wake = true;
  to_wake_.push_back({.name_space = slot});
}

// While some calls' waiters are left to OnTime, those of later calls stand behind them: otherwise
// calls that are bounded each would let all go in one turn.
void Core::GrantWaiters(const Turn& turn) {
  if (!grants_behind_) GrantSomeWaiters(turn);
}

void Core::GrantSomeWaiters(const Turn& turn) {
  uint32_t left = options_.grants_per_call_max;
  while (left > 0 && !to_wake_.empty()) {
    const ToWake next = to_wake_.front();
    to_wake_.pop_front();
    left -= std::min(left, next.flow != kNoFlow ? GrantWaitersOf(turn, next.flow, left)
                                                : GrantWaitersIn(turn, next.name_space, left));
  }
  grants_behind_ = !to_wake_.empty();
}

// A piece of a namespace's flows, by flow id; returns what it has cost.
uint32_t Core::GrantWaitersIn(const Turn& turn, NamespaceSlot slot, uint32_t cost_max) {
  Namespace& name_space = flows_.name_space(slot);
  if (!name_space.to_wake) return 1;  // It went, and another has its slot.
  uint32_t cost = 0;
  while (cost < cost_max) {
    const auto next = name_space.waiting_for_sessions.upper_bound(name_space.wake_after);
    if (next == name_space.waiting_for_sessions.end()) {
      name_space.to_wake = std::exchange(name_space.wake_again, false);
      name_space.wake_after = 0;
      if (name_space.to_wake) to_wake_.push_back({.name_space = slot});
      return std::max<uint32_t>(1, cost);
    }
    name_space.wake_after = *next;
    const FlowSlot flow = flows_.Find(FlowId{*next});
    cost += flows_.at(flow).to_wake ? 1 : GrantWaitersOf(turn, flow, cost_max - cost);
  }
  to_wake_.push_back({.name_space = slot});
  return cost;
}

// Ends waits until that has cost `cost_max`, or a little more; returns the cost. Looks at waiters
// count, and one that finds nobody to grant does: there may be as many flows as waiters.
uint32_t Core::GrantWaitersOf(const Turn& turn, FlowSlot slot, uint32_t cost_max) {
  Flow& flow = flows_.at(slot);
  flow.to_wake = false;
  if (flow.waiters.size() == 0) return 1;
  const uint64_t looks_before = waiters_.looks();
  uint32_t ended = 0;
  const auto cost = [&] {
    return std::max<uint32_t>(1, ended + static_cast<uint32_t>(waiters_.looks() - looks_before));
  };
  RestoreLine(&flow);
  for (size_t i = 0; i < flow.waiters.classes.size(); ++i) {
    for (;;) {
      const WaiterSlot first = FirstInLine(&flow, i);
      if (first == kNoWaiter) break;
      if (ended > 0 && cost() >= cost_max) {
        Wake(slot);
        return cost();
      }
      if (!GrantWaiter(turn, first)) return cost();  // All behind it wait for the same room.
      ++ended;
    }
  }
  return cost();
}

// Since its waiters were looked at, by sessions that came or left.
bool Core::LevelHasChanged(const Flow& flow) const {
  return flow.level_by_session &&
         flow.levels_seen != flows_.name_space(flow.name_space).levels_changed;
}

// Back into line come those that were set aside for a level that was lower, or a share of one.
void Core::RestoreLine(Flow* flow) {
  waiters_.ReturnUpTo(LevelOf(*flow), &flow->waiters);
  if (!LevelHasChanged(*flow)) return;
  flow->levels_seen = flows_.name_space(flow->name_space).levels_changed;
  if (flow->rule->max_per_client_percent > 0) {
    waiters_.ReturnFirstOfEach([&](SessionSlot session) { return CapLeft(*flow, session); },
                               LevelOf(*flow), &flow->waiters);
  }
}

// Whether the wait is over.
bool Core::GrantWaiter(const Turn& turn, WaiterSlot slot) {
  const Waiter waiter = waiters_.at(slot);
  Flow& flow = flows_.at(waiter.flow);
  const RefusedBy limit = LimitOf(flow, waiter.session, waiter.count);
  if (limit != RefusedBy::kNone && !flow.shadow) return false;
  if (const RefusedBy full = ServerLimit(); full != RefusedBy::kNone) {
    AnswerLate(turn, slot, Refuse(waiter.flow, TokenStatus::kTooManyRequest, full));
    return true;
  }
  Count(&flow, [&](FlowCounters* c) {
    ++c->granted_from_queue;
    if (limit != RefusedBy::kNone) ++c->shadow_refused[static_cast<size_t>(limit)];
  });
  AnswerLate(turn, slot, Grant(turn, waiter.session, waiter.flow, waiter.count, waiter.request_id));
  return true;
}

}  // namespace nowcalls::core
