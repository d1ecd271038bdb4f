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

SentinelDashboard::SentinelDashboard(const SentinelDashboardOptions& options,
                                     const HostPort& tokens, Feed* feed)
    : center_(options, tokens, SourceOf(feed)) {}

Result<std::unique_ptr<SentinelDashboard>> SentinelDashboard::Start(
    const SentinelDashboardOptions& options, const HostPort& tokens, Feed* feed, LogLine log) {
  std::unique_ptr<SentinelDashboard> made(new SentinelDashboard(options, tokens, feed));
  const HttpServer::Options http{.listen = options.listen,
                                 .closes = true,
                                 .ports_above = SentinelDashboardOptions::kPortsAbove,
                                 .takes_posts = true};
  auto server = HttpServer::Start(
      http, [center = &made->center_](const Request& request) { return center->Handle(request); });
  if (!server.ok()) return server.status();
  made->server_ = *std::move(server);
  made->heartbeat_ = std::make_unique<Heartbeat>(
      options.dashboard, SentinelMachine{options.app, made->server_->address()}, std::move(log));
  return made;
}

}  // namespace nowcalls::web
