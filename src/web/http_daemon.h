// HttpDaemon: libmicrohttpd behind HttpDoor.
//
// Thread: one runs the handler and the streams: its own, or the owner's by Run. Any thread may call
// Add and WakeStreams.
#ifndef NOWCALLS_WEB_HTTP_DAEMON_H_
#define NOWCALLS_WEB_HTTP_DAEMON_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/address.h"
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
    // Paths whose answer closes the connection; `closes`: every answer.
    std::vector<std::string> closes_behind{};
    bool closes = false;
    const HostNames* names = nullptr;     // Which a Host header may have; outlives it.
    std::vector<std::string> any_host{};  // Answered under any name.
    LogLine log{};
  };

  static constexpr unsigned kIdleSecondsMax = 15;
  static constexpr unsigned kRequestBytesMax = 16 * 1024;
  // Bytes that answers keep until their readers took them. Beyond, large answers are 503.
  static constexpr size_t kAnswerBytesMax = 128 << 20;
  static constexpr size_t kAddressAnswerBytesMax = kAnswerBytesMax / 2;  // Of one address.
  static constexpr size_t kSmallAnswerBytes = 64 << 10;

  // kIoError: no thread or no memory. `guests` outlives it.
  static Result<std::unique_ptr<HttpDaemon>> Start(const Options& options, Guests* guests,
                                                   Handler handler);
  ~HttpDaemon();
  HttpDaemon(const HttpDaemon&) = delete;
  HttpDaemon& operator=(const HttpDaemon&) = delete;

  // Owns `fd`, which `guests` admitted; closes it on failure.
  void Add(int fd, const net::SocketAddress& peer);
  // Asks streams again that had no bytes.
  void WakeStreams();

  // REQUIRES: no thread of its own.
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
