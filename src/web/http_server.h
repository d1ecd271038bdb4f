// HttpServer: HTTP/1.1 on threads of its own (libmicrohttpd).
//
// Thread: Start and the destructor are the owner's, all else is anybody's. The handler must not
// block. It runs on one thread, with `tls` on a second, one request at a time on each. `probe` has
// its own thread; over TLS the handler answers probes.
//
// Bounds: connections (web/guests.h), bytes of a request, bytes that answers keep (503 beyond),
// times.
// Errors: 405 but for GET and HEAD, 413 for a GET with a body. Not for probes: 400 without TLS
// where it must be, 421 for a foreign Host header (web/host_names.h).
#ifndef NOWCALLS_WEB_HTTP_SERVER_H_
#define NOWCALLS_WEB_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "nowcalls/status.h"
#include "web/guests.h"
#include "web/http.h"
#include "web/http_daemon.h"
#include "web/log_line.h"

namespace nowcalls::web {

class HttpServer {
 public:
  using Handler = HttpDaemon::Handler;

  struct Options {
    HostPort listen;  // Port 0: the system picks one. All addresses of a name, at one port.
    std::vector<std::string> hosts{};  // More names that a Host header may have.
    bool closes = false;
    // Ports above a taken `listen.port` to try.
    uint16_t ports_above = 0;
    // First to last byte of a request, or of an answer that ends; then closed within a second.
    int64_t exchange_ms_max = 30'000;
    // HTTPS at the same port.
    std::optional<Https> tls{};
    // Who may ask without TLS; empty: everybody.
    std::function<bool(const net::Peer& peer)> takes_plain{};
    // POST is answered like GET; its body is dropped.
    bool takes_posts = false;
    // Answered by `probe` under any name. Connections that begin with these or short_paths have
    // room of their own; an answer closes them.
    std::vector<std::string> probe_paths{};
    Handler probe{};
    std::vector<std::string> short_paths{};
    LogLine log{};  // Called on the threads of the server.
  };

  static constexpr unsigned kConnectionsMax = kGuestsMax;
  static constexpr size_t kAddressAnswerBytesMax = HttpDaemon::kAddressAnswerBytesMax;

  // kIoError names address and reason. kInvalidArgument: no address for the host, or an unusable
  // certificate.
  static Result<std::unique_ptr<HttpServer>> Start(const Options& options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // At least one; all have the same port.
  const std::vector<HostPort>& addresses() const;
  const HostPort& address() const { return addresses().front(); }
  // Call it about once a second.
  void WakeStreams();
  // As HttpDaemon::SetCertificate. kFailedPrecondition: it began without TLS.
  Status SetCertificate(const Https& https);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HTTP_SERVER_H_
