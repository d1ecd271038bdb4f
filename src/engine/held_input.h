// HeldInput: bytes that have arrived and are not taken yet.
//
// Thread: loop. Inputs keeps the bound.
#ifndef NOWCALLS_ENGINE_HELD_INPUT_H_
#define NOWCALLS_ENGINE_HELD_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/btree_set.h"
#include "base/time.h"
#include "engine/buffer_pool.h"
#include "engine/connection.h"

namespace nowcalls::engine {

class HeldInput {
 public:
  explicit HeldInput(BufferPool* buffers) : buffers_(buffers) {}

  void Append(Connection* connection, std::string_view bytes) {
    buffers_->Lend(&connection->input);
    connection->input.Append(bytes);
  }
  // Call after bytes were added or taken. `progressed`: a message was taken since.
  void Settle(Connection* connection, bool progressed, Instant now);
  void Drop(Connection* connection, Instant now);  // REQUIRES: the connection does not wait.

  size_t total() const { return total_; }
  // REQUIRES: total() > 0.
  std::pair<size_t, ConnectionId> Most() const { return *sizes_.rbegin(); }
  // The message incomplete for longest; nullopt: none.
  std::optional<SlowPeer> OldestIncomplete() const {
    if (incomplete_.empty()) return std::nullopt;
    return SlowPeer{Instant{incomplete_.begin()->first}, incomplete_.begin()->second};
  }

 private:
  void Fit(Connection* connection);
  void Count(Connection* connection);
  void NoteIncomplete(Connection* connection, bool progressed, Instant now);

  BufferPool* const buffers_;
  size_t total_ = 0;
  absl::btree_set<std::pair<size_t, ConnectionId>> sizes_;
  absl::btree_set<std::pair<int64_t, ConnectionId>> incomplete_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_HELD_INPUT_H_
