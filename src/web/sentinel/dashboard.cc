#include "web/sentinel/dashboard.h"

#include <utility>

namespace nowcalls::web {
namespace {

CommandCenter::Source SourceOf(Feed* feed) {
  return {.latest = [feed] { return feed->latest(); },
          .series = &feed->series(),
          .watch =
              [feed] {
                feed->WatchSessions();
                feed->WatchRules();
              }};
}

}  // namespace

SentinelDashboard::SentinelDashboard(const SentinelDashboardOptions& options, Feed* feed)
    : options_(options), center_(options, SourceOf(feed)) {}

Result<std::unique_ptr<SentinelDashboard>> SentinelDashboard::Start(
    const SentinelDashboardOptions& options, Feed* feed) {
  std::unique_ptr<SentinelDashboard> made(new SentinelDashboard(options, feed));
  const HttpServer::Options http{.listen = options.listen,
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
