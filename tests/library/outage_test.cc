// The client library while its server is gone, ends, or comes back.
#include <arpa/inet.h>
#include <dirent.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "library/clients.h"
#include "support/fake_server.h"
#include "support/poll_until.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests.

ClientOptions OptionsOf(const std::string& address, Fallback fallback) {
  ClientOptions options;
  options.addresses = {address};
  options.client_id = "worker";
  options.timeout = 2s;
  options.fallback = fallback;
  return options;
}

// A listener that ends each connection as soon as it has taken it.
class RudeServer {
 public:
  RudeServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in local{};
    local.sin_family = AF_INET;
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(local);
    REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&local), size) == 0);
    REQUIRE(listen(listener_, SOMAXCONN) == 0);
    REQUIRE(getsockname(listener_, reinterpret_cast<sockaddr*>(&local), &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(local.sin_port));
    thread_ = std::thread([this] {
      for (int fd = accept(listener_, nullptr, nullptr); fd >= 0;
           fd = accept(listener_, nullptr, nullptr)) {
        close(fd);
        ++dropped_;
      }
    });
  }
  ~RudeServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  const std::string& address() const { return address_; }
  int dropped() const { return dropped_; }

 private:
  const int listener_;
  std::string address_;
  std::atomic<int> dropped_{0};
  std::thread thread_;
};

size_t EntriesOf(const char* directory) {
  size_t entries = 0;
  DIR* const open = opendir(directory);
  while (readdir(open) != nullptr) ++entries;
  closedir(open);
  return entries;
}

}  // namespace

TEST_CASE("a permit outlives kill -9 of the server and is released afterwards") {
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 60'000}, {"resourceTimeout", 60'000}}));
  const auto client = StartClient(server.address(), "worker");
  Acquired acquired = client->Acquire(kFlow);
  REQUIRE(acquired.ok());
  server.server().StayOnPort();
  server.server().Restart();
  const Released released = acquired.permit.Release();
  CHECK(released.ok());
  CHECK_FALSE(released.lost);
  RpcClient rpc = server.Connect();
  CHECK(NowCalls(&rpc) == 0);
}

TEST_CASE("without a server an acquire is unavailable when its timeout is over") {
  const auto client = StartClient(OptionsOf("127.0.0.1:1", Fallback::kFail));
  const Acquired acquired = client->Acquire(kFlow, {.timeout = 100ms});
  CHECK(acquired.outcome == Outcome::kUnavailable);
  CHECK(acquired.message.find("127.0.0.1:1: Connection refused") != std::string::npos);
  CHECK(client->WaitConnected(10ms).code() == StatusCode::kUnavailable);
}

TEST_CASE("a server that never answers leaves the outcome unknown or the call unsent") {
  FakeServer mute([](FakeServer::Peer* peer) { peer->AwaitClose(); });
  const auto client = StartClient(OptionsOf(mute.address(), Fallback::kFail));
  const Acquired acquired = client->Acquire(kFlow, {.timeout = 100ms});
  CHECK(acquired.outcome == Outcome::kUnavailable);  // hello has no answer, so nothing was asked.
}

TEST_CASE("a peer that ends the connection before hello may be no nowcalls-server") {
  RudeServer rude;
  ClientOptions options = OptionsOf(rude.address(), Fallback::kFail);
  std::promise<std::string> first;
  options.log = [&, once = false](LogLevel, std::string_view line) mutable {
    if (!std::exchange(once, true)) first.set_value(std::string(line));
  };
  const auto client = StartClient(options);
  const std::string line = first.get_future().get();
  CAPTURE(line);
  CHECK(line.starts_with("no server is reached: " + rude.address()));
  CHECK(line.find("before hello was answered; is that a nowcalls-server?") != std::string::npos);
}

TEST_CASE("local fallback admits the share, and no more, until the server is back") {
  TestServer server(Json::array({RuleJson(7, 6, {{"fallbackToLocalWhenFail", true}}),
                                 RuleJson(8, 6, {{"fallbackToLocalWhenFail", false}})}));
  const auto other = StartClient(server.address(), "other");
  REQUIRE(other->WaitConnected(1min).ok());
  const auto client = StartClient(OptionsOf(server.address(), Fallback::kByRule));
  REQUIRE(client->Acquire(kFlow).ok());
  REQUIRE(client->Acquire(FlowId(8)).ok());
  REQUIRE(PollUntil(kPatienceMs, [&] {  // The rules have been seen.
    const ClientStats stats = client->stats();
    return stats.held == 0 && stats.calls == 0;
  }));
  server.server().StayOnPort();
  server.server().Kill9();
  REQUIRE(PollUntil(kPatienceMs, [&] { return !client->stats().connected; }));
  std::vector<Acquired> held;
  for (int i = 0; i < 5; ++i) held.push_back(client->Acquire(kFlow));
  // A level of 6 for two sessions.
  for (int i = 0; i < 3; ++i) {
    CHECK(held[i].ok());
    CHECK(held[i].local);
    CHECK(held[i].permit.token().value == 0);
  }
  CHECK(held[3].outcome == Outcome::kRefused);
  CHECK(held[3].local);
  CHECK(held[3].level == 3);
  for (int i = 0; i < 20; ++i) CHECK(client->Acquire(FlowId(8)).local);
  held.erase(held.begin());
  CHECK(client->Acquire(kFlow).ok());
  server.server().Start();
  CHECK(client->WaitConnected(1min).ok());
  const Acquired remote = client->Acquire(kFlow);
  CHECK(remote.ok());
  CHECK_FALSE(remote.local);
  CHECK(remote.now_calls == 1);  // Local ones never reach it.
  CHECK(client->stats().local_granted >= 4);
}

TEST_CASE("a thousand reconnects leak no thread and no descriptor") {
  const RudeServer rude;
  ClientOptions options = OptionsOf(rude.address(), Fallback::kPass);
  options.addresses = std::vector<std::string>(200, rude.address());  // No pause within a row.
  const auto client = StartClient(options);
  REQUIRE(PollUntil(kPatienceMs, [&] { return rude.dropped() > 50; }));
  const size_t threads = EntriesOf("/proc/self/task");
  const size_t descriptors = EntriesOf("/proc/self/fd");
  CHECK(PollUntil(kPatienceMs, [&] { return rude.dropped() > 1050; }));
  CHECK(client->Acquire(kFlow).local);
  CHECK(PollUntil(kPatienceMs, [&] {
    return EntriesOf("/proc/self/task") <= threads + 1 &&
           EntriesOf("/proc/self/fd") <= descriptors + 2;
  }));
}

TEST_CASE("a token that ended while the client was away is lost when it is back") {
  TestServer server(RuleJson(7, 2, {{"clientOfflineTime", 60'000}, {"resourceTimeout", 60'000}}));
  const auto client = StartClient(server.address(), "worker");
  const Acquired gone = client->Acquire(kFlow);
  const Acquired stays = client->Acquire(kFlow);
  REQUIRE(gone.ok());
  server.server().StayOnPort();
  // An admin reclaims while the client cannot hear of it.
  const uint16_t port = std::exchange(server.server().options().port, 0);
  server.server().Terminate();
  server.server().Start();
  {
    RpcClient rpc = server.Connect();
    ReclaimToken(&rpc, gone.permit.token());
  }
  server.server().options().port = port;
  server.server().Restart();
  CHECK(PollUntil(kPatienceMs, [&] { return gone.permit.lost(); }));
  CHECK(gone.permit.lost_reason().empty());
  CHECK_FALSE(stays.permit.lost());
}

}  // namespace nowcalls::testing
