#include "core/grants/groups.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace nowcalls::core {

struct Groups::Item {
  FlowId flow;
  int64_t count = 0;
  uint32_t position = 0;  // In the request.
  std::optional<Param> param{};
  bool rate = false;
  uint32_t name_space = 0;  // Since FindLanes: Namespace::number.
  // Since FindLanes. Of a rate, only the flow.
  LaneRef lane{};
  // Since FirstInTheWay: of this lane, if shadow mode does not let it pass.
  RefusedBy limit = RefusedBy::kNone;
  // Since AskRates, of a rate.
  RateAnswer asked{};

  FlowKey key() const { return {flow, FlowKindIf(param.has_value())}; }
};

namespace {

// Of a group or a request.
template <typename AnyItems>
size_t CountTokens(const AnyItems& items) {
  return static_cast<size_t>(
      std::count_if(items.begin(), items.end(), [](const auto& item) { return !item.rate; }));
}

}  // namespace

// The keys of the items' lanes. Keys without token and waiter are erased at the end.
class Groups::Lanes {
 public:
  Lanes(FlowTable* flows, const Items* items) : flows_(flows), items_(items) {}
  ~Lanes() {
    for (const Item& item : *items_) {
      const KeySlot key = item.lane.key_slot;
      if (key == kNoKey) continue;
      // The key may have been erased with the waiter; another flow may have its slot.
      const bool exists = flows_->keys().at(key).flow_slot == item.lane.flow_slot;
      if (exists) flows_->EraseKeyIfUnused(key);
    }
  }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

 private:
  FlowTable* const flows_;
  const Items* const items_;
};

std::optional<AcquireAllAnswer> Groups::Acquire(const Step& step, SessionSlot session_slot,
                                                const AcquireAllRequest& request,
                                                WaitTicket ticket) {
  // 1. A request that cannot be granted, or was asked before.
  Items items = InOrder(request);
  for (const Item& item : items) {
    if (item.flow.value <= 0 || item.count < 1 || item.count > kCountMax) {
      return AcquireAllAnswer{.status = TokenStatus::kBadRequest, .flow = item.flow};
    }
  }
  if (request.request_id != 0) {
    std::optional<AcquireAllAnswer> answer;
    if (AnswerByRequestId(step, session_slot, items, request, ticket, &answer)) return answer;
  }

  // 2. Refusals that no wait helps.
  const Lanes lanes(flows_, &items);
  if (auto refused = FindLanes(step, &items, /*is_new=*/true)) return refused;
  if (const RefusedBy full = ServerLimit(items); full != RefusedBy::kNone) {
    return RefuseAll(items, TokenStatus::kTooManyRequest, full);
  }
  if (auto refused = FindOverLevel(step, session_slot, &items)) return refused;

  // 3. With room in all lanes the rates are asked, all before the first is taken.
  const Item* in_way = FirstInTheWay(session_slot, request.prioritized, UINT64_MAX, {}, &items);
  if (in_way == nullptr) {
    if (auto refused = AskRates(step, request.prioritized, &items)) return refused;
    return Grant(step, {session_slot, request.request_id, request.hold_ms, request.prioritized},
                 items);
  }
  // 4. A wait in the line of the first lane in the way. Holding the room of the other lanes
  // meanwhile would keep it from everybody, and two groups could wait for each other.
  const AcquireRequest one{.flow = in_way->flow,
                           .count = in_way->count,
                           .prioritized = request.prioritized,
                           .wait_ms = request.wait_ms,
                           .request_id = request.request_id,
                           .hold_ms = request.hold_ms};
  const int64_t wait_ms = waiting_->WaitMsOf(flows_->at(in_way->lane.flow_slot), one);
  if (wait_ms == 0) return Refuse(*in_way, TokenStatus::kBlocked, in_way->limit);
  WaitingGroup group = ToKeep(items);
  if (!waiting_->HasRoomFor(in_way->lane, ticket.owner, WaitQueues::BytesOf(group))) {
    return Refuse(*in_way, TokenStatus::kBlocked, RefusedBy::kQueueFull);
  }
  waiting_->SetGroup(waiting_->Add(step, session_slot, in_way->lane, one, wait_ms, ticket),
                     std::move(group));
  return std::nullopt;
}

