// SocketTurn: batches an event loop's receives and sends (README, decision 1).
//
// Thread: the loop's. Readable sockets are received from when there are kTogether, and at Receive.
// Sends wait for SendAll.
#ifndef NOWCALLS_NET_SOCKET_TURN_H_
#define NOWCALLS_NET_SOCKET_TURN_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/socket_batch.h"

namespace nowcalls::net {

class SocketTurn {
 public:
  static constexpr size_t kTogether = 32;
  // Of one receive.
  static constexpr size_t kReceiveBytesMax = 16 * 1024;
  static constexpr int kReceivesMax = 32;

  class Socket {
   public:
    virtual ~Socket() = default;
    virtual int fd() const = 0;
    // Told as readable, or filled a receive since last asked.
    virtual bool TakeReadable() = 0;
    // `result` as in SocketReceive; the bytes end with the call. May end any socket; Received is
    // called all the same for those received from.
    virtual void Received(ssize_t result, std::string_view bytes) = 0;
    // `result` as in SocketSend.
    virtual void Sent(ssize_t result, std::string_view bytes) = 0;
  };

  explicit SocketTurn(SocketBatch::Means means = SocketBatch::Means::kBest);
  SocketTurn(const SocketTurn&) = delete;
  SocketTurn& operator=(const SocketTurn&) = delete;

  // REQUIRES: not named since it was last taken; stays until Receive is done.
  void Readable(Socket* socket);
  void Receive();

  // With the next SendAll, until which `bytes` stay. REQUIRES: once a socket.
  void Send(Socket* socket, std::string_view bytes);
  void SendAll();

  const std::string& why_alone() const { return batch_.why_alone(); }

 private:
  void ReceiveOnce();

  static constexpr size_t kStride = kReceiveBytesMax + 5 * 64;

  SocketBatch batch_;
  std::vector<Socket*> readable_;
  std::vector<Socket*> receiving_;
  std::vector<SocketReceive> receives_;
  std::vector<Socket*> sending_;
  std::vector<SocketSend> sends_;
  const std::unique_ptr<char[]> bytes_;  // kTogether times kStride.
};

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_SOCKET_TURN_H_
