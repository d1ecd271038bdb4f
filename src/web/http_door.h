// HttpDoor: accepts connections and hands each to a daemon.
//
// Thread: its own, which waits for no reader.
#ifndef NOWCALLS_WEB_HTTP_DOOR_H_
#define NOWCALLS_WEB_HTTP_DOOR_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/acceptor.h"
#include "net/address.h"
#include "nowcalls/status.h"
#include "web/guests.h"
#include "web/http_daemon.h"

namespace nowcalls::web {

class HttpDoor {
 public:
  struct Paths {
    std::vector<std::string> probes{};
    std::vector<std::string> shorts{};
  };

  // The kind by the first bytes of a request; kUndecided: more must come.
  static GuestKind KindOf(std::string_view head, const Paths& paths);

  // The owner closes `listening` after the door. `guests` and the daemons outlive it; `probes` has
  // no thread of its own. `tls` has what begins as TLS; null: none. A request not whole after
  // `request_ms_max` ends its connection.
  HttpDoor(std::vector<int> listening, Paths paths, int64_t request_ms_max, Guests* guests,
           HttpDaemon* probes, HttpDaemon* others, HttpDaemon* tls);
  ~HttpDoor();
  HttpDoor(const HttpDoor&) = delete;
  HttpDoor& operator=(const HttpDoor&) = delete;

  // Call once. kIoError: the system refuses.
  Status Start();

 private:
  void Run();
  void Watch(int fd, uint32_t events) const;
  void AcceptAll(int listening);
  void Rest();
  void GoOn();
  // `events`: of epoll, since the look before.
  void Look(int fd, uint32_t events);
  void HandOver(int fd, GuestKind kind, HttpDaemon* to);
  void Close(int fd);
  int WaitMs() const;

  const std::vector<int> listening_;
  const Paths paths_;
  const int64_t request_ms_max_;
  Guests* const guests_;
  HttpDaemon* const probes_;
  HttpDaemon* const others_;
  HttpDaemon* const tls_;
  int epoll_fd_ = -1;
  int end_fd_ = -1;  // Can be read at the end.
  net::Acceptor acceptor_;
  bool rests_ = false;  // Does not listen, as not even that works.
  std::map<int, net::SocketAddress> undecided_;
  std::thread thread_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HTTP_DOOR_H_
