#include "engine/kept_output.h"

namespace nowcalls::engine {

void KeptOutput::Set(Connection* connection, size_t kept, Instant now) {
  // Only a falling number is progress: bytes written behind buffered ones are none.
  const bool progressed = kept < connection->kept;
  if (kept != connection->kept) {
    if (connection->kept > 0) sizes_.erase({connection->kept, connection->id});
    if (kept > 0) sizes_.emplace(kept, connection->id);
  }
  total_ += kept - connection->kept;
  connection->kept = kept;
  // Progress starts the clock of output_stalled_ms anew; an empty buffer has none.
  if (progressed || kept == 0) StopClock(connection);
  if (kept > 0 && !connection->kept_since) {
    connection->kept_since = now;
    stalled_.emplace(now.ms, connection->id);
  }
}

void KeptOutput::StopClock(Connection* connection) {
  if (!connection->kept_since) return;
  stalled_.erase({connection->kept_since->ms, connection->id});
  connection->kept_since.reset();
}

}  // namespace nowcalls::engine
