#include "server/loop/peers.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "net/address.h"
#include "net/channel.h"

namespace nowcalls::server {
namespace {

// For connections from this machine: clients that open all others must not lock the operator out. A
// tenth, if that is less.
constexpr uint32_t kReservedConnections = 16;

constexpr size_t kEndsPerTurn = 64;

}  // namespace

void Peers::Start(uv_loop_t* loop, std::vector<std::unique_ptr<Listener>> listeners) {
  loop_ = loop;
  listeners_ = std::move(listeners);
  for (const auto& listener : listeners_) {
    listener->Start(
        loop, [this](int fd, const net::Peer& peer) { OnAccept(fd, peer); },
        [this](const std::string& reason) { Log(reason, {}); });
  }
}

void Peers::OnAccept(int fd, const net::Peer& peer) {
  // A new connection often has a request already.
  to_read_ = true;
  const uint32_t connections_max = limits_.connections_max;
  const uint32_t reserved = std::min(kReservedConnections, connections_max / 10);
  // 1. A place, and an id of the engine.
  const bool room = open_ + reserved < connections_max || net::IsFromThisHost(fd);
  const bool is_unix = peer.host.empty();
  net::Peer known = peer;
  known.shakes_hands = !is_unix && !tls_->MayBePlain(peer);
  const auto id = room ? engine_->OnConnect(known, Now()) : std::nullopt;
  if (!id.has_value()) {
    close(fd);
    return LogRefused(peer.name, "connections-max is " + std::to_string(connections_max) +
                                     ", of which " + std::to_string(reserved) +
                                     " are for this machine");
  }
  // 2. A socket. The engine hears of a connection that failed here, too: its id is free again.
  auto socket = PeerSocket::Open(
      loop_, fd, is_unix ? net::PlainChannel::Make() : tls_->MakeChannel(peer), *id, this);
  if (socket == nullptr) {
    engine_->OnDisconnect(*id, Now());
    return LogRefused(peer.name, "the system has no memory to watch it");
  }
  if (*id >= peers_.size()) peers_.resize(*id + 1);
  NOWCALLS_CHECK(peers_[*id].socket == nullptr);
  ++open_;
  spdlog::debug("connection {} from {}, {} are open", *id, peer.name, open_);
  peers_[*id].socket = std::move(socket);
  peers_[*id].is = std::move(known);
}

void Peers::LogRefused(const std::string& peer, const std::string& reason) {
  Log("refused a connection from " + peer + ": " + reason, {{"peer", peer}, {"reason", reason}});
}

void Peers::Log(const std::string& text, const LogFields& fields) {
  log_->Write(Severity::kWarn, LogTopic::kPeer, text, fields, Now());
}

void Peers::Write(std::span<engine::Output> outputs) {
  for (const engine::Output& output : outputs) {
    peers_[output.to].socket->Send(output.bytes, &sockets_);
  }
  // One list of sends; afterwards each socket knows what it kept.
  sockets_.SendAll();
  for (engine::Output& output : outputs) output.kept = peers_[output.to].socket->kept();
}

void Peers::Close(engine::ConnectionId id, bool flush) {
  if (!flush) return peers_[id].socket->CloseNow();
  // The deadline first: with nothing kept, CloseAfterFlush lingers at once, which shortens it.
  SetCloseBy(id, Now() + FlushMsMax());
  peers_[id].socket->CloseAfterFlush();
}

void Peers::SetReading(engine::ConnectionId id, bool on) {
  // At the end nothing is read any more, whatever the engine asks.
  if (on && ending_) return;
  to_read_ |= on;
  peers_[id].socket->SetReading(on);
}

void Peers::CloseOverdue(Instant now) {
  while (NextClose() <= now) {
    const engine::ConnectionId id = closing_.begin()->second;
    // Taken off the list before the close, so that the loop ends.
    SetCloseBy(id, kNever);
    peers_[id].socket->CloseNow();
  }
}

Instant Peers::NextClose() const {
  return closing_.empty() ? kNever : Instant{closing_.begin()->first};
}

void Peers::SetCloseBy(engine::ConnectionId id, Instant when) {
  Peer& peer = peers_[id];
  if (peer.close_by != kNever) closing_.erase({peer.close_by.ms, id});
  if (when != kNever) closing_.emplace(when.ms, id);
  peer.close_by = when;
}

// Twice of a server that is deposed while it ends.
void Peers::StopReading() {
  if (std::exchange(ending_, true)) return;
  for (const auto& listener : listeners_) listener->Close();
  // Input in the kernel stays there; the clients see their connection close.
  for (const Peer& peer : peers_) {
    if (peer.socket != nullptr) peer.socket->SetReading(false);
  }
}

void Peers::CloseAll(Instant by) {
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].socket == nullptr) continue;
    const auto id = static_cast<engine::ConnectionId>(i);
    const bool closes = peers_[i].socket->closes();
    // A connection that closes already keeps its deadline, if that is earlier.
    SetCloseBy(id, std::min(peers_[i].close_by, by));
    if (!closes) peers_[i].socket->CloseWhenFlushed();
  }
}

