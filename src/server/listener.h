// Listener: the listening socket.
//
// Thread: loop, from Start on. Running out of file descriptors is survived: a waiting peer is
// accepted by a spare descriptor, closed, and reported by OnRefuse.
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
  // Takes the socket: non-blocking, with all options. `peer` is HOST:PORT.
  using OnAccept = std::function<void(int fd, const std::string& peer)>;
  // A peer was closed at once, or not accepted, for `reason`.
  using OnRefuse = std::function<void(const std::string& reason)>;

  // Listens; peers wait in the kernel until Start. kIoError names address and reason;
  // kInvalidArgument: no address for the host.
  static Result<std::unique_ptr<Listener>> Bind(const HostPort& name);

  // REQUIRES: not started, or Close was called and the loop ran since.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // With the port that the system chose for 0.
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
