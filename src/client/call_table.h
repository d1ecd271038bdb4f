// CallTable: the calls of a session: queued, in flight, by deadline, and finished but not told.
//
// Thread: the session's.
#ifndef NOWCALLS_CLIENT_CALL_TABLE_H_
#define NOWCALLS_CLIENT_CALL_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/call.h"

namespace nowcalls::client {

class CallTable {
 public:
  // Sets number and deadline. The session's own calls skip it.
  void Begin(const CallPtr& call, int64_t deadline_ms);
  // For the next connection, in order of numbers.
  void Queue(const CallPtr& call);
  void Dequeue(const Call& call) { queue_.erase(call.number); }
  std::vector<CallPtr> TakeQueue();
  void Sent(uint32_t msgid, const CallPtr& call);
  // Null: not in flight.
  CallPtr TakeAnswered(uint32_t msgid);
  // In order of numbers.
  std::vector<CallPtr> TakeInFlight();

  // Makes the caller's answer final. False: it was, or there is no caller.
  bool Settle(const CallPtr& call);
  bool has_finished() const { return !finished_.empty(); }
  std::vector<CallPtr> TakeFinished() { return std::exchange(finished_, {}); }

  // Null: none.
  CallPtr NextOverdue(int64_t now_ms) const;
  // INT64_MAX: none.
  int64_t NextDeadline() const { return due_.empty() ? INT64_MAX : due_.begin()->first.first; }
  // In order of numbers.
  std::vector<CallPtr> Unsettled() const;
  size_t unsettled() const { return due_.size(); }
  // Unanswered releases and cancels.
  bool has_persistent() const;

 private:
  static void ByNumber(std::vector<CallPtr>* calls);

  uint64_t last_number_ = 0;
  std::map<uint64_t, CallPtr> queue_;
  std::unordered_map<uint32_t, CallPtr> in_flight_;
  std::map<std::pair<int64_t, uint64_t>, CallPtr> due_;  // By deadline and number.
  std::vector<CallPtr> finished_;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_CALL_TABLE_H_
