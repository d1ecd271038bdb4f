#include "web/web.h"

#include <utility>

#include "base/clock.h"
#include "web/assets.h"
#include "web/health.h"
#include "web/metrics.h"
#include "web/routes.h"
#include "web/sentinel/dashboard.h"
#include "web/visible.h"

namespace nowcalls::web {

Web::Web(const WebOptions& options, const Board* board)
    : options_(options),
      board_(board),
      entrance_(options.gate, options.log),
      feed_([this] {
        if (server_ != nullptr) server_->WakeStreams();
      }),
      api_(&feed_, board) {}

// The feed's on_new uses server_, which is destroyed before feed_.
Web::~Web() { feed_.Stop(); }

Result<std::unique_ptr<Web>> Web::Start(const WebOptions& options, const Board* board) {
  std::unique_ptr<Web> web(new Web(options, board));
  NOWCALLS_RETURN_IF_ERROR(web->Listen());
  return web;
}

Status Web::Listen() {
  if (options_.listen) {
    auto server =
        HttpServer::Start({.listen = *options_.listen,
                           .hosts = options_.hosts,
                           .tls = options_.tls,
                           .takes_plain = options_.takes_plain,
                           .probe_paths = {"/healthz", "/readyz"},
                           .probe = [this](const Request& request) { return Probe(request); },
                           .short_paths = {"/metrics"},
                           .log = options_.log},
                          [this](const Request& request) { return Answer(request); });
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
  }
  // The command centre listens at once, so an address that cannot be had ends the start.
  if (options_.sentinel.dashboard.host.empty()) return Status::Ok();
  auto sentinel = SentinelDashboard::Start(options_.sentinel, options_.hosts, &feed_, options_.log);
  if (!sentinel.ok()) return sentinel.status();
  sentinel_ = *std::move(sentinel);
  return Status::Ok();
}

void Web::SetAccess(access::Gate gate) {
  entrance_.SetGate(std::move(gate));
  if (server_ != nullptr) server_->WakeStreams();
}

Status Web::SetCertificate(const Https& https) {
  return server_ == nullptr ? Status::Ok() : server_->SetCertificate(https);
}

void Web::Look(const std::vector<std::string>& addresses) { feed_.Start(addresses); }

// An answer made of a snapshot tells the token port.
void Web::Announce(uint16_t token_port) {
  if (sentinel_ != nullptr) sentinel_->Begin(token_port);
}

Response Web::Probe(const Request& request) const {
  if (request.path != "/readyz") return AnswerHealth(*board_, BoottimeMs());
  return AnswerReady(*board_, BoottimeMs(), /*standby_ok=*/request.Query("standby") == "ok");
}

Response Web::Answer(const Request& request) {
  const Route& route = RouteOf(request.path);
  // Of a connection that asked for something else first, or has TLS.
  if (route.kind == RouteKind::kProbe) return Probe(request);
  Entrance::Visit visit;
  if (route.kind != RouteKind::kMetrics || !options_.metrics_open) {
    visit = entrance_.Enter(request, route.needs);
    if (visit.refusal) return *std::move(visit.refusal);
  }
  const access::Principal& principal = visit.identity.principal;
  switch (route.kind) {
    case RouteKind::kMetrics:
      return AnswerMetrics(request, VisibleTo(principal, feed_.latest()), *board_, options_.figures,
                           entrance_.wrong_secrets());
    case RouteKind::kApi:
      return api_.Handle(request, {.principal = principal,
                                   .again = [this, peer = request.peer, of = visit.identity] {
                                     return entrance_.Again(peer, of);
                                   }});
    case RouteKind::kProbe:
    case RouteKind::kPage: break;
  }
  return ServeAsset(request);
}

}  // namespace nowcalls::web
