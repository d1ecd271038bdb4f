#include "engine/lines.h"

#include <utility>

namespace nowcalls::engine {
namespace {

bool IsHeld(InputWaits waits) {
  return waits != InputWaits::kNothing && waits != InputWaits::kForPeer &&
         waits != InputWaits::kForSecret;
}

}  // namespace

void ConnectionQueue::PushBack(Connection* connection) {
  connection->queue_prev = last_;
  connection->queue_next = nullptr;
  (last_ == nullptr ? first_ : last_->queue_next) = connection;
  last_ = connection;
  ++size_;
}

void ConnectionQueue::PushFront(Connection* connection) {
  connection->queue_prev = nullptr;
  connection->queue_next = first_;
  (first_ == nullptr ? last_ : first_->queue_prev) = connection;
  first_ = connection;
  ++size_;
}

void ConnectionQueue::Remove(Connection* connection) {
  Connection* prev = std::exchange(connection->queue_prev, nullptr);
  Connection* next = std::exchange(connection->queue_next, nullptr);
  (prev == nullptr ? first_ : prev->queue_next) = next;
  (next == nullptr ? last_ : next->queue_prev) = prev;
  --size_;
}

ConnectionQueue* Lines::QueueOf(InputWaits waits) {
  switch (waits) {
    case InputWaits::kForTurn: return &for_turn_;
    case InputWaits::kForWork: return &for_work_;
    case InputWaits::kForBatch: return &for_batch_;
    case InputWaits::kForCommit: return &for_commit_;
    default: return nullptr;
  }
}

void Lines::Wait(Connection* connection, InputWaits waits) {
  // held_ counts kForReplies too, which stands in no queue: OnCommitDone finds it by its replies.
  connection->input_waits = waits;
  if (IsHeld(waits)) ++held_;
  if (ConnectionQueue* queue = QueueOf(waits)) queue->PushBack(connection);
}

void Lines::Stop(Connection* connection) {
  if (ConnectionQueue* queue = QueueOf(connection->input_waits)) queue->Remove(connection);
  if (IsHeld(connection->input_waits)) --held_;
  connection->input_waits = InputWaits::kNothing;
}

void Lines::WaitForTurn(Connection* connection) {
  Stop(connection);
  Wait(connection, InputWaits::kForTurn);
}

void Lines::AfterBegin() {
  while (!for_batch_.empty()) WaitForTurn(for_batch_.front());
}

// Connections that wait for a commit came before all that stand in the line for work now: they go
// to its front, last one first, which keeps their order.
void Lines::AfterCommit() {
  while (Connection* connection = for_commit_.back()) {
    for_commit_.Remove(connection);
    connection->input_waits = InputWaits::kForWork;
    for_work_.PushFront(connection);
  }
}

}  // namespace nowcalls::engine