uint32_t Groups::Serve(const Step& step, WaiterSlot slot) {
  const Waiter waiter = waiting_->queues().at(slot);
  // The items' params lie in the group, which ends with the wait.
  Items items = ItemsOf(*waiting_->queues().GroupOf(slot));
  const auto cost = static_cast<uint32_t>(items.size());
  const Lanes lanes(flows_, &items);
  // Rules of other lanes may have been removed or drained during the wait.
  if (auto refused = FindLanes(step, &items, /*is_new=*/false)) {
    waiting_->AnswerAll(step, slot, *std::move(refused));
    return cost;
  }
  // Another lane is in the way: the group moves into its line, full or not, to the place of its
  // arrival. A move wakes no lane, so moves end.
  const Item* in_way = FirstInTheWay(waiter.session_slot, waiter.prioritized,
                                     waiting_->queues().NumberOf(slot), waiter.lane, &items);
  if (in_way != nullptr) {
    waiting_->Move(slot, in_way->lane, static_cast<uint32_t>(in_way->count));
    return cost;
  }
  // All lanes have room. A limit of the server, or a rate, refuses the group for good.
  if (const RefusedBy full = ServerLimit(items); full != RefusedBy::kNone) {
    waiting_->AnswerAll(step, slot, RefuseAll(items, TokenStatus::kTooManyRequest, full));
    return cost;
  }
  if (auto refused = AskRates(step, waiter.prioritized, &items)) {
    waiting_->AnswerAll(step, slot, *std::move(refused));
    return cost;
  }
  // The grant comes before the answer: it reads params from the group, which ends with the wait.
  flows_->Count(&flows_->at(waiter.lane.flow_slot),
                [](TokenCounters* c) { ++c->granted_from_queue; });
  AcquireAllAnswer granted = Grant(
      step, {waiter.session_slot, waiter.request_id, waiter.hold_ms, waiter.prioritized}, items);
  waiting_->AnswerAll(step, slot, std::move(granted));
  return cost;
}

Groups::Items Groups::InOrder(const AcquireAllRequest& request) {
  Items items;
  items.reserve(request.items.size());
  for (const AllItem& item : request.items) {
    items.push_back({.flow = item.flow,
                     .count = item.count,
                     .position = static_cast<uint32_t>(items.size()),
                     .param = item.param,
                     .rate = item.rate});
  }
  // One order for all groups, whatever the order of a request: all look at lanes alike.
  const auto order = [](const Item& item) {
    const Param param = item.param.value_or(Param{});
    return std::tuple(item.flow.value, item.param.has_value(), param.type, param.bytes, item.rate);
  };
  std::sort(items.begin(), items.end(),
            [&](const Item& a, const Item& b) { return order(a) < order(b); });
  return items;
}

Groups::Items Groups::ItemsOf(const WaitingGroup& group) {
  Items items;
  items.reserve(group.size());
  for (const GroupItem& kept : group) {
    items.push_back({.flow = kept.flow, .count = kept.count, .position = kept.position});
    items.back().rate = kept.rate;
    items.back().name_space = kept.name_space;
    if (kept.param.has_value()) items.back().param = kept.param->view();
  }
  return items;
}

WaitingGroup Groups::ToKeep(const Items& items) {
  WaitingGroup group;
  group.reserve(items.size());
  for (const Item& item : items) {
    group.push_back(
        {.flow = item.flow, .count = static_cast<uint32_t>(item.count), .position = item.position});
    group.back().rate = item.rate;
    group.back().name_space = item.name_space;
    if (item.param.has_value()) group.back().param.emplace(*item.param);
  }
  return group;
}

bool Groups::IsSame(const Items& items, const WaitingGroup& group) {
  return std::equal(items.begin(), items.end(), group.begin(), group.end(),
                    [](const Item& item, const GroupItem& kept) {
                      return item.flow == kept.flow && item.count == kept.count &&
                             item.rate == kept.rate &&
                             item.param.has_value() == kept.param.has_value() &&
                             (!item.param.has_value() || *item.param == kept.param->view());
                    });
}

