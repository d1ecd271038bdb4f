#include "engine/held_input.h"

#include <algorithm>

namespace nowcalls::engine {
namespace {

// The memory of a few bytes that wait may be more than four times as large.
constexpr size_t kSlackBytes = 2048;

}  // namespace

// Memory moves only when it must, not at each visit.
void HeldInput::Settle(Connection* connection, bool progressed, Instant now) {
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

// The limit is on bytes, so the memory must not be that of a longer message before, or of another
// use.
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

// Input that waits has no such moment: it is the server that does not read.
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
