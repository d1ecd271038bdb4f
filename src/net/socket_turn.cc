#include "net/socket_turn.h"

#include "base/check.h"

namespace nowcalls::net {

// The memory is not touched before it is needed. kStride lets receives begin in different sets of
// the CPU's caches.
SocketTurn::SocketTurn(SocketBatch::Means means)
    : batch_(means), bytes_(new char[kTogether * kStride]) {}

void SocketTurn::Readable(Socket* socket) {
  readable_.push_back(socket);
  if (readable_.size() == kTogether) Receive();
}

void SocketTurn::Receive() {
  // All that has arrived is taken, since the next look at the sockets may come after what was due
  // meanwhile. kReceivesMax bounds what one busy socket may take of a turn.
  for (int i = 0; i < kReceivesMax && !readable_.empty(); ++i) ReceiveOnce();
  // The next look at the sockets names these again.
  readable_.clear();
}

// Sockets that filled a receive stay readable.
void SocketTurn::ReceiveOnce() {
  NOWCALLS_CHECK(receiving_.empty());
  for (Socket* const socket : readable_) {
    // A socket may have ended since it was named, by Received of another.
    if (!socket->TakeReadable()) continue;
    char* const to = bytes_.get() + receiving_.size() * kStride;
    receiving_.push_back(socket);
    receives_.push_back({socket->fd(), to, kReceiveBytesMax, 0});
  }
  readable_.clear();
  batch_.Receive(receives_);
  for (size_t i = 0; i < receiving_.size(); ++i) {
    const SocketReceive& receive = receives_[i];
    const size_t size = receive.result > 0 ? static_cast<size_t>(receive.result) : 0;
    // Before Received, which may end the socket: TakeReadable tells then.
    if (size == kReceiveBytesMax) readable_.push_back(receiving_[i]);
    receiving_[i]->Received(receive.result, {receive.to, size});
  }
  receiving_.clear();
  receives_.clear();
}

void SocketTurn::Send(Socket* socket, std::string_view bytes) {
  sending_.push_back(socket);
  sends_.push_back({socket->fd(), bytes.data(), bytes.size(), 0});
}

void SocketTurn::SendAll() {
  // Results come when all sends are done, so Sent may change any socket.
  batch_.Send(sends_);
  for (size_t i = 0; i < sending_.size(); ++i) {
    const SocketSend& send = sends_[i];
    sending_[i]->Sent(send.result, {send.from, send.size});
  }
  sending_.clear();
  sends_.clear();
}

}  // namespace nowcalls::net