// As Admission::AnswerByRequestId.
bool Groups::AnswerByRequestId(const Step& step, SessionSlot session_slot, const Items& items,
                               const AcquireAllRequest& request, WaitTicket ticket,
                               std::optional<AcquireAllAnswer>* answer) {
  if (books_->tokens().FindRequest(session_slot, request.request_id) != kNoToken) {
    *answer = AnswerOfTokens(step, session_slot, items, request.request_id);
    return true;
  }
  const SessionId id = books_->sessions().at(session_slot).id;
  const RequestIds& request_ids = books_->request_ids();
  if (request_ids.IsCancelled(id, request.request_id, step.now.ms)) {
    *answer = RefuseAll(items, TokenStatus::kBlocked, RefusedBy::kCancelled);
    return true;
  }
  const WaiterSlot waiter = request_ids.FindWaiter(id, request.request_id);
  return waiter != kNoWaiter && AnswerOfWaiter(step, waiter, items, request, ticket, answer);
}

// The live tokens of the request id are the answer if they are exactly those that the request asks
// for: a part of a group is no group. Rates were taken with the tokens, and are not taken again.
AcquireAllAnswer Groups::AnswerOfTokens(const Step& step, SessionSlot session_slot,
                                        const Items& items, uint64_t request_id) {
  AcquireAllAnswer answer{.status = TokenStatus::kOk,
                          .tokens = std::vector<GrantedToken>(items.size())};
  const TokenTable& tokens = books_->tokens();
  size_t found = 0;
  bool others = false;
  tokens.ForEachOfRequest(session_slot, request_id, [&](TokenSlot slot) {
    const TokenEntry& entry = tokens.at(slot);
    const KeySlot key = tokens.KeyOf(slot);
    std::optional<Param> param;
    if (key != kNoKey) param = flows_->keys().at(key).value.view();
    const FlowId flow = flows_->at(entry.flow_slot).id;
    const auto item = std::find_if(items.begin(), items.end(), [&](const Item& i) {
      return !i.rate && i.flow == flow && i.param == param && i.count == entry.count;
    });
    if (item == items.end()) {
      others = true;
      return;
    }
    ++found;
    answer.tokens[item->position] = {books_->IdOf(entry), Fence{entry.fence},
                                     std::max<int64_t>(0, entry.deadline_ms - step.now.ms),
                                     flows_->at(entry.flow_slot).terms()};
  });
  if (!others && found == CountTokens(items)) return answer;
  return RefuseAll(items, TokenStatus::kBadRequest, RefusedBy::kRequestId);
}

// As Admission::AnswerOfWaiter. If the request does not wait, the waiters behind the place that it
// gives up still come before it: their lane is in the wake list (Waiting::AreAhead).
bool Groups::AnswerOfWaiter(const Step& step, WaiterSlot slot, const Items& items,
                            const AcquireAllRequest& request, WaitTicket ticket,
                            std::optional<AcquireAllAnswer>* answer) {
  const Waiter waiter = waiting_->queues().at(slot);
  const WaitingGroup* const group = waiting_->queues().GroupOf(slot);
  if (group == nullptr || !IsSame(items, *group)) {
    *answer = RefuseAll(items, TokenStatus::kBadRequest, RefusedBy::kRequestId);
    return true;
  }
  const bool other_connection = waiter.ticket.owner != ticket.owner;
  if (other_connection && !waiting_->HasRoomFor(ticket.owner)) {
    *answer = RefuseAll(items, TokenStatus::kBlocked, RefusedBy::kQueueFull);
    return true;
  }
  const AcquireAnswer superseded =
      CountRefusal(flows_, waiter.lane, TokenStatus::kBlocked, RefusedBy::kSuperseded);
  const int64_t wait_ms = waiting_->WaitMsOf(
      flows_->at(waiter.lane.flow_slot),
      {.flow = {}, .prioritized = request.prioritized, .wait_ms = request.wait_ms});
  if (wait_ms == 0) {
    waiting_->Answer(step, slot, superseded);
    return false;
  }
  waiting_->Replace(step, slot, ticket, wait_ms, superseded);
  // The order of the request may be another.
  WaitingGroup again = *group;
  for (size_t i = 0; i < items.size(); ++i) again[i].position = items[i].position;
  waiting_->SetGroup(slot, std::move(again));
  return true;
}

