// CallTable: the calls of a session: those for the next connection, those in flight, their
// deadlines, and those that are finished and not told.
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
  // The call of a caller: gives it its number and, until it is settled, its deadline. A call of the
  // session's own is only queued or sent.
  void Begin(const CallPtr& call, int64_t deadline_ms);
  // Keeps it for the next connection, in the order of the numbers.
  void Queue(const CallPtr& call);
  void Dequeue(const Call& call) { queue_.erase(call.number); }
  std::vector<CallPtr> TakeQueue();
  void Sent(uint32_t msgid, const CallPtr& call) { in_flight_[msgid] = call; }
  // Null: none is in flight under the msgid.
  CallPtr TakeAnswered(uint32_t msgid);
  // In the order of the numbers.
  std::vector<CallPtr> TakeInFlight();

  // The caller's answer is set: nothing changes it any more. False: it was before, or there is no
  // caller.
  bool Settle(const CallPtr& call);
  bool has_finished() const { return !finished_.empty(); }
  std::vector<CallPtr> TakeFinished() { return std::exchange(finished_, {}); }

  // Null: no call's deadline has passed.
  CallPtr NextOverdue(int64_t now_ms) const;
  // INT64_MAX: there is none.
  int64_t NextDeadline() const { return due_.empty() ? INT64_MAX : due_.begin()->first.first; }
  // Not settled, in the order of the numbers.
  std::vector<CallPtr> Unsettled() const;
  size_t unsettled() const { return due_.size(); }
  // Releases and cancels that no server has answered.
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
