// Connection: the state of one client connection, of any protocol.
//
// Thread: loop. Only the class named above a group of members writes them.
#ifndef NOWCALLS_ENGINE_CONNECTION_H_
#define NOWCALLS_ENGINE_CONNECTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "access/gate.h"
#include "base/time.h"
#include "core/tables/token_table.h"
#include "engine/batches.h"
#include "engine/driver.h"
#include "engine/protocol.h"
#include "net/peer.h"
#include "wire/output_buffer.h"

namespace nowcalls::engine {

// In every state but kFree the driver may call OnDisconnect (-> free).
//
//   free -> open -> ending -> closed -> free
//           open -----------> closed            (Closing::Abort: at once, answers are lost)
enum class ConnectionState : uint8_t {
  kFree,    // The id belongs to no connection.
  kOpen,    //
  kEnding,  // No more input is taken; the connection closes once it has its answers.
  kClosed,  // The engine has closed it; OnDisconnect is still to come.
};

// Of a connection that the server does not know.
struct Stranger {
  uint64_t number = 0;  // By arrival.
  Instant since{};
  std::string origin{};  // net::OriginOf.
  size_t in = 0;         // Bytes of messages taken.
  size_t out = 0;        // Bytes of answers made.
};

struct Connection {
  // Connections.
  ConnectionId id = 0;
  net::Peer peer;

  // Identities.
  access::Identity identity;
  uint32_t wrong_secrets = 0;                 // That it has shown.
  std::optional<Instant> wrong_secret_until;  // When the answer to one is due; no input until then.

  // Strangers; null: the server knows it.
  std::unique_ptr<Stranger> stranger;

  // Closing.
  ConnectionState state = ConnectionState::kFree;

  // Inputs makes the protocol, which writes the members below; Closing resets the session.
  std::unique_ptr<Protocol> protocol;
  core::SessionSlot session = core::kNoSession;
  bool owes_answer = false;  // An answer that no commit brings: a backup's.
  bool wants_terms = false;  // Of its tokens: see `hello` in wire/PROTOCOL.md.

  // Lines. The driver does not read while input waits.
  InputWaits input_waits = InputWaits::kNothing;
  Connection* queue_prev = nullptr;  // Of the ConnectionQueue in which it stands.
  Connection* queue_next = nullptr;

  // Inputs and HeldInput. The first `input_taken` bytes of `input` are done with.
  bool in_message = false;  // The protocol has seen the beginning of a message, but not its end.
  wire::OutputBuffer input;
  size_t input_taken = 0;
  size_t input_counted = 0;  // Its share of HeldInput's sum.
  std::optional<Instant> incomplete_since;

  // Outputs.
  bool dirty = false;        // In the list of connections to flush.
  wire::OutputBuffer ready;  // Leaves at the end of the turn.
  // Replies waiting for a commit, and their number, by batch.
  std::array<wire::OutputBuffer, Batches::kCount> waiting;
  std::array<uint32_t, Batches::kCount> waiting_replies{};
  size_t waiting_bytes = 0;  // Of all `waiting`, as Outputs counted last.

  // KeptOutput.
  size_t kept = 0;                    // Bytes that the driver buffers: the peer does not read.
  std::optional<Instant> kept_since;  // When the last of them left, or when the first came.

  bool open() const { return state == ConnectionState::kOpen; }
  bool closed() const { return state == ConnectionState::kClosed; }
  std::string_view input_left() const { return input.view().substr(input_taken); }
  uint32_t requests_in_flight() const {
    return std::accumulate(waiting_replies.begin(), waiting_replies.end(), 0U);
  }
};

struct SlowPeer {
  Instant since;  // The server waits for the peer since then.
  ConnectionId id = 0;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_CONNECTION_H_
