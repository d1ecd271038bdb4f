// Listener: the listening socket.
//
// Thread: loop, from Start on. It accepts by itself instead of through uv_listen, so that running
// out of file descriptors can be seen, logged and survived. A spare descriptor is given up for a
// moment to accept the waiting peer and close it: the peer learns at once that it is not served.
#ifndef NOWCALLS_SERVER_LISTENER_H_
#define NOWCALLS_SERVER_LISTENER_H_

#include <uv.h>

#include <functional>
#include <memory>
#include <string>

#include "base/host_port.h"
#include "nowcalls/status.h"

namespace nowcalls::server {

class Listener {
 public:
  // Takes the socket, which is non-blocking and has the options that connections need; `peer` is
  // HOST:PORT.
  using OnAccept = std::function<void(int fd, const std::string& peer)>;
  // A peer was accepted and closed, or could not be accepted, for the reason told.
  using OnRefuse = std::function<void(const std::string& reason)>;

  // Binds and listens; peers wait in the kernel until Start. kIoError names the address and the
  // reason, kInvalidArgument a host without an address.
  static Result<std::unique_ptr<Listener>> Bind(const HostPort& name);

  // REQUIRES: not started, or Close was called and the loop ran once since.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // With the port that the system chose, if it was 0.
  const HostPort& address() const { return address_; }

  void Start(uv_loop_t* loop, OnAccept on_accept, OnRefuse on_refuse);
  void Close();

 private:
  explicit Listener(int fd);
  void Poll();
  void Rest();
  void AcceptSome();
  bool AcceptOne();
  void RefuseOne();

  int fd_;
  int spare_fd_;
  HostPort address_;
  OnAccept on_accept_;
  OnRefuse on_refuse_;
  uv_poll_t poll_{};
  uv_timer_t rest_{};
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LISTENER_H_
