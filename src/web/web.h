// Web: the HTTP endpoint of a server: page, metrics, health.
//
// Thread: the members are the owner's, one thread at a time. Threads of its own answer, so neither
// a scraper nor an open page costs the token loop more than the feed's looks, one a second. Neither
// a loop that stands still nor a large answer keeps health from telling.
#ifndef NOWCALLS_WEB_WEB_H_
#define NOWCALLS_WEB_WEB_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/host_port.h"
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
  // Of page, metrics and health. Port 0: the system picks one. None: there are none.
  std::optional<HostPort> listen{};
  std::vector<std::string> hosts{};             // More names under which they answer.
  std::span<const wire::FigureInfo> figures{};  // The table behind `info`; outlives it.
  SentinelDashboardOptions sentinel{};
  LogLine log{};  // Called on threads of this room.
};

class SentinelDashboard;

class Web {
 public:
  // Answers from now on that the server loads. As HttpServer::Start. `board` outlives it.
  static Result<std::unique_ptr<Web>> Start(const WebOptions& options, const Board* board);
  ~Web();

  // REQUIRES: options.listen. At least one.
  const std::vector<HostPort>& addresses() const { return server_->addresses(); }
  // The server answers there: look at it. Once.
  void Look(const HostPort& server);

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
