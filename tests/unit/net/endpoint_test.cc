#include "net/endpoint.h"

#include <doctest/doctest.h>

#include <string>

namespace nowcalls::net {
namespace {

TEST_CASE("a server is HOST:PORT, or the path of its socket") {
  const auto tcp = ParseServer("[::1]:18730");
  REQUIRE(tcp.ok());
  CHECK_FALSE(tcp->is_unix());
  CHECK(tcp->ToString() == "[::1]:18730");
  for (const char* path :
       {"/var/lib/nowcalls/server.sock", "./server.sock", "../data/server.sock"}) {
    const auto socket = ParseServer(path);
    REQUIRE(socket.ok());
    CHECK(socket->is_unix());
    CHECK(socket->ToString() == path);
  }
}

TEST_CASE("what is neither is refused with the reason") {
  CHECK(ParseServer("127.0.0.1:0").status().message() == "'127.0.0.1:0': port 0 is no server's");
  CHECK(ParseServer("server.sock").status().message() ==
        "'server.sock' is not HOST:PORT, such as 127.0.0.1:18730 or [::1]:18730");
  CHECK_FALSE(ParseServer("").ok());
}

}  // namespace
}  // namespace nowcalls::net
