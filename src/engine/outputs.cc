#include "engine/outputs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/closing.h"

namespace nowcalls::engine {
Outputs::Outputs(const Limits& limits, Driver* driver, Connections* connections, Batches* batches,
                 BufferPool* buffers, Closing* closing)
    : limits_(limits),
      driver_(driver),
      connections_(connections),
      batches_(batches),
      buffers_(buffers),
      closing_(closing) {}

// Refusals may leave at once: they stay true enough if a crash loses the records behind them.
wire::OutputBuffer* Outputs::Immediate(Connection* connection) {
  MarkDirty(connection);
  buffers_->Lend(&connection->ready);
  return &connection->ready;
}

// Invariant 1: the reply waits for the last batch that may hold a record it rests on.
wire::OutputBuffer* Outputs::AfterCommit(Connection* connection) {
  // Nothing is undurable: no commit would release the reply.
  const std::optional<size_t> batch = batches_->Undurable();
  if (!batch.has_value()) return Immediate(connection);
  if (connection->waiting_replies[*batch]++ == 0) waiters_[*batch].push_back(connection->id);
  buffers_->Lend(&connection->waiting[*batch]);
  return &connection->waiting[*batch];
}

void Outputs::Count(Connection* connection) {
  size_t bytes = 0;
  for (const wire::OutputBuffer& waiting : connection->waiting) bytes += waiting.size();
  waiting_total_ += bytes - std::exchange(connection->waiting_bytes, bytes);
}

void Outputs::MarkDirty(Connection* connection) {
  if (connection->dirty) return;
  connection->dirty = true;
  dirty_.push_back(connection->id);
}

const std::vector<ConnectionId>& Outputs::Committed(size_t batch) {
  taken_waiters_.clear();
  taken_waiters_.swap(waiters_[batch]);
  for (const ConnectionId id : taken_waiters_) MoveToReady(connections_->Get(id), batch);
  return taken_waiters_;
}

void Outputs::MoveToReady(Connection* connection, size_t batch) {
  wire::OutputBuffer& waiting = connection->waiting[batch];
  connection->waiting_replies[batch] = 0;
  // The connection of this id may be gone, or the id another's by now.
  if (waiting.empty()) return;
  // Mostly the buffer changes its owner and nothing is copied.
  if (connection->ready.empty()) {
    connection->ready.swap(waiting);
  } else {
    connection->ready.Append(waiting.view());
  }
  buffers_->TakeBack(&waiting);
  Count(connection);
  MarkDirty(connection);
}

// Aborting a connection ends its session and frees waiters of others, whose answers make more
// connections dirty. Each round aborts at least one or is the last.
void Outputs::FlushAll() {
  while (!dirty_.empty()) {
    for (const ConnectionId id : dirty_) {
      Connection* connection = connections_->Get(id);
      if (connection->dirty && TakeOutput(connection)) {
        outputs_.push_back({id, connection->ready.view(), 0});
      }
    }
    dirty_.clear();
    Write();
    BoundKept();
  }
}

void Outputs::Flush(Connection* connection) {
  if (!TakeOutput(connection)) return;
  outputs_.push_back({connection->id, connection->ready.view(), 0});
  Write();
}

// Whether there is something to write: nothing for a closed connection.
bool Outputs::TakeOutput(Connection* connection) {
  connection->dirty = false;
  return !connection->closed() && !connection->ready.empty();
}

void Outputs::Write() {
  if (outputs_.empty()) return;
  driver_->Write(outputs_);
  // The driver has sent or copied all bytes: buffers go back before a connection is aborted.
  for (const Output& output : outputs_) {
    Connection* connection = connections_->Get(output.to);
    SetKept(connection, output.kept);
    buffers_->TakeBack(&connection->ready);
  }
  // Abort may make replies for others. A nested Write must not see this list: it is taken out of
  // outputs_ first, and its memory comes back after.
  std::vector<Output> written;
  written.swap(outputs_);
  for (const Output& output : written) {
    Connection* connection = connections_->Get(output.to);
    // Replies that wait for a commit count: they will lie beside the buffered ones.
    const size_t queued = connection->kept + connection->waiting_bytes;
    if (queued > limits_.output_bytes_max && !connection->closed()) {
      closing_->Abort(connection,
                      "does not read its replies: " + std::to_string(queued) + " bytes wait");
    }
  }
  written.clear();
  outputs_.swap(written);
}

// Invariant 8. As for input, the connection that holds most is closed; Abort sets its kept to 0.
void Outputs::BoundKept() {
  while (kept_.total() > limits_.output_total_bytes_max) {
    const auto [size, id] = kept_.Most();
    closing_->Abort(connections_->Get(id),
                    "does not read its replies: " + std::to_string(size) +
                        " bytes wait, the most of all connections, which together exceed " +
                        std::to_string(limits_.output_total_bytes_max));
  }
}

void Outputs::SetKept(Connection* connection, size_t kept) {
  kept_.Set(connection, kept, batches_->now());
}

void Outputs::Forget(Connection* connection) {
  SetKept(connection, 0);
  buffers_->TakeBack(&connection->ready);
  for (wire::OutputBuffer& waiting : connection->waiting) buffers_->TakeBack(&waiting);
  Count(connection);
}

// Once committed, replies lie beside the bytes that sockets do not take: buffered bytes leave less
// room for waiting ones.
size_t Outputs::Share() const {
  const size_t total = limits_.output_total_bytes_max;
  return std::max((total - std::min(total, kept_.total())) / kWaitingShares, LeastShare());
}

// A connection's part of the third share, when two wait already: each has its own, so that no
// connection's replies stop another's.
size_t Outputs::ShareOfOne() const {
  const size_t share = limits_.output_total_bytes_max / kWaitingShares;
  return std::max<size_t>(share / limits_.connections_max, 1);
}

}  // namespace nowcalls::engine
