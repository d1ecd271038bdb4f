// Peer: the other end of an accepted connection, as far as it is known.
//
// Thread: any.
#ifndef NOWCALLS_NET_PEER_H_
#define NOWCALLS_NET_PEER_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace nowcalls::net {

struct SocketAddress;

// Of the process that connected, by the kernel's word (SO_PEERCRED, unix(7)).
struct UnixCredentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

struct Peer {
  std::string name{};                            // "HOST:PORT"; of a Unix socket "unix:PID/N".
  std::string host{};                            // In digits, without a zone; empty: a Unix socket.
  std::optional<UnixCredentials> credentials{};  // Of a Unix socket.
  bool loopback = false;                         // Both ends are on this machine.
  bool shakes_hands = false;  // It must, or has begun to: nobody until it is done.
  // After a handshake.
  bool encrypted = false;
  std::string certificate{};  // The name that its certificate proves: the first URI or DNS name,
                              // else the common name; empty: none was shown.
};

// `address`: as accept4 gave it. `number`: of the connection at its listener, since a process may
// have several.
Peer PeerOf(int fd, const SocketAddress& address, uint64_t number);

}  // namespace nowcalls::net

#endif  // NOWCALLS_NET_PEER_H_
