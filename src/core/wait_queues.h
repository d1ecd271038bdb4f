// WaitQueues: acquires that wait for room, in the order in which they are to be granted.
//
// Thread: loop. A lane (core/lane.h) has two queues, of prioritized and of other waiters, each
// first in, first out. The waiters of an owner (a connection of the engine) and the earliest
// deadline of all are found at once, and so are number and oldest of the waiters of a flow, over
// all its lanes. Slots are stable and reused. The table decides nothing: Waiting and Admission do.
//
// Waiters that freed room cannot help are set aside, so that no look passes over them again and
// again: those that ask for more than the level, until the level is raised; those at the cap of
// their session, until the session holds less. When a session's cap has room again, the first of
// its waiters comes back, and stands for the others until the next look. A waiter that comes back
// has its old place.
#ifndef NOWCALLS_CORE_WAIT_QUEUES_H_
#define NOWCALLS_CORE_WAIT_QUEUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "core/answers.h"
#include "core/slot.h"
#include "core/slot_arena.h"
#include "nowcalls/param.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

struct WaiterList {
  WaiterSlot head;
  WaiterSlot tail;
  uint32_t size = 0;
};

// Waiters by when they came, and by count.
using WaiterPlaces = absl::btree_set<std::pair<uint64_t, WaiterSlot>>;
using WaiterCounts = absl::btree_set<std::pair<uint32_t, WaiterSlot>>;

// The waiters of one lane; a member of the lane. Index 0 is for prioritized ones, 1 for the others.
struct WaitQueue {
  std::array<WaiterList, 2> classes;    // All of them, in the order in which they came.
  std::array<WaiterPlaces, 2> in_line;  // Those that are not set aside.

  struct SetAside {
    // Of a session, in a class. The counts tell at once when none fits.
    struct AtCap {
      WaiterPlaces places;
      WaiterCounts counts;
    };
    WaiterCounts too_large;
    absl::btree_map<SessionSlot, std::array<AtCap, 2>> at_cap;
    absl::btree_set<SessionSlot> to_look_at;  // Sessions whose first waiters may fit again.
  };
  std::unique_ptr<SetAside> set_aside;  // Null while no waiter is set aside.
  // Namespace::levels_changed at the last look at waiters that are set aside: the level, and a cap
  // that is a share of it, may follow the sessions online.
  uint64_t levels_seen = 0;

  uint32_t size() const { return classes[0].size + classes[1].size; }
};

// One token that a group of an acquire_all asks for, or calls of a rate.
struct GroupItem {
  FlowId flow;
  uint32_t count = 0;
  uint32_t position = 0;  // In the request.
  std::optional<ParamValue> param{};
  bool rate = false;
};
// In the order in which Groups looks at lanes.
using WaitingGroup = std::vector<GroupItem>;

struct Waiter {
  WaitTicket ticket;
  LaneRef lane;
  FlowId flow;  // Of the lane.
  SessionSlot session_slot;
  uint32_t count = 0;
  bool prioritized = false;
  uint64_t request_id = 0;  // 0: none.
  int64_t hold_ms = 0;      // 0: the rule's.
  int64_t since_ms = 0;
  int64_t deadline_ms = 0;

  size_t queue_class() const { return prioritized ? 0 : 1; }
};

class WaitQueues {
 public:
  WaitQueues() = default;
  WaitQueues(const WaitQueues&) = delete;
  WaitQueues& operator=(const WaitQueues&) = delete;

  // Adds the waiter at the end of its class in `queue`, which is its lane's.
  WaiterSlot Add(const Waiter& waiter, WaitQueue* queue);
  void Remove(WaiterSlot slot, WaitQueue* queue);
  // The waiter stays in its place, with another ticket and deadline.
  void Readdress(WaiterSlot slot, WaitTicket ticket, int64_t deadline_ms);

  // The waiter moves to the lane of `to`, where it asks for `to.count`. It keeps its number, which
  // gives it its place. The queues are those of the two lanes.
  struct Place {
    LaneRef lane;
    FlowId flow;
    uint32_t count = 0;
  };
  void Move(WaiterSlot slot, WaitQueue* from_queue, const Place& to, WaitQueue* to_queue);
  void SetGroup(WaiterSlot slot, WaitingGroup group);
  // What the waiter asks for if it is a group; null: it asks for one token.
  const WaitingGroup* GroupOf(WaiterSlot slot) const { return nodes_[slot].group.get(); }
  // Waiters are numbered as they come, over all lanes.
  uint64_t NumberOf(WaiterSlot slot) const { return nodes_[slot].number; }

