#include "core/tables/request_ids.h"

#include <utility>

#include "base/check.h"

namespace nowcalls::core {

WaiterSlot RequestIds::FindWaiter(SessionId session, uint64_t request_id) const {
  const auto it = waiters_.find(Key{session.value, request_id});
  return it == waiters_.end() ? kNoWaiter : it->second;
}

void RequestIds::AddWaiter(SessionId session, uint64_t request_id, WaiterSlot waiter) {
  NOWCALLS_CHECK(waiters_.emplace(Key{session.value, request_id}, waiter).second);
}

void RequestIds::RemoveWaiter(SessionId session, uint64_t request_id) {
  waiters_.erase(Key{session.value, request_id});
}

void RequestIds::Cancel(SessionId session, uint64_t request_id, int64_t until_ms) {
  CancelOrder& order = cancel_orders_[session.value];
  // The session's oldest id may change below: out of the order of all, and in again.
  if (!order.empty()) oldest_cancels_.erase({order.begin()->first.first, session.value});
  Cancelled& cancelled = cancelled_[Key{session.value, request_id}];
  // Cancelled before: the new cancel replaces the old.
  if (cancelled.second != 0) order.erase(cancelled);
  cancelled = {until_ms, ++last_cancel_};
  order.emplace(cancelled, request_id);
  oldest_cancels_.emplace(order.begin()->first.first, session.value);
  // The bound of a session first: a client that cancels much loses its own ids, not another's.
  if (order.size() > of_session_max_) ForgetOldestOf(session.value);
  if (cancelled_.size() > cancelled_max_) ForgetOneOfAll();
}

bool RequestIds::IsCancelled(SessionId session, uint64_t request_id, int64_t now_ms) const {
  if (cancelled_.empty()) return false;
  const auto it = cancelled_.find(Key{session.value, request_id});
  return it != cancelled_.end() && it->second.first > now_ms;
}

void RequestIds::ForgetCancelled(int64_t now_ms, uint32_t entries_max) {
  for (; entries_max > 0 && !oldest_cancels_.empty(); --entries_max) {
    // Ids of closed sessions go before their time.
    if (gone_.empty() && oldest_cancels_.begin()->first > now_ms) return;
    ForgetOneOfAll();
  }
}

int64_t RequestIds::forget_ms() const {
  // A second late, so that a call forgets many.
  constexpr int64_t kAfterMs = 1000;
  return oldest_cancels_.empty() ? INT64_MAX : oldest_cancels_.begin()->first + kAfterMs;
}

void RequestIds::ForgetSession(SessionId session) {
  // Many sessions may close at once, so their ids are forgotten in pieces.
  if (cancel_orders_.contains(session.value)) gone_.push_back(session.value);
}

// REQUIRES: an id is remembered.
void RequestIds::ForgetOneOfAll() {
  if (gone_.empty()) return ForgetOldestOf(oldest_cancels_.begin()->second);
  const uint64_t session = gone_.front();
  ForgetOldestOf(session);
  if (!cancel_orders_.contains(session)) gone_.pop_front();
}

void RequestIds::ForgetOldestOf(uint64_t session) {
  const auto order = cancel_orders_.find(session);
  NOWCALLS_CHECK(order != cancel_orders_.end() && !order->second.empty());
  const auto [oldest, request_id] = *order->second.begin();
  order->second.erase(order->second.begin());
  cancelled_.erase(Key{session, request_id});
  oldest_cancels_.erase({oldest.first, session});
  if (order->second.empty()) {
    cancel_orders_.erase(order);
  } else {
    oldest_cancels_.emplace(order->second.begin()->first.first, session);
  }
}

}  // namespace nowcalls::core
