// RequestIds: acquires with a request id that wait or were cancelled, by session and id.
//
// Thread: loop. Cancelled ids are bounded for a session and in all; ids of closed sessions go
// first, then the oldest.
#ifndef NOWCALLS_CORE_TABLES_REQUEST_IDS_H_
#define NOWCALLS_CORE_TABLES_REQUEST_IDS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "core/tables/wait_queues.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class RequestIds {
 public:
  RequestIds(size_t of_session_max, size_t cancelled_max)
      : of_session_max_(of_session_max), cancelled_max_(cancelled_max) {}

  WaiterSlot FindWaiter(SessionId session, uint64_t request_id) const;

  // REQUIRES: request_id is not 0; no waiter of the session has it.
  void AddWaiter(SessionId session, uint64_t request_id, WaiterSlot waiter);
  void RemoveWaiter(SessionId session, uint64_t request_id);

  // Remembers the id until `until_ms`; a second cancel counts anew.
  void Cancel(SessionId session, uint64_t request_id, int64_t until_ms);
  bool IsCancelled(SessionId session, uint64_t request_id, int64_t now_ms) const;
  // Ids of closed sessions, and ids whose time is over.
  void ForgetCancelled(int64_t now_ms, uint32_t entries_max);
  // Of ForgetCancelled; INT64_MAX: no id is remembered.
  int64_t forget_ms() const;
  void ForgetSession(SessionId session);

  size_t cancelled() const { return cancelled_.size(); }

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // Session, request id.

  using Cancelled = std::pair<int64_t, uint64_t>;            // Until when; number of the cancel.
  using CancelOrder = absl::btree_map<Cancelled, uint64_t>;  // The first is forgotten first.

  void ForgetOldestOf(uint64_t session);
  void ForgetOneOfAll();

  const size_t of_session_max_;
  const size_t cancelled_max_;
  absl::flat_hash_map<Key, WaiterSlot> waiters_;
  absl::flat_hash_map<Key, Cancelled> cancelled_;
  absl::flat_hash_map<uint64_t, CancelOrder> cancel_orders_;      // By session; none is empty.
  absl::btree_set<std::pair<int64_t, uint64_t>> oldest_cancels_;  // The oldest of each session.
  uint64_t last_cancel_ = 0;
  std::deque<uint64_t> gone_;  // Closed sessions with an order.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_REQUEST_IDS_H_
