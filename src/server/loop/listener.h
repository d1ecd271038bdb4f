// Listener: a listening socket, watched by libuv.
//
// Thread: loop, from Start on.
#ifndef NOWCALLS_SERVER_LOOP_LISTENER_H_
#define NOWCALLS_SERVER_LOOP_LISTENER_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net/acceptor.h"
#include "net/endpoint.h"
#include "net/peer.h"
#include "nowcalls/status.h"

namespace nowcalls::server {

class Listener {
 public:
  // Takes the socket: non-blocking, with all options.
  using OnAccept = std::function<void(int fd, const net::Peer& peer)>;
  // A peer was closed at once, or not accepted, for `reason`.
  using OnRefuse = std::function<void(const std::string& reason)>;

  // Listens; peers wait in the kernel until Start. kIoError names address and reason;
  // kInvalidArgument: no address for the host.
  static Result<std::unique_ptr<Listener>> Bind(const net::Endpoint& name);

  // REQUIRES: not started, or Close was called and the loop ran since.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // With the chosen port.
  const net::Endpoint& address() const { return address_; }

  void Start(uv_loop_t* loop, OnAccept on_accept, OnRefuse on_refuse);
  // Removes the file of a Unix socket.
  void Close();

 private:
  Listener(int fd, net::Endpoint address) : fd_(fd), address_(std::move(address)) {}
  void Poll();
  void Rest();
  void AcceptSome();
  bool AcceptOne();

  int fd_;
  const net::Endpoint address_;
  net::Acceptor acceptor_;
  uint64_t accepted_ = 0;
  OnAccept on_accept_;
  OnRefuse on_refuse_;
  uv_poll_t poll_{};
  uv_timer_t rest_{};
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOOP_LISTENER_H_
