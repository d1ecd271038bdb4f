#include "web/web.h"

#include "base/clock.h"
#include "web/health.h"
#include "web/metrics.h"

namespace nowcalls::web {

Web::Web(const WebOptions& options, const Board* board)
    : options_(options), board_(board), feed_([this] { server_->WakeStreams(); }) {}

Web::~Web() = default;

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
  return ErrorResponse(404, "nothing is here; see /, /metrics, /healthz and /readyz");
}

}  // namespace nowcalls::web
