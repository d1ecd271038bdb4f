// Web: a server's HTTP endpoint.
//
// Thread: the owner's, one at a time; SetAccess and SetCertificate are anybody's.
#ifndef NOWCALLS_WEB_WEB_H_
#define NOWCALLS_WEB_WEB_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "access/gate.h"
#include "base/host_port.h"
#include "net/peer.h"
#include "nowcalls/status.h"
#include "web/api.h"
#include "web/board.h"
#include "web/entrance.h"
#include "web/feed.h"
#include "web/http_server.h"
#include "web/log_line.h"
#include "web/sentinel/options.h"
#include "wire/figures.h"

namespace nowcalls::web {

struct WebOptions {
  // None: no page, metrics and health. Port 0: the system picks one.
  std::optional<HostPort> listen{};
  std::vector<std::string> hosts{};             // More names under which they answer.
  std::span<const wire::FigureInfo> figures{};  // The table behind `info`; outlives it.
  SentinelDashboardOptions sentinel{};
  // HTTPS at `listen`, with HTTP as `takes_plain` says; empty: for everybody. Probes need no TLS.
  std::optional<Https> tls{};
  std::function<bool(const net::Peer& peer)> takes_plain{};
  // Who may see what. The dashboard's commands know only addresses (sentinel/options.h).
  access::Gate gate{};
  bool metrics_open = false;  // /metrics shows everything to everybody.
  LogLine log{};              // Called on threads of this room.
};

class SentinelDashboard;

class Web {
 public:
  // Tells from now on that the server loads. Errors as HttpServer::Start. `board` outlives it.
  static Result<std::unique_ptr<Web>> Start(const WebOptions& options, const Board* board);
  ~Web();

  // REQUIRES: options.listen.
  const std::vector<HostPort>& addresses() const { return server_->addresses(); }
  const char* scheme() const { return options_.tls ? "https" : "http"; }
  // Streams of those that may less now end at once.
  void SetAccess(access::Gate gate);
  // As HttpServer::SetCertificate.
  Status SetCertificate(const Https& https);
  // Begins the feed (Feed::Start). Call once.
  void Look(const std::vector<std::string>& addresses);
  // Tells Sentinel's dashboard about the server. Call once, before the server answers.
  void Announce(uint16_t token_port);

 private:
  Web(const WebOptions& options, const Board* board);
  Status Listen();
  Response Answer(const Request& request);
  Response Probe(const Request& request) const;

  const WebOptions options_;
  const Board* const board_;
  Entrance entrance_;
  Feed feed_;  // Stops first, as it wakes streams; ends last, as the others ask it.
  Api api_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<SentinelDashboard> sentinel_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_WEB_H_
