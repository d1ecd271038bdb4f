// RequestIds: acquires with a request id that wait or were cancelled, by session and id.
//
// Thread: loop. Cancelled ids are kept for a while, so that an acquire overtaken by its own cancel
// is refused; tokens are found by the token table. Cancelled ids are bounded for a session and in
// all. Ids of closed sessions are forgotten first, then the oldest. Memory: an entry a waiter with
// an id, and a cancelled id.
#ifndef NOWCALLS_CORE_REQUEST_IDS_H_
#define NOWCALLS_CORE_REQUEST_IDS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "core/wait_queues.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class RequestIds {
 public:
  RequestIds(size_t of_session_max, size_t cancelled_max)
      : of_session_max_(of_session_max), cancelled_max_(cancelled_max) {}

  // kNoWaiter: none.
  WaiterSlot FindWaiter(SessionId session, uint64_t request_id) const;

  // REQUIRES: request_id is not 0; no waiter of the session has it.
  void AddWaiter(SessionId session, uint64_t request_id, WaiterSlot waiter);
  void RemoveWaiter(SessionId session, uint64_t request_id);

  // Until `until_ms`; a second cancel counts from the second.
  void Cancel(SessionId session, uint64_t request_id, int64_t until_ms);
  bool IsCancelled(SessionId session, uint64_t request_id, int64_t now_ms) const;
  // Forgets ids whose session is closed or whose time is over, oldest first.
  void ForgetCancelled(int64_t now_ms, uint32_t entries_max);
  // When to call ForgetCancelled though nobody cancels; INT64_MAX: no id is remembered.
  int64_t forget_ms() const;
  // The session is closed, and its number not used again. ForgetCancelled then forgets its ids.
  void ForgetSession(SessionId session);

  size_t cancelled() const { return cancelled_.size(); }

 private:
  using Key = std::pair<uint64_t, uint64_t>;  // Session, request id.

  // Until when, and the number of the cancel.
  using Cancelled = std::pair<int64_t, uint64_t>;
  // In the order of forgetting.
  using CancelOrder = absl::btree_map<Cancelled, uint64_t>;

  void ForgetOldestOf(uint64_t session);
  void ForgetOneOfAll();

  const size_t of_session_max_;
  const size_t cancelled_max_;
  absl::flat_hash_map<Key, WaiterSlot> waiters_;
  absl::flat_hash_map<Key, Cancelled> cancelled_;
  absl::flat_hash_map<uint64_t, CancelOrder> cancel_orders_;  // By session; none is empty.
  // The oldest of each session.
  absl::btree_set<std::pair<int64_t, uint64_t>> oldest_cancels_;
  uint64_t last_cancel_ = 0;
  std::deque<uint64_t> gone_;  // Closed sessions with an order.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_REQUEST_IDS_H_
