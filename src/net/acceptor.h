// Acceptor: accepts connections, also while the process has no descriptor left.
//
// Thread: one at a time.
#ifndef NOWCALLS_NET_ACCEPTOR_H_
#define NOWCALLS_NET_ACCEPTOR_H_

#include <cstdint>
#include <string>

#include "net/address.h"

namespace nowcalls::net {

class Acceptor {
 public:
  enum class Outcome : uint8_t {
    kAccepted,    // fd and address have the connection: non-blocking, closed by exec.
    kNobody,      // No peer waits.
    kLost,        // A peer left before it was accepted; the next may be well.
    kTurnedAway,  // A peer was closed for want of a descriptor; error() says which bound.
    kExhausted,   // As kTurnedAway, and the spare is gone: listen again once Recover is true.
    kFailed,      // error().
  };

  Acceptor();
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // `listening`: non-blocking.
  Outcome Accept(int listening);
  int fd() const { return fd_; }  // The caller's, which closes it.
  const SocketAddress& address() const { return address_; }
  const std::string& error() const { return error_; }

  // True: there is a spare descriptor (again).
  bool Recover();

 private:
  int spare_fd_;
  int fd_ = -1;
  SocketAddress address_;
  std::string error_;
};

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_ACCEPTOR_H_
