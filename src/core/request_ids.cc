#include "core/request_ids.h"

#include "base/check.h"

namespace nowcalls::core {

TokenSlot RequestIds::FindToken(SessionId session, uint64_t request_id) const {
  const auto it = tokens_.find(Key{session.value, request_id});
  return it == tokens_.end() ? kNoToken : it->second;
}

WaiterSlot RequestIds::FindWaiter(SessionId session, uint64_t request_id) const {
  const auto it = waiters_.find(Key{session.value, request_id});
  return it == waiters_.end() ? kNoWaiter : it->second;
}

uint64_t RequestIds::OfToken(TokenSlot token) const {
  const auto it = request_of_token_.find(token);
  return it == request_of_token_.end() ? 0 : it->second;
}

void RequestIds::AddToken(SessionId session, uint64_t request_id, TokenSlot token) {
  NOWCALLS_CHECK(tokens_.emplace(Key{session.value, request_id}, token).second);
  request_of_token_.emplace(token, request_id);
}

void RequestIds::RemoveToken(SessionId session, TokenSlot token) {
  const auto it = request_of_token_.find(token);
  NOWCALLS_CHECK(it != request_of_token_.end());
  tokens_.erase(Key{session.value, it->second});
  request_of_token_.erase(it);
}

void RequestIds::AddWaiter(SessionId session, uint64_t request_id, WaiterSlot waiter) {
  NOWCALLS_CHECK(waiters_.emplace(Key{session.value, request_id}, waiter).second);
}

void RequestIds::RemoveWaiter(SessionId session, uint64_t request_id) {
  waiters_.erase(Key{session.value, request_id});
}

void RequestIds::Cancel(SessionId session, uint64_t request_id, int64_t until_ms) {
  const Key key{session.value, request_id};
  cancelled_[key] = until_ms;
  cancelled_order_.emplace_back(until_ms, key);
  // An id that is cancelled again stands in the order twice, so that is what is bounded.
  if (cancelled_order_.size() > cancelled_max_) ForgetOldest();
}

bool RequestIds::IsCancelled(SessionId session, uint64_t request_id, int64_t now_ms) const {
  if (cancelled_.empty()) return false;
  const auto it = cancelled_.find(Key{session.value, request_id});
  return it != cancelled_.end() && it->second > now_ms;
}

void RequestIds::ForgetCancelled(int64_t now_ms) {
  while (!cancelled_order_.empty() && cancelled_order_.front().first <= now_ms) ForgetOldest();
}

void RequestIds::ForgetOldest() {
  const auto [until_ms, key] = cancelled_order_.front();
  cancelled_order_.pop_front();
  const auto it = cancelled_.find(key);
  if (it != cancelled_.end() && it->second == until_ms) cancelled_.erase(it);
}

}  // namespace nowcalls::core
