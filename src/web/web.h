// Web: a server's HTTP endpoint.
//
// Thread: the members are the owner's, one thread at a time; threads of its own answer.
#ifndef NOWCALLS_WEB_WEB_H_
#define NOWCALLS_WEB_WEB_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "access/access.h"
#include "base/host_port.h"
#include "net/peer.h"
#include "nowcalls/status.h"
#include "web/api.h"
#include "web/board.h"
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
  // Who asks. The dashboard's commands know only addresses (sentinel/options.h).
  std::function<access::Principal(const net::Peer&)> identify = access::PrincipalOf;
  LogLine log{};  // Called on threads of this room.
};

class SentinelDashboard;

class Web {
 public:
  // Tells from now on that the server loads. Errors as HttpServer::Start. `board` outlives it.
  static Result<std::unique_ptr<Web>> Start(const WebOptions& options, const Board* board);
  ~Web();

  // REQUIRES: options.listen.
  const std::vector<HostPort>& addresses() const { return server_->addresses(); }
  // Call once, when the server answers at `addresses`, of which the first that does is asked: the
  // feed begins.
  void Look(const std::vector<std::string>& addresses, uint16_t token_port);

 private:
  Web(const WebOptions& options, const Board* board);
  Status Listen();
  Response Answer(const Request& request);
  Response Probe(const Request& request) const;

  const WebOptions options_;
  const Board* const board_;
  Feed feed_;  // Stops first, as it wakes streams; ends last, as the others ask it.
  Api api_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<SentinelDashboard> sentinel_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_WEB_H_
