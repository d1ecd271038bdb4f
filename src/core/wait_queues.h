// WaitQueues: acquires that wait for room, in the order in which they are to be granted.
//
// Thread: loop. A flow has two queues, of prioritized and of other waiters, each first in, first
// out; its owner (an engine's connection) knows its waiters too, and the earliest deadline of all
// is known. Slots are stable and reused. The table decides nothing: who may go is the core's to
// say.
#ifndef NOWCALLS_CORE_WAIT_QUEUES_H_
#define NOWCALLS_CORE_WAIT_QUEUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "core/token_table.h"

namespace nowcalls::core {

using WaiterSlot = uint32_t;
inline constexpr WaiterSlot kNoWaiter = UINT32_MAX;

// Where the answer to an acquire goes when it comes later. The core only hands it back.
struct WaitTicket {
  uint32_t owner = 0;  // A connection of the engine.
  uint32_t tag = 0;    // Its msgid.

  bool operator==(const WaitTicket&) const = default;
};

struct WaiterList {
  WaiterSlot head = kNoWaiter;
  WaiterSlot tail = kNoWaiter;
  uint32_t size = 0;
};

// The waiters of one flow; a member of the flow.
struct WaitQueue {
  std::array<WaiterList, 2> classes;  // Prioritized ones, then the others.

  uint32_t size() const { return classes[0].size + classes[1].size; }
};

struct Waiter {
  WaitTicket ticket;
  FlowSlot flow = kNoFlow;
  SessionSlot session = kNoSession;
  uint32_t count = 0;
  bool prioritized = false;
  uint64_t request_id = 0;  // 0: none.
  int64_t since_ms = 0;
  int64_t deadline_ms = 0;

  size_t queue_class() const { return prioritized ? 0 : 1; }
};

class WaitQueues {
 public:
  WaitQueues() = default;
  WaitQueues(const WaitQueues&) = delete;
  WaitQueues& operator=(const WaitQueues&) = delete;

  // At the end of its class in `queue`, the one of its flow.
  WaiterSlot Add(const Waiter& waiter, WaitQueue* queue);
  void Remove(WaiterSlot slot, WaitQueue* queue);
  // The waiter keeps its place; the answer goes elsewhere, until another deadline.
  void Readdress(WaiterSlot slot, WaitTicket ticket, int64_t deadline_ms);

  const Waiter& at(WaiterSlot slot) const { return nodes_[slot].waiter; }
  // Behind it in its class; kNoWaiter at the end.
  WaiterSlot Next(WaiterSlot slot) const { return nodes_[slot].links[kInQueue].next; }
  size_t size() const { return size_; }

  uint32_t SizeOf(uint32_t owner) const;
  // The one of the owner that has waited longest; kNoWaiter without any.
  WaiterSlot FirstOf(uint32_t owner) const;

  // By deadline; kNoWaiter and INT64_MAX when nobody waits.
  WaiterSlot Earliest() const;
  int64_t earliest_deadline_ms() const;

 private:
  enum Order : uint8_t { kInQueue = 0, kOfOwner = 1 };
  struct Link {
    WaiterSlot previous = kNoWaiter;
    WaiterSlot next = kNoWaiter;
  };
  struct Node {
    Waiter waiter;
    std::array<Link, 2> links;
  };

  void Append(WaiterList* list, Order order, WaiterSlot slot);
  void Unlink(WaiterList* list, Order order, WaiterSlot slot);
  void LeaveOwner(WaiterSlot slot);

  std::deque<Node> nodes_;
  std::vector<WaiterSlot> free_;
  size_t size_ = 0;
  absl::flat_hash_map<uint32_t, WaiterList> owners_;
  absl::btree_set<std::pair<int64_t, WaiterSlot>> deadlines_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_WAIT_QUEUES_H_
