// A whole server in a process of its own, for what no other process can bring about.
#include "server/server.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "recovery/machine_clock.h"
#include "recovery/recovery.h"
#include "server/log/logging.h"
#include "store/memory_store.h"
#include "support/core_harness.h"
#include "support/process.h"
#include "support/temp_dir.h"

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

[[noreturn]] void ServeUntilSigterm(const std::string& rule_file) {
  SetUpLogging(Severity::kError, LogFormat::kText);
  HangWorkers();
  store::MemoryStore store({});
  auto ledger = recovery::Recover(&store, {});
  ServerConfig config;
  config.rules = {{"default", rule_file}};
  const auto no_backup = [](const std::string&, const std::atomic<bool>&,
                            const std::function<void()>&) {
    return Status::FailedPrecondition("a ledger in memory has no files");
  };
  web::Board board;
  const recovery::MachineClock clock(*ledger);
  Additions none({});
  Server server(
      config, &*ledger, &clock, &store, no_backup, [] { return Status::Ok(); }, &board,
      ConfigAgain{}, &none, nullptr);
  const Status loaded = server.PutRulesInForce(ReadRuleFiles(config.rules));
  auto listener = Listener::Bind(net::Endpoint::Tcp({"127.0.0.1", 0}));
  if (!loaded.ok() || !listener.ok()) _exit(1);
  std::vector<std::unique_ptr<Listener>> listeners;
  listeners.push_back(*std::move(listener));
  server.Start(std::move(listeners));
  raise(SIGTERM);
  server.Run();
  _exit(2);  // It cannot return while a look at a file is under way.
}

TEST_CASE("the end of a server does not wait for a look at a rule file") {
  const testing::TempDir dir;
  testing::WriteStringToFile(dir.Sub("rules.json"), testing::RulesJson({{.flow = 1}}));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) ServeUntilSigterm(dir.Sub("rules.json"));
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace nowcalls::server