// Finds the lane of each item, and makes missing keys. An answer: the first item that its rule
// refuses, whatever room there is.
std::optional<AcquireAllAnswer> Groups::FindLanes(const Step& step, Items* items, bool is_new) {
  for (Item& item : *items) {
    if (auto refused = FindLane(step, &item, is_new)) return refused;
  }
  return std::nullopt;
}

std::optional<AcquireAllAnswer> Groups::FindLane(const Step& step, Item* item, bool is_new) {
  // The rule. The refusal of an item of the wrong kind is counted under the other rule.
  const FlowSlot slot = flows_->Find(item->key());
  if (slot == kNoFlow || !flows_->at(slot).active()) {
    item->lane = {FindOther(*flows_, item->key())};
    if (item->lane.flow_slot != kNoFlow) {
      return Refuse(*item, TokenStatus::kBadRequest, RefusedBy::kParam);
    }
    return AcquireAllAnswer{.status = TokenStatus::kNoRuleExists, .flow = item->flow};
  }
  // The lane: the flow's, or that of the value. Rates have no lane of their own.
  Flow& flow = flows_->at(slot);
  // A rule that has moved is removed to a group that waits: it may not reach the new namespace.
  const uint32_t name_space = flows_->name_space(flow.name_space).number;
  if (!is_new && name_space != item->name_space) {
    return AcquireAllAnswer{.status = TokenStatus::kNoRuleExists, .flow = item->flow};
  }
  item->name_space = name_space;
  item->lane = {slot};
  if (flow.keyed && !item->rate) {
    if (flows_->keys().size() >= books_->options().limits.keys_max &&
        flows_->keys().Find(slot, *item->param) == kNoKey) {
      return Refuse(*item, TokenStatus::kTooManyRequest, RefusedBy::kKeyLimit);
    }
    item->lane.key_slot = flows_->FindOrAddKey(slot, *item->param);
  }
  // A group that has waited was counted, by kind and by the guard, when it came.
  if (is_new && item->rate) {
    other_kind_->OnRequest(&flow);
  } else if (is_new) {
    other_kind_->OnAcquire(&flow);
  }
  if (flow.draining) return Refuse(*item, TokenStatus::kBlocked, RefusedBy::kDraining);
  if (is_new && item->rate && !rates_->PassesGuard(step, flow.name_space)) {
    return Refuse(*item, TokenStatus::kTooManyRequest, RefusedBy::kNamespaceQps);
  }
  return std::nullopt;
}

// Rates alone need no room of the server.
RefusedBy Groups::ServerLimit(const Items& items) const {
  const size_t tokens = CountTokens(items);
  return tokens == 0 ? RefusedBy::kNone : room_->ServerLimit(tokens);
}

// An answer: the first item that asks for more than its rule allows with all room free. Shadow mode
// lets any pass.
std::optional<AcquireAllAnswer> Groups::FindOverLevel(const Step& step, SessionSlot session_slot,
                                                      Items* items) {
  for (Item& item : *items) {
    const Flow& flow = flows_->at(item.lane.flow_slot);
    if (flow.shadow) continue;
    if (item.rate) {
      if (rates_->MayEverPass(WishOf(item, /*prioritized=*/false))) continue;
      item.asked = {.status = TokenStatus::kBlocked, .refused_by = RefusedBy::kOverLevel};
      return RefuseRate(step, item);
    }
    const RefusedBy limit = room_->LimitOf(flow, item.lane.key_slot, session_slot, item.count);
    if (limit == RefusedBy::kOverLevel) return Refuse(item, TokenStatus::kBlocked, limit);
  }
  return std::nullopt;
}

Rates::Wish Groups::WishOf(const Item& item, bool prioritized) {
  return {.flow = item.lane.flow_slot,
          .count = item.count,
          .param = item.param,
          .prioritized = prioritized};
}

// Asks all rates, and takes none. An answer: the first that does not let the calls pass.
std::optional<AcquireAllAnswer> Groups::AskRates(const Step& step, bool prioritized, Items* items) {
  for (Item& item : *items) {
    if (!item.rate) continue;
    const Rates::Wish wish = WishOf(item, prioritized);
    item.asked = rates_->Ask(step, wish);
    const bool shadow = flows_->at(item.lane.flow_slot).shadow;
    if (item.asked.status == TokenStatus::kBlocked && !shadow) return RefuseRate(step, item);
  }
  return std::nullopt;
}

