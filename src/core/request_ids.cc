#include "core/request_ids.h"

#include <algorithm>
#include <iterator>
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
  const auto [known, is_new] = cancelled_.try_emplace(Key{session.value, request_id}, until_ms);
  if (!is_new && std::exchange(known->second, until_ms) == until_ms) {
    // Cancelled in this very millisecond: were its entry to stay, forgetting that one would forget
    // both.
    const auto twin = std::find(order.rbegin(), order.rend(), std::pair(until_ms, request_id));
    NOWCALLS_CHECK(twin != order.rend());
    order.erase(std::next(twin).base());
    --cancel_entries_;
  }
  if (order.empty()) oldest_cancels_.emplace(until_ms, session.value);
  order.emplace_back(until_ms, request_id);
  ++cancel_entries_;
  if (order.size() > of_session_max_) ForgetOldestOf(session.value);
  if (cancel_entries_ > cancelled_max_) ForgetOneOfAll();
}

bool RequestIds::IsCancelled(SessionId session, uint64_t request_id, int64_t now_ms) const {
  if (cancelled_.empty()) return false;
  const auto it = cancelled_.find(Key{session.value, request_id});
  return it != cancelled_.end() && it->second > now_ms;
}

void RequestIds::ForgetCancelled(int64_t now_ms, uint32_t entries_max) {
  for (; entries_max > 0 && !oldest_cancels_.empty(); --entries_max) {
    if (gone_.empty() && oldest_cancels_.begin()->first > now_ms) return;
    ForgetOneOfAll();
  }
}

int64_t RequestIds::forget_ms() const {
  constexpr int64_t kAfterMs = 1000;
  return oldest_cancels_.empty() ? INT64_MAX : oldest_cancels_.begin()->first + kAfterMs;
}

void RequestIds::ForgetSession(SessionId session) {
  if (cancel_orders_.contains(session.value)) gone_.push_back(session.value);
}

// REQUIRES: there is one.
void RequestIds::ForgetOneOfAll() {
  if (gone_.empty()) return ForgetOldestOf(oldest_cancels_.begin()->second);
  const uint64_t session = gone_.front();
  ForgetOldestOf(session);
  if (!cancel_orders_.contains(session)) gone_.pop_front();
}

void RequestIds::ForgetOldestOf(uint64_t session) {
  const auto order = cancel_orders_.find(session);
  NOWCALLS_CHECK(order != cancel_orders_.end() && !order->second.empty());
  const auto [until_ms, request_id] = order->second.front();
  order->second.pop_front();
  --cancel_entries_;
  const auto it = cancelled_.find(Key{session, request_id});
  if (it != cancelled_.end() && it->second == until_ms) cancelled_.erase(it);
  oldest_cancels_.erase({until_ms, session});
  if (order->second.empty()) {
    cancel_orders_.erase(order);
  } else {
    oldest_cancels_.emplace(order->second.front().first, session);
  }
}

}  // namespace nowcalls::core
