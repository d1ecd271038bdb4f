// SocketTurn: what the connections of an event loop receive and send, many with one system call.
//
// Thread: the loop's. Sockets that can be read are told as the loop finds them. They are received
// from together, when there are kTogether of them, and when the loop has looked at all (Receive);
// so nothing is held back for it. All that has arrived is taken, as far as kReceivesMax receives of
// each go, since the next look at the sockets may come after what was due meanwhile. What is to be
// sent is collected likewise.
#ifndef NOWCALLS_BASE_SOCKET_TURN_H_
#define NOWCALLS_BASE_SOCKET_TURN_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/socket_batch.h"

namespace nowcalls {

class SocketTurn {
 public:
  static constexpr size_t kTogether = 32;
  // Of a socket with one receive. Small, because it may have to be kept for each of many.
  static constexpr size_t kReceiveBytesMax = 16 * 1024;
  static constexpr int kReceivesMax = 32;

  class Socket {
   public:
    virtual ~Socket() = default;
    virtual int fd() const = 0;
    // Whether it is to be received from: it was told as readable, or, since it was last asked, has
    // filled a receive.
    virtual bool TakeReadable() = 0;
    // `result` as in SocketReceive; the bytes are gone after the call. May end this socket or
    // another, for which it is called all the same if it was received from.
    virtual void Received(ssize_t result, std::string_view bytes) = 0;
    // `result` as in SocketSend, of these bytes.
    virtual void Sent(ssize_t result, std::string_view bytes) = 0;
  };

  explicit SocketTurn(SocketBatch::Means means = SocketBatch::Means::kBest);
  SocketTurn(const SocketTurn&) = delete;
  SocketTurn& operator=(const SocketTurn&) = delete;

  // REQUIRES: it was not told since it was last taken, and stays until Receive is done.
  void Readable(Socket* socket);
  void Receive();

  // Sends `bytes` with the next SendAll; they stay until then. REQUIRES: once a socket.
  void Send(Socket* socket, std::string_view bytes);
  void SendAll();

  const std::string& why_alone() const { return batch_.why_alone(); }

 private:
  void ReceiveOnce();

  // What is received at once begins in different sets of the processor's caches.
  static constexpr size_t kStride = kReceiveBytesMax + 5 * 64;

  SocketBatch batch_;
  std::vector<Socket*> readable_;
  std::vector<Socket*> receiving_;
  std::vector<SocketReceive> receives_;
  std::vector<Socket*> sending_;
  std::vector<SocketSend> sends_;
  const std::unique_ptr<char[]> bytes_;  // kTogether times kStride.
};

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_SOCKET_TURN_H_
