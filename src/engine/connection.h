// Connection: the protocol state of one client connection.
//
// Thread: loop. A quiet connection holds no buffer: those with memory are lent by the engine's
// BufferPool and given back when they are empty.
#ifndef NOWCALLS_ENGINE_CONNECTION_H_
#define NOWCALLS_ENGINE_CONNECTION_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/token_table.h"
#include "engine/driver.h"
#include "wire/output_buffer.h"
#include "wire/splitter.h"

namespace nowcalls::engine {

struct Connection {
  ConnectionId id = 0;
  bool open = false;     // Between OnConnect and OnDisconnect.
  bool ending = false;   // Nothing of it is read any more; it is closed once it has its answers.
  bool closing = false;  // The engine has closed it; OnDisconnect is still to come.
  bool paused = false;   // Reading is off: a limit is reached.
  bool dirty = false;    // In the list of those to be flushed.
  std::string peer;      // HOST:PORT

  core::SessionSlot session = core::kNoSession;

  wire::MessageSplitter splitter = wire::MessageSplitter();
  wire::OutputBuffer input;  // Bytes of a message that is not complete, or not taken yet.
  std::optional<Instant> incomplete_since;

  wire::OutputBuffer ready;  // May leave at the end of the turn.
  // Replies that wait for a batch: one buffer for the open batch, one for the one in flight.
  std::array<wire::OutputBuffer, 2> waiting;
  std::array<uint32_t, 2> waiting_replies{};
  size_t kept = 0;  // Bytes that the driver keeps because the peer does not read them.
  std::optional<Instant> kept_since;  // Since when none of them has left.

  uint32_t requests_in_flight() const { return waiting_replies[0] + waiting_replies[1]; }
  size_t waiting_bytes() const { return waiting[0].size() + waiting[1].size(); }
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
