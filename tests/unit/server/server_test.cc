// A whole server in a process of its own, for what no other process can bring about.
#include "server/server.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "recovery/machine_clock.h"
#include "recovery/recovery.h"
#include "server/log/logging.h"
#include "store/memory_store.h"
#include "support/core_harness.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/tcp.h"
#include "support/temp_dir.h"
#include "wire/client_messages.h"

namespace nowcalls::server {
namespace {

// All of libuv's workers hang, as if they looked at a file on a server that is gone.
void HangWorkers() {
  setenv("UV_THREADPOOL_SIZE", "1", /*overwrite=*/1);
  static uv_loop_t loop;
  static uv_work_t work;
  uv_loop_init(&loop);
  const auto hang = [](uv_work_t*) {
    while (true) pause();
  };
  uv_queue_work(&loop, &work, hang, [](uv_work_t*, int) {});
}

// On a ledger in memory, until `run` returns.
void Serve(std::unique_ptr<Listener> listener, const ServerConfig& config, ClaimWatch claim,
           const std::function<void(Server*)>& run) {
  SetUpLogging(Severity::kError, LogFormat::kText);
  store::MemoryStore store({});
  auto ledger = recovery::Recover(&store, {});
  const auto no_backup = [](const std::string&, const std::atomic<bool>&,
                            const std::function<void()>&) {
    return Status::FailedPrecondition("a ledger in memory has no files");
  };
  web::Board board;
  const recovery::MachineClock clock(*ledger);
  Additions none({});
  Server server(
      config, &*ledger, &clock, &store, no_backup, [] { return Status::Ok(); }, &board,
      ConfigAgain{}, &none, nullptr, std::move(claim));
  if (!server.PutRulesInForce(ReadRuleFiles(config.rules)).ok()) _exit(1);
  std::vector<std::unique_ptr<Listener>> listeners;
  listeners.push_back(std::move(listener));
  server.Start(std::move(listeners));
  run(&server);
}

std::unique_ptr<Listener> Bind() {
  auto listener = Listener::Bind(net::Endpoint::Tcp({"127.0.0.1", 0}));
  REQUIRE(listener.ok());
  return *std::move(listener);
}

TEST_CASE("the end of a server does not wait for a look at a rule file") {
  const testing::TempDir dir;
  testing::WriteStringToFile(dir.Sub("rules.json"), testing::RulesJson({{.flow = 1}}));
  ServerConfig config;
  config.rules = {{"default", dir.Sub("rules.json")}};
  auto listener = Bind();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    HangWorkers();
    Serve(std::move(listener), config, {}, [](Server* server) {
      raise(SIGTERM);
      server->Run();
    });
    _exit(2);  // It cannot return while a look at a file is under way.
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

// What it says to a connection that ends it says while it receives.
TEST_CASE("a writer whose claim is over answers nothing, also on a connection that ends") {
  auto listener = Bind();
  void* const shared = mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  auto* const over = new (shared) std::atomic<bool>(false);
  const std::string address = listener->address().ToString();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    bool deposed = false;
    Serve(std::move(listener), {}, {.over = [over] { return over->load(); }, .give_up = [] {}},
          [&](Server* server) {
            server->Run();
            deposed = server->ended().deposed;
          });
    _exit(deposed ? 0 : 1);
  }
  listener.reset();
  wire::OutputBuffer ping;
  wire::EncodePlainRequest(1, wire::Method::kPing, &ping);
  const int fd = testing::ConnectTo(address);
  REQUIRE(fd >= 0);
  const auto wait_for = [fd](int16_t events) {
    return testing::WaitFor(fd, events, BoottimeMs() + testing::kPatienceMs);
  };
  REQUIRE(wait_for(POLLOUT));
  const std::string asked(ping.view());
  char answer[256];
  REQUIRE(send(fd, asked.data(), asked.size(), 0) == static_cast<ssize_t>(asked.size()));
  REQUIRE(wait_for(POLLIN));
  REQUIRE(recv(fd, answer, sizeof(answer), 0) > 0);
  over->store(true);
  const std::string last = asked + '\xc1';  // No message begins so.
  REQUIRE(send(fd, last.data(), last.size(), 0) == static_cast<ssize_t>(last.size()));
  REQUIRE(wait_for(POLLIN));
  CHECK(recv(fd, answer, sizeof(answer), 0) <= 0);
  close(fd);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  munmap(shared, sizeof(std::atomic<bool>));
}

}  // namespace
}  // namespace nowcalls::server
