// What happens to the ground under a server: disks that are full, directories that are replaced,
// memory that runs out. Whatever it is, the end is one line and an exit code that says what to do.
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "integration/calls.h"
#include "support/admin.h"
#include "support/server_process.h"
#include "support/small_disk.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

// A shell that sets a limit and becomes the server.
std::vector<std::string> Limited(const std::string& limit, const ServerProcess& server) {
  std::vector<std::string> argv = {"/bin/sh", "-c", "ulimit " + limit + R"(; exec "$0" "$@")"};
  for (const std::string& argument : server.Arguments()) argv.push_back(argument);
  return argv;
}

std::string AddressIn(const std::string& port_file) {
  const std::string port = ReadFileToString(port_file);
  return port.ends_with('\n') ? "127.0.0.1:" + port.substr(0, port.size() - 1) : "";
}

// Changes rules until one change finds no room, and the server goes without an answer to it.
void ChangeUntilTheEnd(const std::string& address) {
  RpcClient client(address);
  Json rules = Json::array();
  for (int64_t flow = 1; flow <= 50; ++flow) rules.push_back(RuleJson(flow, 1));
  int64_t level = 2;
  do {
    for (Json& rule : rules) rule["count"] = level;
    ++level;
  } while (client.Call("rules_load", {"default", rules}).ok());
}

TEST_CASE(
    "a server whose files cannot grow says so and ends with 74, however often that is logged") {
  TempDir dir;
  ServerProcess server(dir.path());
  // RocksDB's own log is the first to reach it, when the ledger is opened: units of 512 bytes.
  Process process({Limited("-f 32", server), {}, "/dev/null", dir.Sub("log"), "/dev/null"});
  REQUIRE(PollUntil(kPatienceMs, [&] { return !AddressIn(dir.Sub("port")).empty(); }));
  ChangeUntilTheEnd(AddressIn(dir.Sub("port")));
  CHECK(process.Wait() == 74);
  const std::string log = ReadFileToString(dir.Sub("log"));
  CAPTURE(log);
  CHECK(Contains(log, "File too large"));
  CHECK(Contains(log, "exiting, a restart recovers the ledger"));
}

TEST_CASE("a full disk ends servers with 74, at the start too, and takes nothing acknowledged") {
  for (const std::string size : {"300k", "1m", "3m"}) {
    CAPTURE(size);
    TempDir dir;
    SmallDisk disk(dir.Sub("disk"));
    if (!disk.Mount(size)) return;
    ServerProcess server(dir.Sub("disk"));
    server.Start();
    ChangeUntilTheEnd(server.address());
    CHECK(server.process().Wait() == 74);
    // A start may find room, since it deletes what a recovery makes superfluous, or not.
    for (int start = 0; start < 2; ++start) {
      server.StartWithoutWaiting();
      if (server.WaitUntilServing()) server.Kill9();
      const std::optional<int> ended = server.process().Wait();
      CHECK((ended == 74 || ended == -SIGKILL));
    }
    REQUIRE(disk.Grow("100m"));
    server.Start();
    // The log of the server was on the disk too, so what it said may have found no room.
    RpcClient client(server.address());
    CHECK(ListAll(&client, "rules_list", {"default"}).size() == 50);
    CHECK(server.Terminate() == 0);
    CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
  }
}

