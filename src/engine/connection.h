// Connection: the protocol state of one client connection.
//
// Thread: loop. A quiet connection holds no buffer: those with memory are lent by the engine's
// BufferPool and given back when they are empty.
#ifndef NOWCALLS_ENGINE_CONNECTION_H_
#define NOWCALLS_ENGINE_CONNECTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/token_table.h"
#include "engine/driver.h"
#include "wire/output_buffer.h"
#include "wire/splitter.h"

namespace nowcalls::engine {

// What becomes of a connection. Whatever the state, the driver may report it gone (free).
//
//   free -> open -> ending -> closed -> free
//           open -----------> closed            (Abort: at once, answers are lost)
enum class ConnectionState : uint8_t {
  kFree,    // The id belongs to nobody.
  kOpen,    //
  kEnding,  // Nothing of it is taken any more; it is closed once it has its answers.
  kClosed,  // The engine has closed it; OnDisconnect is still to come.
};

// What an open connection's input waits for; while it waits, the driver does not read. Those that
// wait for a turn, work, the batch or a commit stand in the queue of that name (for_turn, for_work,
// for_batch, for_commit), and in no other.
//
//   kNothing -> any other -> kForTurn -> kNothing, or any other if it still cannot go on
//               kForCommit -> kForWork
enum class InputWaits : uint8_t {
  kNothing,     // Messages are taken as they come.
  kForTurn,     // A place in a turn: it comes round.
  kForWork,     // The same for a listing or another request that is work.
  kForBatch,    // Room in the open batch: BeginCommit.
  kForReplies,  // Its replies, which wait for a commit: OnCommitDone.
  kForCommit,   // Those of others, beside which a long one of its own would be too much: the same.
  kForPeer,     // The peer, which does not read its replies: OnSent.
};

// Commit batches: the open one and the one that is being committed.
inline constexpr size_t kBatches = 2;

struct Connection {
  ConnectionId id = 0;
  ConnectionState state = ConnectionState::kFree;
  InputWaits input_waits = InputWaits::kNothing;
  bool dirty = false;                // In the list of those to be flushed.
  Connection* queue_prev = nullptr;  // Of the ConnectionQueue that it stands in.
  Connection* queue_next = nullptr;
  std::string peer;  // HOST:PORT

  core::SessionSlot session = core::kNoSession;

  wire::MessageSplitter splitter = wire::RequestSplitter();
  // Bytes of a message that is not complete, or not taken yet, behind `input_taken` that are.
  wire::OutputBuffer input;
  size_t input_taken = 0;
  size_t input_counted = 0;  // What the engine's sum holds of it.
  std::optional<Instant> incomplete_since;

  wire::OutputBuffer ready;  // May leave at the end of the turn.
  // Replies that wait for a batch: a buffer for each.
  std::array<wire::OutputBuffer, kBatches> waiting;
  std::array<uint32_t, kBatches> waiting_replies{};
  size_t waiting_bytes = 0;              // Of them all, as Engine::Impl::CountWaiting found it.
  std::optional<uint32_t> backup_msgid;  // Of the backup that it waits for.
  size_t kept = 0;  // Bytes that the driver keeps because the peer does not read them.
  std::optional<Instant> kept_since;  // Since when none of them has left.

  bool open() const { return state == ConnectionState::kOpen; }
  bool closed() const { return state == ConnectionState::kClosed; }
  std::string_view input_left() const { return input.view().substr(input_taken); }
  uint32_t requests_in_flight() const {
    return std::accumulate(waiting_replies.begin(), waiting_replies.end(), 0U);
  }
};

// Connections in a row, first come first served. A connection is in at most one at a time.
class ConnectionQueue {
 public:
  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }

  void PushBack(Connection* connection) {
    connection->queue_prev = last_;
    connection->queue_next = nullptr;
    (last_ == nullptr ? first_ : last_->queue_next) = connection;
    last_ = connection;
    ++size_;
  }

  void PushFront(Connection* connection) {
    connection->queue_prev = nullptr;
    connection->queue_next = first_;
    (first_ == nullptr ? last_ : first_->queue_prev) = connection;
    first_ = connection;
    ++size_;
  }

  // REQUIRES: it is in this queue.
  void Remove(Connection* connection) {
    Connection* prev = std::exchange(connection->queue_prev, nullptr);
    Connection* next = std::exchange(connection->queue_next, nullptr);
    (prev == nullptr ? first_ : prev->queue_next) = next;
    (next == nullptr ? last_ : next->queue_prev) = prev;
    --size_;
  }

  Connection* front() const { return first_; }  // nullptr when it is empty; so is the next.
  Connection* back() const { return last_; }

 private:
  Connection* first_ = nullptr;
  Connection* last_ = nullptr;
  size_t size_ = 0;
};

// Buffers between two uses, so that the hot path allocates nothing and idle connections hold
// nothing.
class BufferPool {
 public:
  // Gives `buffer` memory of an earlier use if it has none.
  void Lend(wire::OutputBuffer* buffer) {
    if (buffer->capacity() > 0 || spare_.empty()) return;
    buffer->swap(spare_.back());
    spare_.pop_back();
  }

  // Takes the memory of an empty buffer back.
  void TakeBack(wire::OutputBuffer* buffer) {
    buffer->Clear();
    if (buffer->capacity() == 0) return;
    if (spare_.size() < kSpareMax && buffer->capacity() <= kCapacityMax) {
      spare_.emplace_back().swap(*buffer);
    } else {
      buffer->ShrinkToEmpty();
    }
  }

 private:
  static constexpr size_t kSpareMax = 512;
  static constexpr size_t kCapacityMax = 64 * 1024;
  std::vector<wire::OutputBuffer> spare_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_CONNECTION_H_
