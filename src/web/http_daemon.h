// HttpDaemon: libmicrohttpd behind HttpDoor.
//
// Thread: its own, or the owner's by Run, runs the handler and the streams. The other members are
// anybody's.
#ifndef NOWCALLS_WEB_HTTP_DAEMON_H_
#define NOWCALLS_WEB_HTTP_DAEMON_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/address.h"
#include "net/peer.h"
#include "net/tls.h"
#include "nowcalls/status.h"
#include "web/guests.h"
#include "web/host_names.h"
#include "web/http.h"
#include "web/https_certificate.h"
#include "web/log_line.h"

namespace nowcalls::web {

class HttpDaemon {
 public:
  using Handler = std::function<Response(const Request& request)>;

  struct Options {
    bool own_thread = true;  // Else the owner calls Run.
    bool takes_posts = false;
    int64_t exchange_ms_max = 0;
    // Under any name, also without TLS.
    std::vector<std::string> probe_paths{};
    // An answer to one of these closes the connection; `closes`: every answer.
    std::vector<std::string> short_paths{};
    bool closes = false;
    const HostNames* names = nullptr;  // Which a Host header may have; outlives it.
    // HTTPS. Connections come undecided (web/guests.h).
    std::optional<Https> tls{};
    // As of HttpServer.
    std::function<bool(const net::Peer& peer)> takes_plain{};
    LogLine log{};
  };

  static constexpr unsigned kIdleSecondsMax = 15;
  static constexpr unsigned kRequestBytesMax = 16 * 1024;
  // Bytes that one daemon's answers keep for their readers. Beyond, large answers are 503.
  static constexpr size_t kAnswerBytesMax = 128 << 20;
  static constexpr size_t kAddressAnswerBytesMax = kAnswerBytesMax / 2;  // Of one address.
  static constexpr size_t kSmallAnswerBytes = 64 << 10;
  // Delayed answers (Response::delay_ms); one more leaves at once.
  static constexpr size_t kDelayedMax = 64;

  // kIoError: no thread or memory. kInvalidArgument: the certificate. `guests` outlives it.
  static Result<std::unique_ptr<HttpDaemon>> Start(const Options& options, Guests* guests,
                                                   Handler handler);
  ~HttpDaemon();
  HttpDaemon(const HttpDaemon&) = delete;
  HttpDaemon& operator=(const HttpDaemon&) = delete;

  // Owns `fd`, which `guests` admitted; closes it on failure.
  void Add(int fd, const net::SocketAddress& peer);
  // Asks streams again that had no bytes.
  void WakeStreams();
  // Sends delayed answers that are due; call it about twice a second. `now_ms`: BoottimeMs.
  void SendDelayed(int64_t now_ms);
  // Of later connections. kInvalidArgument: the earlier one stays.
  Status SetCertificate(const Https& https);

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
