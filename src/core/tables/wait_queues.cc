#include "core/tables/wait_queues.h"

#include "base/allocated.h"
#include "base/check.h"

namespace nowcalls::core {
namespace {

WaitQueues::WaitingFlow WaitingFlowOf(const Waiter& waiter) {
  const FlowKind kind = FlowKindIf(waiter.lane.key_slot != kNoKey);
  return {{waiter.flow, kind}, waiter.lane.flow_slot};
}

}  // namespace

WaiterSlot WaitQueues::Add(const Waiter& waiter, WaitQueue* queue) {
  const WaiterSlot slot = nodes_.Take();
  nodes_[slot].waiter = waiter;
  // The number gives the waiter its place in every set, also after a move or a return.
  nodes_[slot].number = ++last_number_;
  Append(&queue->classes[waiter.queue_class()], kInQueue, slot);
  PutInLine(slot, queue);
  JoinFlow(slot);
  Append(&owners_[waiter.ticket.owner], kOfOwner, slot);
  deadlines_.emplace(waiter.deadline_ms, slot);
  ++size_;
  return slot;
}

void WaitQueues::Remove(WaiterSlot slot, WaitQueue* queue) {
  const Waiter& waiter = nodes_[slot].waiter;
  deadlines_.erase({waiter.deadline_ms, slot});
  // The places are found by what the waiter says, so its node is freed last.
  LeavePlace(slot, queue);
  Unlink(&queue->classes[waiter.queue_class()], kInQueue, slot);
  LeaveFlow(slot);
  LeaveOwner(slot);
  if (const WaitingGroup* group = GroupOf(slot)) group_bytes_ -= BytesOf(*group);
  nodes_.Return(slot);
  --size_;
}

void WaitQueues::SetGroup(WaiterSlot slot, WaitingGroup group) {
  std::unique_ptr<WaitingGroup>& kept = nodes_[slot].group;
  // The same group asked again may list its items in another order.
  if (kept != nullptr) group_bytes_ -= BytesOf(*kept);
  kept = std::make_unique<WaitingGroup>(std::move(group));
  group_bytes_ += BytesOf(*kept);
}

size_t WaitQueues::BytesOf(const WaitingGroup& group) {
  size_t bytes =
      AllocatedBytes(sizeof(WaitingGroup)) + AllocatedBytes(group.capacity() * sizeof(GroupItem));
  for (const GroupItem& item : group) {
    if (item.param.has_value()) bytes += AllocatedBytes(item.param->bytes);
  }
  return bytes;
}

void WaitQueues::Move(WaiterSlot slot, WaitQueue* from_queue, const Place& to,
                      WaitQueue* to_queue) {
  Waiter& waiter = nodes_[slot].waiter;
  // Leave the old lane. Owner and deadline stay.
  LeavePlace(slot, from_queue);
  Unlink(&from_queue->classes[waiter.queue_class()], kInQueue, slot);
  LeaveFlow(slot);
  waiter.lane = to.lane;
  waiter.flow = to.flow;
  waiter.count = to.count;
  JoinFlow(slot);
  // Join the new lane at the place of arrival, not at the end.
  InsertByNumber(to_queue, slot);
  PutInLine(slot, to_queue);
}

// Begins at the next younger waiter in line. Only waiters set aside can lie between it and the
// place.
void WaitQueues::InsertByNumber(WaitQueue* queue, WaiterSlot slot) {
  const size_t queue_class = nodes_[slot].waiter.queue_class();
  const uint64_t number = nodes_[slot].number;
  WaiterList* const list = &queue->classes[queue_class];
  const auto behind = queue->in_line[queue_class].lower_bound({number, slot});
  WaiterSlot next = behind == queue->in_line[queue_class].end() ? kNoWaiter : behind->second;
  const auto before = [&](WaiterSlot of) {
    return of == kNoWaiter ? list->tail : nodes_[of].links[kInQueue].previous;
  };
  while (before(next) != kNoWaiter && nodes_[before(next)].number > number) {
    ++looks_;
    next = before(next);
  }
  const WaiterSlot previous = before(next);
  nodes_[slot].links[kInQueue] = {previous, next};
  (previous == kNoWaiter ? list->head : nodes_[previous].links[kInQueue].next) = slot;
  (next == kNoWaiter ? list->tail : nodes_[next].links[kInQueue].previous) = slot;
  ++list->size;
}

void WaitQueues::Readdress(WaiterSlot slot, WaitTicket ticket, int64_t deadline_ms) {
  Waiter& waiter = nodes_[slot].waiter;
  deadlines_.erase({waiter.deadline_ms, slot});
  LeaveOwner(slot);
  // The queue is by number, so the place in line stays.
  waiter.ticket = ticket;
  waiter.deadline_ms = deadline_ms;
  Append(&owners_[ticket.owner], kOfOwner, slot);
  deadlines_.emplace(deadline_ms, slot);
}

WaiterSlot WaitQueues::First(const WaitQueue& queue, size_t queue_class) {
  const WaiterPlaces& places = queue.in_line[queue_class];
  return places.empty() ? kNoWaiter : places.begin()->second;
}

// Sets a waiter aside, from the line or from the other set, until the level rises. Its number keeps
// its old place for the return.
void WaitQueues::SetAsideAsTooLarge(WaiterSlot slot, WaitQueue* queue) {
  LeavePlace(slot, queue);
  if (queue->set_aside == nullptr) queue->set_aside = std::make_unique<WaitQueue::SetAside>();
  nodes_[slot].standing = Standing::kTooLarge;
  queue->set_aside->too_large.emplace(nodes_[slot].waiter.count, slot);
}

// The same until the session holds less. Then its first waiter returns, and stands for the others
// until the next look.
void WaitQueues::SetAsideAtCap(WaiterSlot slot, WaitQueue* queue) {
  LeavePlace(slot, queue);
  if (queue->set_aside == nullptr) queue->set_aside = std::make_unique<WaitQueue::SetAside>();
  Node& node = nodes_[slot];
  node.standing = Standing::kAtCap;
  auto& at_cap = queue->set_aside->at_cap[node.waiter.session_slot][node.waiter.queue_class()];
  at_cap.places.emplace(node.number, slot);
  at_cap.counts.emplace(node.waiter.count, slot);
}

void WaitQueues::ReturnUpTo(int64_t level, WaitQueue* queue) {
  while (queue->set_aside != nullptr && !queue->set_aside->too_large.empty()) {
    // The smallest first: the first that is above the level ends it. LeavePlace frees `set_aside`
    // with its last waiter.
    const auto [count, slot] = *queue->set_aside->too_large.begin();
    if (count > level) return;
    ++looks_;
    LeavePlace(slot, queue);
    PutInLine(slot, queue);
  }
}

void WaitQueues::ReturnFirst(const WaitQueue::SetAside::AtCap& waiters, int64_t count_max,
                             int64_t level, WaitQueue* queue) {
  // Fast path: not even the smallest fits.
  if (waiters.counts.empty() || waiters.counts.begin()->first > count_max) return;
  WaiterSlot first = kNoWaiter;
  std::vector<WaiterSlot> too_large;
  // Oldest first. A waiter beyond the cap waits on; one that only the level stops is above the
  // level, and the walk does not meet it again.
  for (const auto& [number, slot] : waiters.places) {
    ++looks_;
    const int64_t count = nodes_[slot].waiter.count;
    if (count > count_max) continue;
    if (count <= level) {
      first = slot;
      break;
    }
    too_large.push_back(slot);
  }
  // The last waiter that leaves `waiters` frees it, so nothing below reads it.
  for (const WaiterSlot slot : too_large) SetAsideAsTooLarge(slot, queue);
  if (first == kNoWaiter) return;
  LeavePlace(first, queue);
  PutInLine(first, queue);
}

void WaitQueues::ReturnFirstOf(SessionSlot session, int64_t count_max, int64_t level,
                               WaitQueue* queue) {
  for (size_t i = 0; i < 2; ++i) {
    if (queue->set_aside == nullptr) return;
    // Looked up again for each class: the first return may have freed the sets.
    const auto of_session = queue->set_aside->at_cap.find(session);
    if (of_session == queue->set_aside->at_cap.end()) return;
    if (i == 0) ++looks_;
    if (count_max <= 0) return;
    ReturnFirst(of_session->second[i], count_max, level, queue);
  }
}

void WaitQueues::ReturnAll(WaitQueue* queue) {
  if (queue->set_aside == nullptr) return;
  // The queue loses its sets first, so the standing of each waiter is all that changes.
  const std::unique_ptr<WaitQueue::SetAside> back = std::move(queue->set_aside);
  for (const auto& [count, slot] : back->too_large) PutInLine(slot, queue);
  for (const auto& [session, classes] : back->at_cap) {
    for (const auto& at_cap : classes) {
      for (const auto& [number, slot] : at_cap.places) PutInLine(slot, queue);
    }
  }
}

void WaitQueues::PutInLine(WaiterSlot slot, WaitQueue* queue) {
  Node& node = nodes_[slot];
  node.standing = Standing::kInLine;
  queue->in_line[node.waiter.queue_class()].emplace(node.number, slot);
}

void WaitQueues::LeavePlace(WaiterSlot slot, WaitQueue* queue) {
  const Node& node = nodes_[slot];
  const size_t queue_class = node.waiter.queue_class();
  if (node.standing == Standing::kInLine) {
    queue->in_line[queue_class].erase({node.number, slot});
    return;
  }
  WaitQueue::SetAside& set_aside = *queue->set_aside;
  if (node.standing == Standing::kTooLarge) {
    set_aside.too_large.erase({node.waiter.count, slot});
  } else {
    const auto of_session = set_aside.at_cap.find(node.waiter.session_slot);
    NOWCALLS_CHECK(of_session != set_aside.at_cap.end());
    auto& classes = of_session->second;
    classes[queue_class].places.erase({node.number, slot});
    classes[queue_class].counts.erase({node.waiter.count, slot});
    if (classes[0].places.empty() && classes[1].places.empty()) set_aside.at_cap.erase(of_session);
  }
  // Null tells all looks that nobody is set aside.
  if (set_aside.too_large.empty() && set_aside.at_cap.empty()) queue->set_aside.reset();
}

const WaiterPlaces* WaitQueues::OfFlow(const FlowKey& key, FlowSlot slot) const {
  const auto it = flows_.find({key, slot});
  return it == flows_.end() ? nullptr : &it->second;
}

void WaitQueues::JoinFlow(WaiterSlot slot) {
  const Waiter& waiter = nodes_[slot].waiter;
  flows_[WaitingFlowOf(waiter)].emplace(nodes_[slot].number, slot);
}

void WaitQueues::LeaveFlow(WaiterSlot slot) {
  const Waiter& waiter = nodes_[slot].waiter;
  const auto it = flows_.find(WaitingFlowOf(waiter));
  it->second.erase({nodes_[slot].number, slot});
  if (it->second.empty()) flows_.erase(it);
}

uint32_t WaitQueues::SizeOf(uint32_t owner) const {
  const auto it = owners_.find(owner);
  return it == owners_.end() ? 0 : it->second.size;
}

WaiterSlot WaitQueues::FirstOf(uint32_t owner) const {
  const auto it = owners_.find(owner);
  return it == owners_.end() ? kNoWaiter : it->second.head;
}

WaiterSlot WaitQueues::Earliest() const {
  return deadlines_.empty() ? kNoWaiter : deadlines_.begin()->second;
}

int64_t WaitQueues::earliest_deadline_ms() const {
  return deadlines_.empty() ? INT64_MAX : deadlines_.begin()->first;
}

void WaitQueues::Append(WaiterList* list, Order order, WaiterSlot slot) {
  Link& link = nodes_[slot].links[order];
  link = {list->tail, kNoWaiter};
  (list->tail == kNoWaiter ? list->head : nodes_[list->tail].links[order].next) = slot;
  list->tail = slot;
  ++list->size;
}

void WaitQueues::Unlink(WaiterList* list, Order order, WaiterSlot slot) {
  const Link link = nodes_[slot].links[order];
  (link.previous == kNoWaiter ? list->head : nodes_[link.previous].links[order].next) = link.next;
  (link.next == kNoWaiter ? list->tail : nodes_[link.next].links[order].previous) = link.previous;
  --list->size;
}

void WaitQueues::LeaveOwner(WaiterSlot slot) {
  const auto it = owners_.find(nodes_[slot].waiter.ticket.owner);
  Unlink(&it->second, kOfOwner, slot);
  if (it->second.size == 0) owners_.erase(it);
}

}  // namespace nowcalls::core