  const Waiter& at(WaiterSlot slot) const { return nodes_[slot].waiter; }
  size_t size() const { return size_; }
  // Memory of all waiters, in bytes: of a waiter itself, and of the items of its group.
  size_t bytes() const { return size_ * kWaiterBytes + group_bytes_; }
  static size_t BytesOf(const WaitingGroup& group);
  // The waiters of a flow, over all its lanes, the oldest first; null: none.
  const WaiterPlaces* OfFlow(const FlowKey& key, FlowSlot slot) const;
  // All flows that have waiters, by id and kind.
  using WaitingFlow = std::pair<FlowKey, FlowSlot>;
  const absl::btree_map<WaitingFlow, WaiterPlaces>& flows() const { return flows_; }
  // The waiter behind it in its class, also one that is set aside; kNoWaiter behind the last.
  WaiterSlot Next(WaiterSlot slot) const { return nodes_[slot].links[kInQueue].next; }

  // The first in line of a class; kNoWaiter if there is none.
  static WaiterSlot First(const WaitQueue& queue, size_t queue_class);
  // REQUIRES: the waiter is in line.
  void SetAsideAsTooLarge(WaiterSlot slot, WaitQueue* queue);
  void SetAsideAtCap(WaiterSlot slot, WaitQueue* queue);
  // Marks the session: its waiters at the cap are to be looked at, see below.
  static void LookAt(SessionSlot session, WaitQueue* queue) {
    if (queue->set_aside != nullptr) queue->set_aside->to_look_at.insert(session);
  }
  // Whether sessions are marked.
  static bool HasToLookAt(const WaitQueue& queue) {
    return queue.set_aside != nullptr && !queue.set_aside->to_look_at.empty();
  }
  // Puts waiters back into line:
  //   ReturnUpTo: those with a count up to `level`;
  //   ReturnFirstOfEach: for every session, the first of each class with a count up to `level` and
  //     up to count_max(session);
  //   ReturnFirstOfThoseToLookAt: the same, for the sessions that LookAt has marked;
  //   ReturnAll: all.
  // A waiter before that first one that fits count_max but not `level` is too large from then on.
  void ReturnUpTo(int64_t level, WaitQueue* queue);
  template <typename CountMax>
  void ReturnFirstOfEach(CountMax count_max, int64_t level, WaitQueue* queue) {
    if (queue->set_aside == nullptr) return;
    std::vector<SessionSlot> sessions;
    for (const auto& [session, places] : queue->set_aside->at_cap) sessions.push_back(session);
    for (const SessionSlot session : sessions) {
      ReturnFirstOf(session, count_max(session), level, queue);
    }
  }
  template <typename CountMax>
  void ReturnFirstOfThoseToLookAt(CountMax count_max, int64_t level, WaitQueue* queue) {
    if (queue->set_aside == nullptr) return;
    for (const SessionSlot session : std::exchange(queue->set_aside->to_look_at, {})) {
      ReturnFirstOf(session, count_max(session), level, queue);
    }
  }
  void ReturnAll(WaitQueue* queue);
  // The cost of waiters that are set aside: how many were looked at for the returns, and at least
  // one for each session.
  uint64_t looks() const { return looks_; }

  uint32_t SizeOf(uint32_t owner) const;
  // One of the owner's waiters, the same until it is removed; kNoWaiter without any.
  WaiterSlot FirstOf(uint32_t owner) const;

  // By deadline; kNoWaiter and INT64_MAX when nobody waits.
  WaiterSlot Earliest() const;
  int64_t earliest_deadline_ms() const;

 private:
  enum Order : uint8_t { kInQueue = 0, kOfOwner = 1 };
  enum class Standing : uint8_t { kInLine, kTooLarge, kAtCap };
  struct Link {
    WaiterSlot previous;
    WaiterSlot next;
  };
  struct Node {
    Waiter waiter;
    uint64_t number = 0;  // In the order in which they came.
    Standing standing = Standing::kInLine;
    std::array<Link, 2> links;
    std::unique_ptr<WaitingGroup> group;
  };

  void JoinFlow(WaiterSlot slot);
  void LeaveFlow(WaiterSlot slot);
  void Append(WaiterList* list, Order order, WaiterSlot slot);
  void InsertByNumber(WaitQueue* queue, WaiterSlot slot);
  void Unlink(WaiterList* list, Order order, WaiterSlot slot);
  void LeaveOwner(WaiterSlot slot);
  void ReturnFirstOf(SessionSlot session, int64_t count_max, int64_t level, WaitQueue* queue);
  void ReturnFirst(const WaitQueue::SetAside::AtCap& waiters, int64_t count_max, int64_t level,
                   WaitQueue* queue);
  void PutInLine(WaiterSlot slot, WaitQueue* queue);
  void LeavePlace(WaiterSlot slot, WaitQueue* queue);

  // With its places in the sets of its lane, its flow and the deadlines.
  static constexpr size_t kWaiterBytes = sizeof(Node) + 128;

  SlotArena<WaiterSlot, Node, 64> nodes_;
  size_t size_ = 0;
  size_t group_bytes_ = 0;
  uint64_t last_number_ = 0;
  uint64_t looks_ = 0;
  absl::flat_hash_map<uint32_t, WaiterList> owners_;
  absl::btree_map<WaitingFlow, WaiterPlaces> flows_;
  absl::btree_set<std::pair<int64_t, WaiterSlot>> deadlines_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_WAIT_QUEUES_H_
