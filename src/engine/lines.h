// Lines: which connections' input waits, for what, and in which order.
//
// Thread: loop. Input that waits for this server stands in a queue, first come first served: for a
// turn, for work, for the next batch, for a commit. Input that waits for its own replies or for its
// peer stands in none.
#ifndef NOWCALLS_ENGINE_LINES_H_
#define NOWCALLS_ENGINE_LINES_H_

#include <cstddef>

#include "engine/connection.h"
#include "engine/protocol.h"

namespace nowcalls::engine {

// Connections in a row. A connection is in at most one at a time.
class ConnectionQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }
  Connection* front() const { return first_; }  // nullptr when empty; so is the next.
  Connection* back() const { return last_; }

  void PushBack(Connection* connection);
  void PushFront(Connection* connection);
  // REQUIRES: the connection is in this queue.
  void Remove(Connection* connection);

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
  // What the connection waits for may have come. Whether it can go on shows when it has its turn.
  void WaitForTurn(Connection* connection);
  // A batch has begun, so that the next one has room.
  void AfterBegin();
  // A commit has made room for long replies.
  void AfterCommit();

  const ConnectionQueue& for_turn() const { return for_turn_; }
  const ConnectionQueue& for_work() const { return for_work_; }
  // Input waits that the next turn takes.
  bool turn_is_wanted() const { return !for_turn_.empty() || !for_work_.empty(); }
  // Input waits for this server, not for a peer.
  bool held() const { return held_ > 0; }

 private:
  ConnectionQueue* QueueOf(InputWaits waits);

  ConnectionQueue for_turn_;
  ConnectionQueue for_work_;
  ConnectionQueue for_batch_;
  ConnectionQueue for_commit_;
  size_t held_ = 0;  // Connections whose input waits for anything but the peer.
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_LINES_H_
