#include "web/sentinel/dashboard.h"

#include <utility>

namespace nowcalls::web {

SentinelDashboard::SentinelDashboard(const SentinelDashboardOptions& options,
                                     SnapshotSource* source, LogLine log)
    : options_(options), log_(std::move(log)), center_(options, source) {}

Result<std::unique_ptr<SentinelDashboard>> SentinelDashboard::Start(
    const SentinelDashboardOptions& options, const std::vector<std::string>& hosts,
    SnapshotSource* source, LogLine log) {
  std::unique_ptr<SentinelDashboard> made(new SentinelDashboard(options, source, std::move(log)));
  // Sentinel's command centre closes each connection, and its dashboard sends some questions as
  // POST.
  const HttpServer::Options http{.listen = options.listen,
                                 .hosts = hosts,
                                 .closes = true,
                                 .ports_above = SentinelDashboardOptions::kPortsAbove,
                                 .takes_posts = true,
                                 .log = made->log_};
  auto server = HttpServer::Start(
      http, [center = &made->center_](const Request& request) { return center->Handle(request); });
  if (!server.ok()) return server.status();
  made->server_ = *std::move(server);
  return made;
}

void SentinelDashboard::Begin(uint16_t token_port) {
  center_.SetTokenPort(token_port);
  heartbeat_ = std::make_unique<Heartbeat>(options_.dashboard,
                                           SentinelMachine{options_.app, command_address()}, log_);
}

}  // namespace nowcalls::web