// REQUIRES: item.asked is a refusal, which is counted here.
AcquireAllAnswer Groups::RefuseRate(const Step& step, const Item& item) {
  rates_->Conclude(step, WishOf(item, /*prioritized=*/false), item.asked);
  AcquireAllAnswer refused{
      .status = TokenStatus::kBlocked, .refused_by = item.asked.refused_by, .flow = item.flow};
  if (item.param.has_value()) refused.value.emplace(*item.param);
  return refused;
}

// The first item whose lane has no room for it, or waiters ahead of it; null: none. `number`: the
// group's arrival. In the lane that it stands in, the group is the first.
const Groups::Item* Groups::FirstInTheWay(SessionSlot session_slot, bool prioritized,
                                          uint64_t number, const LaneRef& standing_in,
                                          Items* items) {
  for (Item& item : *items) {
    if (item.rate) continue;
    const Flow& flow = flows_->at(item.lane.flow_slot);
    item.limit = room_->LimitOf(flow, item.lane.key_slot, session_slot, item.count);
    if (item.limit == RefusedBy::kNone && item.lane != standing_in &&
        waiting_->AreAhead(item.lane, prioritized, number)) {
      item.limit = RefusedBy::kWaitersAhead;
    }
    if (item.limit != RefusedBy::kNone && !flow.shadow) return &item;
  }
  return nullptr;
}

// In the order of the request, so that fences ascend in it. Shadow mode only counts limits.
AcquireAllAnswer Groups::Grant(const Step& step, const Terms& terms, const Items& items) {
  std::vector<const Item*> in_request(items.size());
  for (const Item& item : items) in_request[item.position] = &item;
  // A rate is concluded here, after every other item has passed: a refusal burns no calls.
  AcquireAllAnswer answer{.status = TokenStatus::kOk};
  answer.tokens.reserve(items.size());
  for (const Item* item : in_request) {
    if (!item->rate) {
      answer.tokens.push_back(GrantToken(step, terms, *item));
      continue;
    }
    const RateAnswer taken = rates_->Conclude(step, WishOf(*item, terms.prioritized), item->asked);
    answer.tokens.push_back({TokenId{}, Fence{}, taken.wait_ms});
  }
  return answer;
}

GrantedToken Groups::GrantToken(const Step& step, const Terms& terms, const Item& item) {
  Flow& flow = flows_->at(item.lane.flow_slot);
  if (item.limit != RefusedBy::kNone) {
    const auto limit = static_cast<size_t>(item.limit);
    flows_->Count(&flow, [&](TokenCounters* c) { ++c->shadow_refused[limit]; });
  }
  const TokenSlot token = books_->IssueToken(step, {.session_slot = terms.session_slot,
                                                    .lane = item.lane,
                                                    .count = static_cast<uint32_t>(item.count),
                                                    .request_id = terms.request_id,
                                                    .hold_ms = terms.hold_ms});
  // Now at its cap, the session may have waiters that no longer stop the others.
  if (flow.held_by_session != nullptr) wake_list_->Add(item.lane);
  const TokenEntry& entry = books_->tokens().at(token);
  return {books_->IdOf(entry), Fence{entry.fence}, entry.deadline_ms - step.now.ms, flow.terms()};
}

AcquireAllAnswer Groups::Refuse(const Item& item, TokenStatus status, RefusedBy limit) {
  const AcquireAnswer one = CountRefusal(flows_, item.lane, status, limit);
  AcquireAllAnswer answer{
      .status = status, .refused_by = limit, .flow = item.flow, .now_calls = 0, .level = 0};
  if (!item.rate) {
    answer.now_calls = one.now_calls;
    answer.level = one.level;
  }
  if (item.param.has_value()) answer.value.emplace(*item.param);
  return answer;
}

// A refusal by no single rule. Counted under the first item's flow, if that exists.
AcquireAllAnswer Groups::RefuseAll(const Items& items, TokenStatus status, RefusedBy limit) {
  const FlowSlot slot = flows_->Find(items.front().key());
  if (slot != kNoFlow) CountRefusal(flows_, {slot}, status, limit);
  return {.status = status, .refused_by = limit};
}

}  // namespace nowcalls::core
