// Settings that change while the server runs: the configuration file and SIGHUP.
#include <doctest/doctest.h>

#include <csignal>
#include <string>

#include "integration/calls.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {
namespace {

// A server with a configuration file, and rules of one flow with room for all.
class Configured {
 public:
  explicit Configured(const std::string& text)
      : file_(dir_.Sub("nowcalls.toml")),
        server_((Write(text), RuleJson(7, 1000)), {{"--config", file_}, {}}),
        client_(server_.Connect("worker")) {}

  void Write(const std::string& text) { WriteStringToFile(file_, text); }
  Json Limit(const std::string& name) {
    return ResultOf(&client_, "info", Json::array()).at("limits").at(name);
  }
  bool Becomes(const std::string& name, int64_t value) {
    return PollUntil(kPatienceMs, [&] { return Limit(name) == value; });
  }
  int64_t Acquire() { return testing::Acquire(&client_, 7).status; }
  ServerProcess& server() { return server_.server(); }
  RpcClient& client() { return client_; }
  const std::string& file() const { return file_; }

 private:
  TempDir dir_;
  const std::string file_;
  TestServer server_;
  RpcClient client_;
};

TEST_CASE("a limit that is changed in the configuration file holds for the next call") {
  Configured c("tokens_max = 100\n");
  CHECK(c.Limit("tokens_max") == 100);
  CHECK(c.Acquire() == kStatusOk);
  c.Write("tokens_max = 1\nlog_level = 'debug'\n");
  REQUIRE(c.Becomes("tokens_max", 1));
  CHECK(c.server().LogHas("configuration: tokens-max is 1 now, and was 100"));
  CHECK(c.server().LogHas("configuration: log-level is debug now, and was info"));
  CHECK(c.Acquire() == kStatusTooManyRequest);
  c.Write("tokens_max = 2\n");
  REQUIRE(c.Becomes("tokens_max", 2));
  CHECK(c.Acquire() == kStatusOk);
}

TEST_CASE("a reload that raises the log level tells what it changes, and is then silent") {
  Configured c("tokens_max = 100\n");
  c.Write("tokens_max = 1\nlog_level = 'error'\nhistory_max = 5\n");
  REQUIRE(c.Becomes("tokens_max", 1));
  CHECK(c.server().LogHas("configuration: tokens-max is 1 now, and was 100"));
  CHECK(c.server().LogHas("configuration: log-level is error now, and was info"));
  CHECK(c.server().LogHas(
      "configuration: these settings have changed, and need a restart: history-max"));
  c.Write("tokens_max = 2\nlog_level = 'error'\n");
  REQUIRE(c.Becomes("tokens_max", 2));
  c.Write("tokens_max = 3\nlog_level = 'info'\n");
  CHECK(c.server().LogHas("configuration: tokens-max is 3 now, and was 2"));
  CHECK(c.server().log().find("tokens-max is 2 now") == std::string::npos);
}

TEST_CASE("SIGHUP reads the configuration at once, and names what needs a restart") {
  Configured c("history_max = 100\n");
  c.Write("history_max = 5\nsessions_max = 50\n");
  c.server().process().Signal(SIGHUP);
  REQUIRE(c.Becomes("sessions_max", 50));
  CHECK(c.Limit("history_max") == 100);
  CHECK(c.server().LogHas(
      "configuration: these settings have changed, and need a restart: history-max"));
}

TEST_CASE("a configuration that is invalid changes nothing, and the log says why") {
  Configured c("tokens_max = 100\n");
  c.Write("tokens_max = 5\nsweep_interval_ms = 0\n");
  c.server().process().Signal(SIGHUP);
  CHECK(c.server().LogHas("the configuration cannot be read again: " + c.file() +
                          ":2: sweep_interval_ms: must be an integer from 1 to 60000, got '0'; no "
                          "setting changes until that is put right"));
  CHECK(c.Limit("tokens_max") == 100);
  c.Write("disk_free_low_bytes = 1000\ndisk_free_high_bytes = 5\n");
  c.server().process().Signal(SIGHUP);
  CHECK(c.server().LogHas("disk_free_high_bytes: must be at least disk-free-low-bytes"));
  c.Write("tokens_max = 6\n");
  CHECK(c.Becomes("tokens_max", 6));
}

TEST_CASE("the guard of a namespace changes while the server runs, and namespaces shows it") {
  Configured c("[namespace_guard]\ndefault = 5\n");
  const auto guard = [&]() -> Json {
    for (const Json& row : ListAll(&c.client(), "namespaces")) {
      if (row.at("namespace") == "default") return row.at("requests_max");
    }
    return nullptr;
  };
  CHECK(guard() == 5);
  c.Write("[namespace_guard]\ndefault = 7\n");
  c.server().process().Signal(SIGHUP);
  CHECK(PollUntil(kPatienceMs, [&] { return guard() == 7; }));
}

TEST_CASE("a flag beats a file that changes while the server runs") {
  const TempDir dir;
  const std::string file = dir.Sub("nowcalls.toml");
  WriteStringToFile(file, "tokens_max = 100\n");
  TestServer server(nullptr, {{"--config", file, "--tokens-max", "50"}, {}});
  RpcClient client = server.Connect("worker");
  WriteStringToFile(file, "tokens_max = 70\nsessions_max = 9\n");
  server.server().process().Signal(SIGHUP);
  const auto limit = [&](const char* name) {
    return ResultOf(&client, "info", Json::array()).at("limits").at(name);
  };
  REQUIRE(PollUntil(kPatienceMs, [&] { return limit("sessions_max") == 9; }));
  CHECK(limit("tokens_max") == 50);
}

}  // namespace
}  // namespace nowcalls::testing
