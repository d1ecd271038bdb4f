#include "core/wait_queues.h"

namespace nowcalls::core {

WaiterSlot WaitQueues::Add(const Waiter& waiter, WaitQueue* queue) {
  WaiterSlot slot = 0;
  if (free_.empty()) {
    slot = static_cast<WaiterSlot>(nodes_.size());
    nodes_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  nodes_[slot].waiter = waiter;
  Append(&queue->classes[waiter.queue_class()], kInQueue, slot);
  Append(&owners_[waiter.ticket.owner], kOfOwner, slot);
  deadlines_.emplace(waiter.deadline_ms, slot);
  ++size_;
  return slot;
}

void WaitQueues::Remove(WaiterSlot slot, WaitQueue* queue) {
  const Waiter& waiter = nodes_[slot].waiter;
  deadlines_.erase({waiter.deadline_ms, slot});
  Unlink(&queue->classes[waiter.queue_class()], kInQueue, slot);
  LeaveOwner(slot);
  free_.push_back(slot);
  --size_;
}

void WaitQueues::Readdress(WaiterSlot slot, WaitTicket ticket, int64_t deadline_ms) {
  Waiter& waiter = nodes_[slot].waiter;
  deadlines_.erase({waiter.deadline_ms, slot});
  LeaveOwner(slot);
  waiter.ticket = ticket;
  waiter.deadline_ms = deadline_ms;
  Append(&owners_[ticket.owner], kOfOwner, slot);
  deadlines_.emplace(deadline_ms, slot);
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
