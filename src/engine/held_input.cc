#include "engine/held_input.h"

#include <algorithm>

namespace nowcalls::engine {
namespace {

// Memory that even a few waiting bytes may keep.
constexpr size_t kSlackBytes = 2048;

}  // namespace

void HeldInput::Settle(Connection* connection, bool progressed, Instant now) {
  // All is taken: the memory goes back to the pool. Input that waits for its turn stays in place:
  // moving the rest at each visit would cost its length each time.
  if (connection->input_taken == connection->input.size()) {
    buffers_->TakeBack(&connection->input);
    connection->input_taken = 0;
  } else if (connection->input_waits == InputWaits::kNothing) {
    connection->input.Consume(std::exchange(connection->input_taken, 0));
  }
  Fit(connection);
  Count(connection);
  NoteIncomplete(connection, progressed, now);
}

void HeldInput::Drop(Connection* connection, Instant now) {
  buffers_->TakeBack(&connection->input);
  connection->input_taken = 0;
  Count(connection);
  NoteIncomplete(connection, /*progressed=*/true, now);
}

// input_total_bytes_max counts bytes. The first byte of a message would keep the 64 KiB of the
// message before it, so memory is at most four times the bytes, or kSlackBytes.
void HeldInput::Fit(Connection* connection) {
  const std::string_view left = connection->input_left();
  const size_t fitting = std::max(kSlackBytes, 4 * left.size());
  if (connection->input.capacity() <= fitting) return;
  wire::OutputBuffer input;
  input.Append(left);
  input.swap(connection->input);
  connection->input_taken = 0;
  buffers_->TakeBack(&input);
}

void HeldInput::Count(Connection* connection) {
  const size_t size = connection->input.size();
  const size_t counted = std::exchange(connection->input_counted, size);
  if (size == counted) return;
  if (counted > 0) sizes_.erase({counted, connection->id});
  if (size > 0) sizes_.emplace(size, connection->id);
  total_ += size - counted;
}

// message_incomplete_ms runs only while the peer owes bytes. Input that waits for the server has no
// such moment; a message taken starts the clock anew.
void HeldInput::NoteIncomplete(Connection* connection, bool progressed, Instant now) {
  const bool due = connection->open() && connection->input_waits == InputWaits::kNothing &&
                   !connection->input.empty();
  if (connection->incomplete_since && (progressed || !due)) {
    incomplete_.erase({connection->incomplete_since->ms, connection->id});
    connection->incomplete_since.reset();
  }
  if (due && !connection->incomplete_since) {
    connection->incomplete_since = now;
    incomplete_.emplace(now.ms, connection->id);
  }
}

}  // namespace nowcalls::engine
