// HttpServer: HTTP/1.1 on threads of its own (libmicrohttpd), for readers that the token loop must
// not feel.
//
// Thread: Start and the destructor are the owner's, WakeStreams is anybody's. The handler runs on
// one thread, one request at a time, and must not block. Probes have a handler and a thread that
// nothing else uses: they are answered while the other builds an answer.
//
// Bounds: connections of each kind and of one address (web/guests.h); bytes of a request, and the
// time of a request or an answer; the time without a byte. What answers keep in memory has a bound
// together and one of each address, beyond which a large one is 503. Other methods than GET and
// HEAD are 405. The Host header must name this server (web/host_names.h), or the answer is 421, but
// for probes.
#ifndef NOWCALLS_WEB_HTTP_SERVER_H_
#define NOWCALLS_WEB_HTTP_SERVER_H_

#include <cstdint>
#include <memory>
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
    // Connections are closed behind each answer, as Sentinel's command centre does.
    bool closes = false;
    // With `listen.port` taken: so many ports above it are tried, too.
    uint16_t ports_above = 0;
    // From the first byte to the last of a request, or of an answer that is no endless stream.
    // Connections that take longer are closed within a second.
    int64_t exchange_ms_max = 30'000;
    // The handler is asked for a POST as for a GET, and what the POST brings is dropped.
    bool takes_posts = false;
    // Answered by `probe`, on a thread of their own, under any name. Connections that begin with
    // them, or with those of short_paths, have room of their own, and are closed behind the answer.
    std::vector<std::string> probe_paths{};
    Handler probe{};
    std::vector<std::string> short_paths{};
    LogLine log{};  // Called on the threads of the server.
  };

  static constexpr unsigned kConnectionsMax = kGuestsMax;
  static constexpr size_t kAddressAnswerBytesMax = HttpDaemon::kAddressAnswerBytesMax;

  // kIoError names the address and the reason, kInvalidArgument a host without an address.
  static Result<std::unique_ptr<HttpServer>> Start(const Options& options, Handler handler);
  // Ends all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Where it listens; at least one. All have the same port.
  const std::vector<HostPort>& addresses() const;
  const HostPort& address() const { return addresses().front(); }
  // Streams that had nothing to say are asked again. Call it every second or so.
  void WakeStreams();

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_HTTP_SERVER_H_
