// HttpDaemon: libmicrohttpd, for connections that HttpDoor hands to it.
//
// Thread: one drives it, and runs the handler and the streams: its own, or the owner's by Run. Add
// and WakeStreams may be called by any thread.
#ifndef NOWCALLS_WEB_HTTP_DAEMON_H_
#define NOWCALLS_WEB_HTTP_DAEMON_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/listen_address.h"
#include "nowcalls/status.h"
#include "web/guests.h"
#include "web/host_names.h"
#include "web/http.h"
#include "web/log_line.h"

namespace nowcalls::web {

class HttpDaemon {
 public:
  using Handler = std::function<Response(const Request& request)>;

  struct Options {
    bool own_thread = true;  // Else the owner calls Run.
    bool takes_posts = false;
    int64_t exchange_ms_max = 0;
    // Connections are closed behind an answer to these, or to anything.
    std::vector<std::string> closes_behind{};
    bool closes = false;
    const HostNames* names = nullptr;     // Which a Host header may have; outlives it.
    std::vector<std::string> any_host{};  // Answered under any name.
    LogLine log{};
  };

  static constexpr unsigned kIdleSecondsMax = 15;
  static constexpr unsigned kRequestBytesMax = 16 * 1024;
  // Of all that answers keep in memory until their readers have taken them. An answer without room
  // is 503; a small one always has room.
  static constexpr size_t kAnswerBytesMax = 128 << 20;
  static constexpr size_t kAddressAnswerBytesMax = kAnswerBytesMax / 2;  // Of one address.
  static constexpr size_t kSmallAnswerBytes = 64 << 10;

  // kIoError: the system gives no thread or no memory. `guests` outlives it.
  static Result<std::unique_ptr<HttpDaemon>> Start(const Options& options, Guests* guests,
                                                   Handler handler);
  // Ends all connections.
  ~HttpDaemon();
  HttpDaemon(const HttpDaemon&) = delete;
  HttpDaemon& operator=(const HttpDaemon&) = delete;

  // Takes a connection that `guests` has admitted, or closes it.
  void Add(int fd, const SocketAddress& peer);
  // Streams that had nothing to say are asked again.
  void WakeStreams();

  // --- Without a thread of its own. ---
  int wait_fd() const;  // Can be read when Run has something to do.
  int64_t WaitMsMax() const;
  void Run();

 private:
  struct Impl;
  explicit HttpDaemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HTTP_DAEMON_H_