void Peers::Abandon() {
  StopReading();
  for (const Peer& peer : peers_) {
    if (peer.socket != nullptr) peer.socket->CloseNow();
  }
}

void Peers::Receive() {
  sockets_.Receive();
  handshakes_.BeginTurn();
  for (ends_ = 0; ends_ < kEndsPerTurn && !ended_.empty(); ++ends_) {
    const engine::ConnectionId id = ended_.front();
    ended_.pop_front();
    PeerSocket* const socket = peers_[id].socket.get();
    if (socket == nullptr) continue;
    if (MayReceive(*socket)) {
      sockets_.Readable(socket);
    } else {
      ended_.push_back(id);
    }
  }
  if (ends_ > 0) sockets_.Receive();
}

bool Peers::MayReceive(const PeerSocket& socket) {
  return !tls_->on() || !socket.shakes_hands() || handshakes_.Take();
}

// A crowd that leaves or shakes hands must not hold up those that are served. Ends, of 20 to 40 us
// each, wait in a list; a socket that shakes hands is found readable again in the next turn.
bool Peers::OnReadable(PeerSocket* socket, bool ended) {
  if (ended && ++ends_ > kEndsPerTurn) {
    ended_.push_back(socket->id());
    return true;
  }
  if (!MayReceive(*socket)) return false;
  sockets_.Readable(socket);
  return true;
}

void Peers::OnHandshake(engine::ConnectionId id, const net::Channel& channel, uint64_t took_ns) {
  if (tls_->on()) handshakes_.Took(took_ns);
  Peer& peer = peers_[id];
  peer.shakes_hands = channel.shakes_hands();
  if (peer.shakes_hands) {
    // One that might have been plain is nobody from its first byte on.
    if (!std::exchange(peer.is.shakes_hands, true)) engine_->OnIdentity(id, peer.is, Now());
    return;
  }
  if (!channel.encrypted()) return;
  tls_->CountHandshake(/*done=*/true);
  peer.is.shakes_hands = false;
  peer.is.encrypted = true;
  peer.is.certificate = channel.peer();
  engine_->OnIdentity(id, peer.is, Now());
}

void Peers::OnBytes(engine::ConnectionId id, std::string_view bytes) {
  engine_->OnBytes(id, bytes, Now());
}

void Peers::OnEndOfInput(engine::ConnectionId id) { engine_->OnEndOfInput(id, Now()); }

void Peers::OnSent(engine::ConnectionId id, size_t kept) { engine_->OnSent(id, kept, Now()); }

void Peers::OnFlushing(engine::ConnectionId id) {
  // Each progress renews the deadline; at the end of the server it does not.
  if (!ending_) SetCloseBy(id, Now() + FlushMsMax());
}

void Peers::OnLingering(engine::ConnectionId id) {
  SetCloseBy(id, std::min(peers_[id].close_by, Now() + kCloseMsMax));
}

void Peers::OnFailed(engine::ConnectionId id, const std::string& why) {
  SetCloseBy(id, Now() + FlushMsMax());
  LogFailed(id, why);
}

void Peers::LogFailed(engine::ConnectionId id, const std::string& why) {
  const std::string& peer = peers_[id].is.name;
  Log("connection " + peer + " failed: " + why, {{"peer", peer}, {"reason", why}});
}

void Peers::OnClosed(engine::ConnectionId id) {
  SetCloseBy(id, kNever);
  if (std::exchange(peers_[id].shakes_hands, false)) tls_->CountHandshake(/*done=*/false);
  peers_[id].socket.reset();
  --open_;
  spdlog::debug("connection {} is closed, {} are open", id, open_);
  // Last: the engine may give the id to the next connection.
  engine_->OnDisconnect(id, Now());
}

}  // namespace nowcalls::server
