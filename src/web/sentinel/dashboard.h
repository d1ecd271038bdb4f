// SentinelDashboard: the server in Sentinel's dashboard: a command centre and a heartbeat.
//
// Thread: the owner's; the rest is on threads of its members. The feed must outlive it.
#ifndef NOWCALLS_WEB_SENTINEL_DASHBOARD_H_
#define NOWCALLS_WEB_SENTINEL_DASHBOARD_H_

#include <memory>

#include "base/host_port.h"
#include "nowcalls/status.h"
#include "web/feed.h"
#include "web/http_server.h"
#include "web/sentinel/command_center.h"
#include "web/sentinel/heartbeat.h"
#include "web/sentinel/options.h"

namespace nowcalls::web {

class SentinelDashboard {
 public:
  // Listens, and tells the dashboard of itself from now on. `tokens` is where clients of the token
  // server connect. Errors are those of HttpServer::Start.
  static Result<std::unique_ptr<SentinelDashboard>> Start(const SentinelDashboardOptions& options,
                                                          const HostPort& tokens, Feed* feed,
                                                          LogLine log);

  const HostPort& command_address() const { return server_->address(); }

 private:
  SentinelDashboard(const SentinelDashboardOptions& options, const HostPort& tokens, Feed* feed);

  const CommandCenter center_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_DASHBOARD_H_
