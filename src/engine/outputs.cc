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

wire::OutputBuffer* Outputs::Immediate(Connection* connection) {
  MarkDirty(connection);
  buffers_->Lend(&connection->ready);
  return &connection->ready;
}

wire::OutputBuffer* Outputs::AfterCommit(Connection* connection) {
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
  if (waiting.empty()) return;
  if (connection->ready.empty()) {
    connection->ready.swap(waiting);
  } else {
    connection->ready.Append(waiting.view());
  }
  buffers_->TakeBack(&waiting);
  Count(connection);
  MarkDirty(connection);
}

// A connection that is aborted may end waits of others, and so make replies for them.
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

// Whether there is something to write. The connection is not dirty any more.
bool Outputs::TakeOutput(Connection* connection) {
  connection->dirty = false;
  return !connection->closed() && !connection->ready.empty();
}

void Outputs::Write() {
  if (outputs_.empty()) return;
  driver_->Write(outputs_);
  for (const Output& output : outputs_) {
    Connection* connection = connections_->Get(output.to);
    SetKept(connection, output.kept);
    buffers_->TakeBack(&connection->ready);
  }
  // A connection that is aborted here may make replies for others, and they may be written at once.
  std::vector<Output> written;
  written.swap(outputs_);
  for (const Output& output : written) {
    Connection* connection = connections_->Get(output.to);
    const size_t queued = connection->kept + connection->waiting_bytes;
    if (queued > limits_.output_bytes_max && !connection->closed()) {
      closing_->Abort(connection,
                      "does not read its replies: " + std::to_string(queued) + " bytes wait");
    }
  }
  written.clear();
  outputs_.swap(written);
}

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

// Once committed, replies lie beside those that sockets do not take.
size_t Outputs::Share() const {
  const size_t total = limits_.output_total_bytes_max;
  return std::max((total - std::min(total, kept_.total())) / kWaitingShares, LeastShare());
}

size_t Outputs::ShareOfOne() const {
  const size_t share = limits_.output_total_bytes_max / kWaitingShares;
  return std::max<size_t>(share / limits_.connections_max, 1);
}

}  // namespace nowcalls::engine
