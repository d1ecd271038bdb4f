// The examples of README.md and of the operator's manual, run as a reader would run them.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "integration/calls.h"
#include "integration/readme_client.h"
#include "support/admin.h"
#include "support/process.h"
#include "support/server_process.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

const std::string kRoot = NOWCALLS_SOURCE_DIR;

ServerOptions SampleRules() { return {{"--rules", "shop=" + kRoot + "/data/rules/shop.json"}, {}}; }

// Waits until the example holds a token or has ended, and returns the tokens that are out.
std::vector<Json> TokensOf(ReadmeClient* example, const TestServer& server) {
  const Source live = Source::Live(server.address());
  std::vector<Json> rows;
  REQUIRE(PollUntil(kPatienceMs, [&] {
    rows = AdminRows(live, {"tokens"});
    return !rows.empty() || !example->process().Running();
  }));
  return rows;
}

TEST_CASE("the README's Python example acquires, is seen by the admin tool and releases on Enter") {
  TestServer server(nullptr, SampleRules());
  ReadmeClient example(server.dir(), server.address());
  const std::vector<Json> rows = TokensOf(&example, server);
  CAPTURE(example.err());
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("flow_id") == 1001);
  example.PressEnter();
  CHECK(example.process().Wait() == 0);
  const std::string printed = example.out();
  CHECK(printed.find(rows[0].at("token_id").dump()) != std::string::npos);
  CHECK(AdminRows(Source::Live(server.address()), {"tokens"}).empty());
  RpcClient client = server.Connect();
  const Json flow = ResultOf(&client, "flow", Json::array({1001}));
  CHECK(flow.at("counters").at("granted") == 1);
  CHECK(flow.at("counters").at("ended").at("released") == 1);
}

bool HasIpv6Loopback() {
  const std::string addresses = ReadFileToString("/proc/net/if_inet6");
  return addresses.find("00000000000000000000000000000001 ") != std::string::npos;
}

// Starts a server on `host`, and lets the example take a token from `host` with the server's port.
void CheckAddressForm(const std::string& host) {
  CAPTURE(host);
  ServerOptions options = SampleRules();
  options.host = host;
  TestServer server(nullptr, options);
  const std::string port = server.address().substr(server.address().rfind(':'));
  ReadmeClient example(server.dir(), host + port);
  CHECK(TokensOf(&example, server).size() == 1);
  example.PressEnter();
  CAPTURE(example.err());
  CHECK(example.process().Wait() == 0);
}

TEST_CASE("the README's Python example takes every form of address that the README shows") {
  const std::string readme = ReadFileToString(kRoot + "/README.md");
  for (const std::string host : {"127.0.0.1", "[::1]"}) {
    CAPTURE(host);
    CHECK(readme.find(host + ":18730") != std::string::npos);
    if (host == "[::1]" && !HasIpv6Loopback()) {
      MESSAGE("skipped: this machine has no ::1");
      continue;
    }
    CheckAddressForm(host);
  }
  CheckAddressForm("localhost");
}

TEST_CASE("the programs that the README names after its start are built by that start") {
  const std::string readme = ReadFileToString(kRoot + "/README.md");
  const size_t begin = readme.find("`tools/dev run` builds `build/bin/");
  REQUIRE(begin != std::string::npos);
  const std::string named = readme.substr(begin, readme.find(". ", begin) - begin);
  const std::string dev = ReadFileToString(kRoot + "/tools/dev");
  const size_t run = dev.find("\n  build release ", dev.find("\ncmd_run() {"));
  REQUIRE(run != std::string::npos);
  const std::string built = dev.substr(run + 1, dev.find('\n', run + 1) - run - 1) + " ";
  for (const std::string program : {"nowcalls-server", "nowcalls-admin"}) {
    CAPTURE(program);
    CHECK(named.find("`build/bin/" + program + "`") != std::string::npos);
    CHECK(built.find(" " + program + " ") != std::string::npos);
  }
}

TEST_CASE("the manual's page about the configuration is what the server prints") {
  TempDir dir;
  const std::string out = dir.path() + "/out";
  Process server({{NOWCALLS_BIN_DIR "/nowcalls-server", "--help=markdown"}, {}, out});
  REQUIRE(server.Wait() == 0);
  const std::string page = ReadFileToString(kRoot + "/tools/manual/configuration.md");
  CHECK_MESSAGE(ReadFileToString(out) == page,
                "make it anew: nowcalls-server --help=markdown > tools/manual/configuration.md");
}

}  // namespace
}  // namespace nowcalls::testing
