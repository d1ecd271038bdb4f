#include "client/call_table.h"

#include <algorithm>

namespace nowcalls::client {

void CallTable::Begin(const CallPtr& call, int64_t deadline_ms) {
  call->has_caller = true;
  call->number = ++last_number_;
  call->deadline_ms = deadline_ms;
  // Most calls have the same timeout, so the last one asked is the last one due.
  call->timer = due_.insert(due_.end(), {{deadline_ms, call->number}, call});
}

void CallTable::Queue(const CallPtr& call) {
  if (call->number == 0) call->number = ++last_number_;
  queue_[call->number] = call;
}

void CallTable::Sent(uint32_t msgid, const CallPtr& call) {
  if (call->number == 0) call->number = ++last_number_;
  in_flight_[msgid] = call;
}

std::vector<CallPtr> CallTable::TakeQueue() {
  std::vector<CallPtr> calls;
  calls.reserve(queue_.size());
  for (auto& [number, call] : queue_) calls.push_back(std::move(call));
  queue_.clear();
  return calls;
}

CallPtr CallTable::TakeAnswered(uint32_t msgid) {
  const auto found = in_flight_.find(msgid);
  if (found == in_flight_.end()) return nullptr;
  CallPtr call = std::move(found->second);
  in_flight_.erase(found);
  return call;
}

std::vector<CallPtr> CallTable::TakeInFlight() {
  std::vector<CallPtr> calls;
  calls.reserve(in_flight_.size());
  for (auto& [msgid, call] : in_flight_) calls.push_back(std::move(call));
  in_flight_.clear();
  ByNumber(&calls);
  return calls;
}

bool CallTable::Settle(const CallPtr& call) {
  if (!call->awaited()) return false;
  call->done = true;
  due_.erase(call->timer);
  // A blocking caller only wakes here. Other callbacks are user code: the loop runs them later,
  // without the session's mutex.
  if (call->blocks) {
    call->Notify();
  } else {
    finished_.push_back(call);
  }
  return true;
}

CallPtr CallTable::NextOverdue(int64_t now_ms) const {
  return NextDeadline() > now_ms ? nullptr : due_.begin()->second;
}

std::vector<CallPtr> CallTable::Unsettled() const {
  std::vector<CallPtr> calls;
  calls.reserve(due_.size());
  for (const auto& [when, call] : due_) calls.push_back(call);
  ByNumber(&calls);
  return calls;
}

bool CallTable::has_persistent() const {
  const auto persistent = [](const auto& entry) { return entry.second->persistent(); };
  return std::any_of(queue_.begin(), queue_.end(), persistent) ||
         std::any_of(in_flight_.begin(), in_flight_.end(), persistent);
}

void CallTable::ByNumber(std::vector<CallPtr>* calls) {
  std::sort(calls->begin(), calls->end(),
            [](const CallPtr& a, const CallPtr& b) { return a->number < b->number; });
}

}  // namespace nowcalls::client
