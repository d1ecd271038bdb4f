// WaitQueues: acquires that wait for room, in the order of their grants.
//
// Thread: loop. A lane (core/tables/lane.h) has two queues, of prioritized and of other waiters,
// each by arrival. Waiters that room cannot help are set aside: above the level, or at their
// session's cap.
//
// Slots are stable and reused.
#ifndef NOWCALLS_CORE_TABLES_WAIT_QUEUES_H_
#define NOWCALLS_CORE_TABLES_WAIT_QUEUES_H_

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
#include "core/tables/slot.h"
#include "core/tables/slot_arena.h"
#include "nowcalls/param.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

struct WaiterList {
  WaiterSlot head;
  WaiterSlot tail;
  uint32_t size = 0;
};

// By Node::number, and by count.
using WaiterPlaces = absl::btree_set<std::pair<uint64_t, WaiterSlot>>;
using WaiterCounts = absl::btree_set<std::pair<uint32_t, WaiterSlot>>;

// A member of its lane. Index 0: prioritized, 1: others.
struct WaitQueue {
  std::array<WaiterList, 2> classes;    // All, in order of arrival.
  std::array<WaiterPlaces, 2> in_line;  // Not set aside.

  struct SetAside {
    // Of a session, in a class.
    struct AtCap {
      WaiterPlaces places;
      WaiterCounts counts;
    };
    WaiterCounts too_large;
    absl::btree_map<SessionSlot, std::array<AtCap, 2>> at_cap;
    absl::btree_set<SessionSlot> to_look_at;  // Sessions whose first waiters may fit again.
  };
  std::unique_ptr<SetAside> set_aside;  // Null while no waiter is set aside.
  // Namespace::levels_changed at the last look at waiters set aside.
  uint64_t levels_seen = 0;

  uint32_t size() const { return classes[0].size + classes[1].size; }
};

// An item of an acquire_all: a token, or calls of a rate.
struct GroupItem {
  FlowId flow;
  uint32_t count = 0;
  uint32_t position = 0;  // In the request.
  std::optional<ParamValue> param{};
  bool rate = false;
  uint32_t name_space = 0;  // Namespace::number of the rule that was asked.
};
// Ordered as Groups looks at lanes.
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

  // `queue` is always that of the waiter's lane.
  WaiterSlot Add(const Waiter& waiter, WaitQueue* queue);
  void Remove(WaiterSlot slot, WaitQueue* queue);
  void Readdress(WaiterSlot slot, WaitTicket ticket, int64_t deadline_ms);

  // Of Move: the waiter keeps its number.
  struct Place {
    LaneRef lane;
    FlowId flow;
    uint32_t count = 0;
  };
  void Move(WaiterSlot slot, WaitQueue* from_queue, const Place& to, WaitQueue* to_queue);
  void SetGroup(WaiterSlot slot, WaitingGroup group);
  // Null: no group.
  const WaitingGroup* GroupOf(WaiterSlot slot) const { return nodes_[slot].group.get(); }
  // By arrival, over all lanes.
  uint64_t NumberOf(WaiterSlot slot) const { return nodes_[slot].number; }

  const Waiter& at(WaiterSlot slot) const { return nodes_[slot].waiter; }
  size_t size() const { return size_; }
  // Of all waiters, and of the items of their groups.
  size_t bytes() const { return size_ * kWaiterBytes + group_bytes_; }
  static size_t BytesOf(const WaitingGroup& group);
  // Over all lanes, the oldest first; null: none.
  const WaiterPlaces* OfFlow(const FlowKey& key, FlowSlot slot) const;
  using WaitingFlow = std::pair<FlowKey, FlowSlot>;  // By id and kind.
  const absl::btree_map<WaitingFlow, WaiterPlaces>& flows() const { return flows_; }
  // The next in its class, set aside or not.
  WaiterSlot Next(WaiterSlot slot) const { return nodes_[slot].links[kInQueue].next; }

  static WaiterSlot First(const WaitQueue& queue, size_t queue_class);
  void SetAsideAsTooLarge(WaiterSlot slot, WaitQueue* queue);
  void SetAsideAtCap(WaiterSlot slot, WaitQueue* queue);
  // Marks the session for ReturnFirstOfThoseToLookAt.
  static void LookAt(SessionSlot session, WaitQueue* queue) {
    if (queue->set_aside != nullptr) queue->set_aside->to_look_at.insert(session);
  }
  static bool HasToLookAt(const WaitQueue& queue) {
    return queue.set_aside != nullptr && !queue.set_aside->to_look_at.empty();
  }
  // Return waiters to the line:
  //   ReturnUpTo: of those above the level, counts up to `level`;
  //   ReturnFirstOfEach: of each session and class, the first at the cap with a count up to
  //     `level` and count_max(session);
  //   ReturnFirstOfThoseToLookAt: the same, of marked sessions.
  // A waiter that only `level` stops on the way is above the level from then on.
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
  // Waiters looked at for returns and moves, at least 1 a session.
  uint64_t looks() const { return looks_; }

  uint32_t SizeOf(uint32_t owner) const;
  // A waiter of the owner, the same until its removal.
  WaiterSlot FirstOf(uint32_t owner) const;

  // INT64_MAX: no waiters.
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
    uint64_t number = 0;  // Order of arrival.
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

  static constexpr size_t kWaiterBytes = sizeof(Node) + 128;  // With its places in sets.

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

#endif  // NOWCALLS_CORE_TABLES_WAIT_QUEUES_H_
