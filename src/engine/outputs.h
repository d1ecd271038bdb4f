// Outputs: replies on their way.
//
// Thread: loop. `ready` replies leave at the end of the turn; `waiting` ones become ready when
// their batch is durable. Connections that let too much pile up are aborted.
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

// While the driver buffers this much of a connection, its input waits.
inline constexpr size_t kKeptPauseBytes = 256 * 1024;

// Of one connection in a turn. Only listings reach it.
inline constexpr size_t kReplyBytesPerTurn = 256 * 1024;

class Outputs {
 public:
  Outputs(const Limits& limits, Driver* driver, Connections* connections, Batches* batches,
          BufferPool* buffers, Closing* closing);

  // Append one whole reply, then call Count. For errors of the request, and refusals.
  wire::OutputBuffer* Immediate(Connection* connection);
  // For answers that rest on a record, or on state that records on their way have made.
  wire::OutputBuffer* AfterCommit(Connection* connection);
  void Count(Connection* connection);

  // The batch is durable. Returns the connections with replies of it; valid until the next call.
  const std::vector<ConnectionId>& Committed(size_t batch);

  void FlushAll();
  bool dirty() const { return !dirty_.empty(); }
  void Flush(Connection* connection);  // At once.

  void SetKept(Connection* connection, size_t kept);  // Bytes that the driver buffers now.
  // The driver closes it; its bytes count until they have left.
  void LeaveToDriver(Connection* connection) { kept_.StopClock(connection); }
  std::optional<SlowPeer> OldestStalled() const { return kept_.OldestStalled(); }
  void Forget(Connection* connection);  // Drops all replies.

  // Whether replies that wait for commits reach `shares` shares:
  //   share = max((limit - buffered) / 4, limit / 64), limit = output_total_bytes_max
  // One: no other long reply is made. Two: WaitingMax shrinks. Never while nothing waits.
  bool SharesWait(size_t shares) const {
    return waiting_total_ > LeastShare() && waiting_total_ >= shares * Share();
  }
  // Bytes that may wait of one connection.
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
  // Connections with waiting replies, by batch; the last list taken.
  std::array<std::vector<ConnectionId>, Batches::kCount> waiters_;
  std::vector<ConnectionId> taken_waiters_;
  size_t waiting_total_ = 0;  // Bytes of all replies that wait for a commit.
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_OUTPUTS_H_
