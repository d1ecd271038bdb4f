// Every row of the table of routes, asked by principals of every role.
#include "web/routes.h"

#include <doctest/doctest.h>

#include <string>

#include "base/clock.h"
#include "net/endpoint.h"
#include "net/socket.h"
#include "support/poll_until.h"
#include "web/board.h"
#include "web/web.h"

namespace nowcalls::web {
namespace {

using access::Role;

// The whole answer to a GET.
std::string Get(const HostPort& server, std::string_view path) {
  const auto deadline_ms = [] { return BoottimeMs() + testing::kPatienceMs; };
  Result<net::Socket> socket = net::Socket::Connect(net::Endpoint::Tcp(server), deadline_ms());
  REQUIRE(socket.status().ToString() == "ok");
  const std::string request =
      "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  REQUIRE(socket->Send(request, deadline_ms()).ok());
  std::string answer;
  while (socket->Receive(&answer, deadline_ms()).ok()) {
  }
  return answer;
}

TEST_CASE("a path is of the first row that fits") {
  CHECK(RouteOf("/healthz").kind == RouteKind::kProbe);
  CHECK(RouteOf("/metrics").kind == RouteKind::kMetrics);
  CHECK(RouteOf("/api/flows").kind == RouteKind::kApi);
  CHECK(RouteOf("/api").kind == RouteKind::kPage);
  CHECK(RouteOf("/flow.js").kind == RouteKind::kPage);
  CHECK(RouteOf("").kind == RouteKind::kPage);
}

TEST_CASE("a route is refused to a role below its own") {
  for (const Role role : {Role::kAnybody, Role::kObserver, Role::kClient, Role::kAdministrator}) {
    Board board;
    const auto web = Web::Start({.listen = HostPort{"127.0.0.1", 0},
                                 .identify =
                                     [&](const net::Peer& peer) {
                                       return access::Principal{.name = peer.name, .role = role};
                                     },
                                 .log = [](bool, const std::string&) {}},
                                &board);
    REQUIRE(web.status().ToString() == "ok");
    for (const Route& route : kRoutes) {
      CAPTURE(access::RoleName(role));
      CAPTURE(route.path);
      const std::string answer = Get((*web)->addresses().front(), route.path);
      REQUIRE(answer.starts_with("HTTP/1.1 "));
      const bool refused = answer.starts_with("HTTP/1.1 403");
      CHECK(refused == (role < route.needs.role));
      if (refused)
        CHECK(answer.find("needs the role observer, and 127.0.0.1") != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace nowcalls::web
