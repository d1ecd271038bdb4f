#include "web/sentinel/dashboard.h"

#include <utility>

namespace nowcalls::web {

SentinelDashboard::SentinelDashboard(const SentinelDashboardOptions& options,
                                     SnapshotSource* source)
    : options_(options), center_(options, source) {}

Result<std::unique_ptr<SentinelDashboard>> SentinelDashboard::Start(
    const SentinelDashboardOptions& options, const std::vector<std::string>& hosts,
    SnapshotSource* source) {
  std::unique_ptr<SentinelDashboard> made(new SentinelDashboard(options, source));
  const HttpServer::Options http{.listen = options.listen,
                                 .hosts = hosts,
                                 .closes = true,
                                 .ports_above = SentinelDashboardOptions::kPortsAbove,
                                 .takes_posts = true};
  auto server = HttpServer::Start(
      http, [center = &made->center_](const Request& request) { return center->Handle(request); });
  if (!server.ok()) return server.status();
  made->server_ = *std::move(server);
  return made;
}

void SentinelDashboard::Begin(uint16_t token_port, LogLine log) {
  center_.SetTokenPort(token_port);
  heartbeat_ = std::make_unique<Heartbeat>(
      options_.dashboard, SentinelMachine{options_.app, command_address()}, std::move(log));
}

}  // namespace nowcalls::web
