// HttpServer: HTTP/1.1 on a thread of its own (libmicrohttpd), for readers that the token loop must
// not feel.
//
// Thread: Start, the destructor and WakeStreams are the owner's, and WakeStreams anybody's. The
// handler runs on the server's thread, one request at a time, and must not block.
//
// Bounds: connections, and those of one address; bytes of a request, and the time of a request or
// an answer; the time without a byte. Answers that readers have not taken yet have a bound of bytes
// together, beyond which a large one is 503. Other methods than GET and HEAD are 405. On a loopback
// address the Host header must name this machine: no page from elsewhere reads it by DNS rebinding.
#ifndef NOWCALLS_WEB_HTTP_SERVER_H_
#define NOWCALLS_WEB_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/host_port.h"
#include "nowcalls/status.h"
#include "web/http.h"

namespace nowcalls::web {

class HttpServer {
 public:
  using Handler = std::function<Response(const Request& request)>;

  struct Options {
    HostPort listen;  // Port 0: the system picks one.
    // Connections are closed behind each answer, as Sentinel's command centre does.
    bool closes = false;
    // With `listen.port` taken: so many ports above it are tried, too.
    uint16_t ports_above = 0;
    // From the first byte to the last of a request, or of an answer that is no stream. Connections
    // that take longer are closed by the next WakeStreams.
    int64_t exchange_ms_max = 30'000;
    // The handler is asked for a POST as for a GET, and what the POST brings is dropped.
    bool takes_posts = false;
  };

  static constexpr unsigned kConnectionsMax = 256;
  static constexpr unsigned kConnectionsPerAddressMax = 64;
  static constexpr unsigned kIdleSecondsMax = 15;
  static constexpr unsigned kRequestBytesMax = 16 * 1024;
  // Of all answers that readers have not taken yet. A larger one is given when it is alone, and a
  // small one always, such as that of /healthz.
  static constexpr size_t kAnswerBytesMax = 64 << 20;
  static constexpr size_t kSmallAnswerBytes = 64 << 10;

  // kIoError names the address and the reason, kInvalidArgument a host without an address.
  static Result<std::unique_ptr<HttpServer>> Start(const Options& options, Handler handler);
  // Ends all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  const HostPort& address() const;
  // Streams that had nothing to say are asked again. Call it every second or so.
  void WakeStreams();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HTTP_SERVER_H_
