// Peers: the connections of a server: accepted, received from, sent to, closed.
//
// Thread: loop. Each closing connection has a deadline.
#ifndef NOWCALLS_SERVER_LOOP_PEERS_H_
#define NOWCALLS_SERVER_LOOP_PEERS_H_

#include <uv.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/time.h"
#include "engine/engine.h"
#include "ledger/clock.h"
#include "net/socket_turn.h"
#include "server/log/server_log.h"
#include "server/loop/handshake_budget.h"
#include "server/loop/listener.h"
#include "server/loop/peer_socket.h"
#include "server/security/tls_port.h"

namespace nowcalls::server {

class Peers final : private PeerSocket::Owner {
 public:
  // For a peer to close its end once all is sent; at the server's end also to read it.
  static constexpr int64_t kCloseMsMax = 2'000;
  // The same at the end of a member that hands over: nobody serves until then.
  static constexpr int64_t kHandOverMsMax = 200;

  // Pointers outlive it.
  Peers(const Limits& limits, net::SocketBatch::Means means, engine::Engine* engine,
        const ledger::Clock* clock, ServerLog* log, TlsPort* tls)
      : limits_(limits), engine_(engine), clock_(clock), log_(log), tls_(tls), sockets_(means) {}

  void SetLimits(const Limits& limits) { limits_ = limits; }

  void Start(uv_loop_t* loop, std::vector<std::unique_ptr<Listener>> listeners);

  // From all sockets found readable since the last call.
  void Receive();
  // As node::Io::TakeMoreToRead.
  bool TakeToRead() { return std::exchange(to_read_, false) || !ended_.empty(); }

  // As engine::Driver.
  void Write(std::span<engine::Output> outputs);
  void Close(engine::ConnectionId id, bool flush);
  void SetReading(engine::ConnectionId id, bool on);

  void CloseOverdue(Instant now);
  // kNever: not before a socket says so.
  Instant NextWork() const { return ended_.empty() ? NextClose() : Instant{0}; }

  // The server ends: no accepts, no reads.
  void StopReading();
  // Closes all, behind their last replies, at `by` whatever is left. REQUIRES: StopReading.
  void CloseAll(Instant by);

  // Closes all at once, without another byte, and accepts no more.
  void Abandon();

  size_t open() const { return open_; }
  // Why sockets cost system calls each; empty: they do not.
  const std::string& why_alone() const { return sockets_.why_alone(); }

 private:
  struct Peer {
    std::unique_ptr<PeerSocket> socket;  // nullptr: this id is free.
    net::Peer is;
    Instant close_by = kNever;  // While it is being closed.
    bool shakes_hands = false;  // Bytes of a handshake have come, and it is not done.
  };

  void OnAccept(int fd, const net::Peer& peer);
  void LogRefused(const std::string& peer, const std::string& reason);
  void LogFailed(engine::ConnectionId id, const std::string& why);
  void Log(const std::string& text, const LogFields& fields);
  Instant NextClose() const;  // The next deadline; kNever: none.
  void SetCloseBy(engine::ConnectionId id, Instant when);
  bool MayReceive(const PeerSocket& socket);
  // For a closing peer that takes nothing.
  int64_t FlushMsMax() const { return ending_ ? kCloseMsMax : limits_.output_stalled_ms; }
  Instant Now() const { return clock_->Now(); }

  // PeerSocket::Owner.
  bool OnReadable(PeerSocket* socket, bool ended) override;
  void OnHandshake(engine::ConnectionId id, const net::Channel& channel, uint64_t took_ns) override;
  void OnBytes(engine::ConnectionId id, std::string_view bytes) override;
  void OnEndOfInput(engine::ConnectionId id) override;
  void OnSent(engine::ConnectionId id, size_t kept) override;
  void OnFlushing(engine::ConnectionId id) override;
  void OnLingering(engine::ConnectionId id) override;
  void OnFailed(engine::ConnectionId id, const std::string& why) override;
  void OnClosed(engine::ConnectionId id) override;

  Limits limits_;
  engine::Engine* const engine_;
  const ledger::Clock* const clock_;
  ServerLog* const log_;
  TlsPort* const tls_;
  uv_loop_t* loop_ = nullptr;
  std::vector<std::unique_ptr<Listener>> listeners_;
  net::SocketTurn sockets_;
  std::vector<Peer> peers_;  // By connection id: the engine numbers them densely.
  size_t open_ = 0;
  HandshakeBudget handshakes_;
  std::deque<engine::ConnectionId> ended_;  // To be received from; another may have the id now.
  size_t ends_ = 0;                         // Received from in this turn.
  std::set<std::pair<int64_t, engine::ConnectionId>> closing_;  // By close_by.
  bool to_read_ = false;
  bool ending_ = false;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOOP_PEERS_H_
