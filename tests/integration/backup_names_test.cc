// What decides whether a server starts, and from what: no name that a client asks for a backup
// under, no restore that was cut off, and no ledger that is gone or elsewhere.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

Json RulesOfNames() { return {RuleJson(1, 1'000'000, {{"resourceTimeout", 600'000}})}; }

TEST_CASE("no backup that a client asks for is in the way of the next start") {
  const TempDir files;
  const std::string config = files.Sub("nowcalls.toml");
  const std::string rules = files.Sub("late.json");
  WriteStringToFile(config, "");
  WriteStringToFile(rules, "[]");
  TestServer server(RulesOfNames(), {{"--config", config, "--rules", "late=" + rules}, {}});
  for (const std::string& file : {config, rules}) fs::remove(file);
  RpcClient alice = server.Connect("alice");
  AcquireMany(&alice, 1, 10);
  const std::string data = server.data_dir();
  fs::create_directory(server.Sub("other"));
  fs::create_directory(data + "/backups");
  fs::create_symlink(data, server.Sub("link"));
  const struct {
    std::string to;
    std::string says;
  } cases[] = {
      {data + "/backup.json", "(backup.json): choose another name"},
      {data + "/backup.unfinished", "(backup.unfinished): choose another name"},
      {data + "/CURRENT", "(CURRENT): choose another name"},
      {data + "/restoring/", "(restoring): choose another name"},
      {server.Sub("LOCK"), "(LOCK): choose another name"},
      {server.Sub("CURRENT"), "(CURRENT): choose another name"},
      {server.Sub("other/ledger"), "(ledger): choose another name"},
      {server.Sub("other/restoring"), "(restoring): choose another name"},
      {server.Sub("port.new"), "in the way of the server's port file"},
      {server.Sub("port.new//"), "in the way of the server's port file"},
      {server.Sub("other/../port"), "in the way of the server's port file"},
      {config, "in the way of the server's file " + config},
      {files.Sub("./late.json/"), "in the way of the server's file " + rules},
      {data + "/mine", "would be in the data directory itself"},
      {server.Sub("link/mine"), "would be in the data directory itself"},
      {data + "/backups/../mine", "would be in the data directory itself"},
  };
  for (const auto& c : cases) {
    CAPTURE(c.to);
    const Reply refused = ErrorOf(&alice, "backup", Json::array({c.to}));
    CHECK(refused.error_code == kErrorBadParams);
    CHECK_MESSAGE(Contains(refused.error_message, c.says), refused.error_message);
  }
  CHECK(fs::is_empty(server.Sub("other")));
  ResultOf(&alice, "backup", Json::array({data + "/backups/mine"}));
  ResultOf(&alice, "backup", Json::array({server.Sub("other/mine")}));
  REQUIRE(server.server().Terminate() == 0);
  WriteStringToFile(config, "");
  WriteStringToFile(rules, "[]");
  server.server().Start();
  RpcClient again = server.Connect("alice");
  CHECK(NowCalls(&again, 1) == 10);
}

Finished StartIn(const std::string& data_dir, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {ProductBinary("nowcalls-server"), "--listen", "127.0.0.1:0",
                             "--data-dir", data_dir});
  return RunProgram(more);
}

TEST_CASE("a server that requires a ledger makes no empty one in place of one that is gone") {
  const TempDir dir;
  const std::string data = dir.Sub("data");
  const Finished refused = StartIn(data, {"--require-ledger"});
  CHECK(refused.exit_code == 64);
  CHECK_MESSAGE(Contains(refused.err, "there is no ledger in " + data + "/ledger, and require-"),
                refused.err);
  CHECK_FALSE(fs::exists(data));
  ServerProcess server(dir.path());
  server.Start();
  REQUIRE(server.Terminate() == 0);
  server.options().arguments.emplace_back("--require-ledger");
  server.Start();
}

TEST_CASE("a ledger one directory further down is not taken for none") {
  const TempDir dir;
  {
    TestServer server(RulesOfNames());
    RpcClient alice = server.Connect("alice");
    AcquireMany(&alice, 1, 10);
    ResultOf(&alice, "backup", Json::array({dir.Sub("backup")}));
    REQUIRE(server.server().Terminate() == 0);
    fs::create_directory(dir.Sub("data"));
    fs::copy(server.data_dir() + "/ledger", dir.Sub("data/ledger"));
  }
  const auto copy = [&](const char* from, const char* to) {
    fs::create_directories(fs::path(dir.Sub(to)).parent_path());
    fs::copy(dir.Sub(from), dir.Sub(to), fs::copy_options::recursive);
  };
  copy("data/ledger", "deep/ledger/ledger");
  copy("data", "deeper/ledger/data");
  copy("backup", "restored/ledger");
  copy("data", "parent/data");
  const struct {
    std::string named;
    std::string found;
  } cases[] = {{"deep", "deep/ledger/ledger"},
               {"deeper", "deeper/ledger/data/ledger"},
               {"restored", "restored/ledger/ledger"},
               {"parent", "parent/data/ledger"}};
  for (const auto& c : cases) {
    CAPTURE(c.named);
    for (const auto& more : {std::vector<std::string>{}, {"--require-ledger"}}) {
      const Finished refused = StartIn(dir.Sub(c.named), more);
      CHECK(refused.exit_code == 64);
      CHECK_MESSAGE(
          Contains(refused.err, "but one in " + dir.Sub(c.found) + ", and a new one would"),
          refused.err);
    }
    CHECK_FALSE(fs::exists(dir.Sub(c.named) + "/ledger/CURRENT"));
  }
}

// Killed while it copies or verifies. False: it was quicker.
bool CutOffRestore(const std::string& backup, const std::string& data_dir) {
  Process restore({.argv = {ProductBinary("nowcalls-admin"), "restore", "--from", backup,
                            "--data-dir", data_dir},
                   .environment = {}});
  PollUntil(kPatienceMs,
            [&] { return fs::exists(data_dir + "/restoring/ledger") || !restore.Running(); });
  restore.Signal(SIGKILL);
  restore.Wait();
  return !fs::exists(data_dir + "/ledger");
}

TEST_CASE("a server makes no ledger where a restore was cut off, and restore makes it at last") {
  TestServer server(RulesOfNames());
  {
    RpcClient alice = server.Connect("alice");
    AcquireMany(&alice, 1, 20'000);
    ResultOf(&alice, "backup", Json::array({server.Sub("backup")}));
  }
  std::string dir;
  for (int round = 0; round < 50; ++round) {
    dir = server.Sub("cut" + std::to_string(round));
    fs::create_directory(dir);
    if (CutOffRestore(server.Sub("backup"), dir + "/data")) break;
  }
  REQUIRE(fs::exists(dir + "/data/restoring"));
  REQUIRE_FALSE(fs::exists(dir + "/data/ledger"));
  const Finished refused = RunProgram(
      {ProductBinary("nowcalls-server"), "--listen", "127.0.0.1:0", "--data-dir", dir + "/data"});
  CHECK(refused.exit_code == 64);
  CHECK_MESSAGE(Contains(refused.err, "remove " + dir + "/data/restoring and run"), refused.err);
  CHECK_FALSE(fs::exists(dir + "/data/ledger"));
  const std::vector<std::string> restore = {ProductBinary("nowcalls-admin"),
                                            "restore",
                                            "--from",
                                            server.Sub("backup"),
                                            "--data-dir",
                                            dir + "/data"};
  const Finished early = RunProgram(restore);
  CHECK(early.exit_code == 64);
  CHECK(Contains(early.err, "remove that first"));
  fs::remove_all(dir + "/data/restoring");
  const Finished restored = RunProgram(restore);
  REQUIRE_MESSAGE(restored.exit_code == 0, restored.err);
  ServerProcess copy(dir);
  copy.Start();
  CHECK(AdminRows(Source::Live(copy.address()), {"dump"}).size() == 20'000);
}

}  // namespace
}  // namespace nowcalls::testing
