// What the listening socket hands on to those it accepts.
#include "server/loop/listener.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "net/address.h"
#include "support/rpc_client.h"
#include "unit/server/loop_fixture.h"

namespace nowcalls::server {
namespace {

int Option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof(value);
  REQUIRE(getsockopt(fd, level, name, &value, &size) == 0);
  return value;
}

TEST_CASE("an accepted socket notices a host that vanished, whether it is idle or owes it bytes") {
  TestLoop loop;
  auto listener = Listener::Bind(net::Endpoint::Tcp({"127.0.0.1", 0}));
  REQUIRE(listener.status().ToString() == "ok");
  int fd = -1;
  (*listener)->Start(
      loop.get(), [&](int accepted, const net::Peer&) { fd = accepted; },
      [](const std::string& reason) { FAIL(reason); });
  const testing::RpcClient client((*listener)->address().ToString());
  REQUIRE(loop.RunUntil([&] { return fd >= 0; }));
  CHECK(Option(fd, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(Option(fd, IPPROTO_TCP, TCP_KEEPIDLE) == 30);
  CHECK(Option(fd, IPPROTO_TCP, TCP_KEEPINTVL) == 10);
  CHECK(Option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == 60'000);
  CHECK(Option(fd, IPPROTO_TCP, TCP_NODELAY) == 1);
  close(fd);
  (*listener)->Close();
  uv_run(loop.get(), UV_RUN_DEFAULT);
}

TEST_CASE("a host has each of its addresses once, and one in digits has itself") {
  const auto digits = net::ResolveAll({"127.0.0.1", 18730});
  REQUIRE(digits.ok());
  REQUIRE(digits->size() == 1);
  CHECK(net::ToHostPort(digits->front()).ToString() == "127.0.0.1:18730");
  const auto name = net::ResolveAll({"localhost", 0});
  REQUIRE(name.ok());
  std::set<std::string> hosts;
  for (const net::SocketAddress& address : *name) {
    CHECK(net::IsLoopback(address));
    CHECK(hosts.insert(net::ToHostPort(address).host).second);
  }
  CHECK_FALSE(net::ResolveAll({"no-such-host.invalid", 0}).ok());
}

TEST_CASE("a connection from this machine is one whose ends have the same address") {
  TestLoop loop;
  auto listener = Listener::Bind(net::Endpoint::Tcp({"127.0.0.1", 0}));
  REQUIRE(listener.status().ToString() == "ok");
  std::vector<int> accepted;
  (*listener)->Start(
      loop.get(), [&](int fd, const net::Peer&) { accepted.push_back(fd); },
      [](const std::string& reason) { FAIL(reason); });
  const testing::RpcClient local((*listener)->address().ToString());
  const testing::RpcClient other((*listener)->address().ToString(), "127.0.0.2");
  REQUIRE(loop.RunUntil([&] { return accepted.size() == 2; }));
  CHECK(net::IsFromThisHost(accepted[0]));
  CHECK_FALSE(net::IsFromThisHost(accepted[1]));
  for (const int fd : accepted) close(fd);
  CHECK_FALSE(net::IsFromThisHost(-1));
  (*listener)->Close();
  uv_run(loop.get(), UV_RUN_DEFAULT);
}

}  // namespace
}  // namespace nowcalls::server
