// Lines: connections whose input waits, by what it waits for.
//
// Thread: loop. First come first served. Input that waits for its own replies, its peer
// or the answer to a wrong secret stands in no queue.
#ifndef NOWCALLS_ENGINE_LINES_H_
#define NOWCALLS_ENGINE_LINES_H_

#include <cstddef>

#include "engine/connection.h"
#include "engine/protocol.h"

namespace nowcalls::engine {

// A connection is in one at most.
class ConnectionQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }
  Connection* front() const { return first_; }  // nullptr when empty; so is the next.
  Connection* back() const { return last_; }

  void PushBack(Connection* connection);
  void PushFront(Connection* connection);
  void Remove(Connection* connection);  // REQUIRES: it is in this queue.

 private:
  Connection* first_ = nullptr;
  Connection* last_ = nullptr;
  size_t size_ = 0;
};

class Lines {
 public:
  // REQUIRES: the connection does not wait.
  void Wait(Connection* connection, InputWaits waits);
  void Stop(Connection* connection);
  // The wait may be over.
  void WaitForTurn(Connection* connection);
  void AfterBegin();   // A batch was sealed: the next one has room.
  void AfterCommit();  // A commit made room for long replies.

  const ConnectionQueue& for_turn() const { return for_turn_; }
  const ConnectionQueue& for_work() const { return for_work_; }
  bool turn_is_wanted() const { return !for_turn_.empty() || !for_work_.empty(); }
  bool held() const { return held_ > 0; }  // Input waits for this server, not for a peer.

 private:
  ConnectionQueue* QueueOf(InputWaits waits);

  ConnectionQueue for_turn_;
  ConnectionQueue for_work_;
  ConnectionQueue for_batch_;
  ConnectionQueue for_commit_;
  size_t held_ = 0;  // Connections whose input waits for this server.
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_LINES_H_
