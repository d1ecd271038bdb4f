// Outputs: replies on their way to the peers.
//
// Thread: loop. A reply is encoded into one of two kinds of buffers of its connection: `ready`,
// which leaves at the end of the turn, or `waiting`, which becomes ready when its batch is durable
// (invariant 1). What the sockets do not take the driver buffers, and KeptOutput counts.
// Connections that let too much pile up are aborted (Closing).
#ifndef NOWCALLS_ENGINE_OUTPUTS_H_
#define NOWCALLS_ENGINE_OUTPUTS_H_

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/limits.h"
#include "engine/batches.h"
#include "engine/buffer_pool.h"
#include "engine/connections.h"
#include "engine/driver.h"
#include "engine/kept_output.h"
#include "wire/output_buffer.h"

namespace nowcalls::engine {

class Closing;

// While the driver buffers this much of a connection, nothing more is taken from it.
inline constexpr size_t kKeptPauseBytes = 256 * 1024;

// Reply bytes that one connection may make in a turn before others get theirs. Small replies never
// reach it; listings do.
inline constexpr size_t kReplyBytesPerTurn = 256 * 1024;

class Outputs {
 public:
  Outputs(const Limits& limits, Driver* driver, Connections* connections, Batches* batches,
          BufferPool* buffers, Closing* closing);

  // Where a reply goes; the caller appends one whole reply, and Count follows.
  // For answers that rest on nothing: errors of the request, and refusals, which stay true enough
  // if the records behind them are lost.
  wire::OutputBuffer* Immediate(Connection* connection);
  // For answers that tell of a record, or of state that records on their way have made.
  wire::OutputBuffer* AfterCommit(Connection* connection);
  // Replies have been added. Costs nothing if none waits.
  void Count(Connection* connection);

  // The batch is durable: its replies are ready. Returns the connections that had some; the list is
  // good until the next call.
  const std::vector<ConnectionId>& Committed(size_t batch);

  // At the end of a turn: one call of the driver for all connections that have something ready.
  void FlushAll();
  bool dirty() const { return !dirty_.empty(); }
  // Now, for one connection.
  void Flush(Connection* connection);

  // The driver buffers `kept` bytes of the connection now.
  void SetKept(Connection* connection, size_t kept);
  // The connection is closed and the driver sees to the rest; its bytes count until they have left.
  void LeaveToDriver(Connection* connection) { kept_.StopClock(connection); }
  // The connection whose peer has read nothing for longest.
  std::optional<SlowPeer> OldestStalled() const { return kept_.OldestStalled(); }
  // The connection is gone, and its replies with it.
  void Forget(Connection* connection);

  // All connections together: at least so many shares of replies wait for commits. A share is
  // max((limit - buffered) / 4, limit / 64) of output_total_bytes_max. With one share no other long
  // reply is made; with two, WaitingMax shrinks. Never true while nothing waits, so that a commit
  // which makes room is to come.
  bool SharesWait(size_t shares) const {
    return waiting_total_ > LeastShare() && waiting_total_ >= shares * Share();
  }
  // What may wait of one connection. Each has a part of its own, so that no connection's replies
  // stop another's.
  size_t WaitingMax() const { return SharesWait(2) ? ShareOfOne() : kReplyBytesPerTurn; }

 private:
  // See "Replies that wait for the disk" in README.md.
  static constexpr size_t kWaitingShares = 4;
  static constexpr size_t kWaitingSharesMax = 64;

  size_t LeastShare() const { return limits_.output_total_bytes_max / kWaitingSharesMax; }
  size_t Share() const;
  size_t ShareOfOne() const;
  void MarkDirty(Connection* connection);
  bool TakeOutput(Connection* connection);
  void Write();
  void BoundKept();
  void MoveToReady(Connection* connection, size_t batch);

  const Limits& limits_;
  Driver* const driver_;
  Connections* const connections_;
  Batches* const batches_;
  BufferPool* const buffers_;
  Closing* const closing_;
  KeptOutput kept_;
  std::vector<ConnectionId> dirty_;
  std::vector<Output> outputs_;  // Of the call that writes them.
  // Connections that have replies waiting for a batch, by batch; the last list that was taken.
  std::array<std::vector<ConnectionId>, Batches::kCount> waiters_;
  std::vector<ConnectionId> taken_waiters_;
  size_t waiting_total_ = 0;  // Bytes of all replies that wait for a commit.
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_OUTPUTS_H_
