// SentinelDashboard: command centre and heartbeat of the server.
//
// Thread: the owner's; members have threads of their own. The source outlives it.
#ifndef NOWCALLS_WEB_SENTINEL_DASHBOARD_H_
#define NOWCALLS_WEB_SENTINEL_DASHBOARD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "nowcalls/status.h"
#include "web/http_server.h"
#include "web/log_line.h"
#include "web/sentinel/command_center.h"
#include "web/sentinel/heartbeat.h"
#include "web/sentinel/options.h"
#include "web/snapshot_source.h"

namespace nowcalls::web {

class SentinelDashboard {
 public:
  // Listens; 503 until the first snapshot. Errors as HttpServer::Start. `hosts`: more names for the
  // Host header.
  static Result<std::unique_ptr<SentinelDashboard>> Start(const SentinelDashboardOptions& options,
                                                          const std::vector<std::string>& hosts,
                                                          SnapshotSource* source, LogLine log);
  // Call once, when the token server serves, before the feed looks. Begins the heartbeat.
  void Begin(uint16_t token_port);

  const HostPort& command_address() const { return server_->address(); }

 private:
  SentinelDashboard(const SentinelDashboardOptions& options, SnapshotSource* source, LogLine log);

  const SentinelDashboardOptions options_;
  const LogLine log_;
  CommandCenter center_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_DASHBOARD_H_