TEST_CASE("a server whose ledger is replaced ends by itself and leaves the new one alone") {
  TestServer first({RuleJson(1, 1000)});
  RpcClient alice = first.Connect("alice");
  AcquireMany(&alice, 1, 10);
  const std::string ledger = first.data_dir() + "/ledger";
  fs::create_directory(first.Sub("backup"));
  {
    TestServer other({RuleJson(1, 1000)});
    RpcClient bob = other.Connect("bob");
    AcquireMany(&bob, 1, 20);
    REQUIRE(other.server().Terminate() == 0);
    fs::copy(other.data_dir(), first.Sub("backup"), fs::copy_options::recursive);
  }
  fs::rename(ledger, first.data_dir() + "/ledger.old");
  fs::rename(first.Sub("backup") + "/ledger", ledger);
  // Nobody asks it for anything.
  CHECK(first.server().process().Wait() == 74);
  CAPTURE(first.server().log());
  CHECK(first.server().LogHas("is no longer the one that this server opened"));
  CHECK_FALSE(Contains(first.server().log(), "damaged"));
  CHECK_FALSE(Contains(first.server().log(), "a restart recovers"));
  CHECK(AdminRows(Source::Offline(first.data_dir()), {"dump"}).size() == 20);
  CHECK(RunAdmin(Source::Offline(first.data_dir()), {"verify"}).exit_code == 0);
}

// Acquires with many requests in flight until the server goes; how many it granted.
int64_t AcquireUntilTheEnd(RpcClient* client) {
  constexpr int kInFlight = 100;
  int64_t granted = 0;
  for (int i = 0; i < kInFlight; ++i) client->Send("acquire", {1, 1});
  const int64_t deadline_ms = BoottimeMs() + kPatienceMs;
  for (; client->Receive().ok() && BoottimeMs() < deadline_ms; ++granted) {
    client->Send("acquire", {1, 1});
  }
  return granted;
}

TEST_CASE("a log that somebody harms under a server, idle or busy, ends it soon; nothing is lost") {
  constexpr size_t kTokens = 50;
  for (const bool busy : {false, true}) {
    for (const bool removed : {true, false}) {
      CAPTURE(busy);
      CAPTURE(removed);
      TestServer server({RuleJson(1, 10'000'000, {{"resourceTimeout", 600'000}})});
      RpcClient alice = server.Connect("alice");
      AcquireMany(&alice, 1, kTokens);
      std::string log;
      for (const auto& entry : fs::directory_iterator(server.data_dir() + "/ledger")) {
        if (entry.path().extension() == ".log" && entry.path().string() > log) log = entry.path();
      }
      REQUIRE_FALSE(log.empty());
      if (removed) fs::remove(log);
      if (!removed) fs::resize_file(log, 0);
      const int64_t granted = kTokens + (busy ? AcquireUntilTheEnd(&alice) : 0);
      CHECK(server.server().process().Wait() == 74);
      CAPTURE(server.server().log());
      CHECK(server.server().LogHas("a log of the ledger, " + log + " was " +
                                   (removed ? "removed" : "cut")));
      CHECK(server.server().LogHas("written to data files, so nothing is lost"));
      CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
      server.server().Start();
      alice = server.Connect("alice");
      const int64_t kept = NowCalls(&alice, 1);
      CHECK(kept >= granted);
      CHECK((busy || kept == granted));
    }
  }
}

// The sanitizers reserve terabytes of addresses before the server's main begins.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("too little memory for a server is told, and exits with 74") {
  int refused = 0;
  for (int megabytes = 100; megabytes <= 700; megabytes += 50) {
    CAPTURE(megabytes);
    TempDir dir;
    ServerProcess server(dir.path());
    Process process({Limited("-v " + std::to_string(megabytes * 1024), server),
                     {},
                     "/dev/null",
                     dir.Sub("log"),
                     "/dev/null"});
    PollUntil(kPatienceMs,
              [&] { return !process.Running() || !AddressIn(dir.Sub("port")).empty(); });
    if (process.Running()) process.Signal(SIGTERM);
    const int ended = process.Wait().value_or(-1000);
    const std::string log = ReadFileToString(dir.Sub("log"));
    CAPTURE(log);
    if (ended == 0) continue;
    // So little that the shell or the dynamic linker has none is no matter of the server's.
    if (ended == 127 || ended == 2) continue;
    CHECK(ended == 74);
    CHECK(Contains(log, "fatal: "));
    CHECK(Contains(log, "raise the limits of the process"));
    ++refused;
  }
  CHECK(refused > 0);
}
#endif

}  // namespace
}  // namespace nowcalls::testing
