#include "web/web.h"

#include "base/clock.h"
#include "web/assets.h"
#include "web/health.h"
#include "web/metrics.h"

namespace nowcalls::web {

Web::Web(const WebOptions& options, const Board* board)
    : options_(options),
      board_(board),
      feed_([this] { server_->WakeStreams(); }),
      api_(&feed_, board) {}

// The feed wakes streams of the server, and the server asks the feed.
Web::~Web() {
  feed_.Stop();
  server_.reset();
}

Result<std::unique_ptr<Web>> Web::Start(const WebOptions& options, const Board* board) {
  std::unique_ptr<Web> web(new Web(options, board));
  auto server = HttpServer::Start({.listen = options.listen},
                                  [raw = web.get()](const Request& r) { return raw->Answer(r); });
  if (!server.ok()) return server.status();
  web->server_ = *std::move(server);
  return web;
}

Response Web::Answer(const Request& request) {
  if (request.path == "/healthz") return AnswerHealth(*board_, BoottimeMs());
  if (request.path == "/readyz") return AnswerReady(*board_, *feed_.latest(), BoottimeMs());
  if (request.path == "/metrics") {
    return AnswerMetrics(request, *feed_.latest(), *board_, options_.figures);
  }
  if (request.path.starts_with("/api/")) return api_.Handle(request);
  return ServeAsset(request);
}

}  // namespace nowcalls::web
