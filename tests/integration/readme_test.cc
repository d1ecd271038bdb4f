// The README's own examples, run as a reader would run them.
#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "integration/readme_client.h"
#include "server/settings.h"
#include "support/admin.h"
#include "support/server_process.h"
#include "test_paths.h"

namespace nowcalls::testing {
namespace {

TEST_CASE("the README's Python example acquires, is seen by the admin tool and releases on Enter") {
  TestServer server(nullptr,
                    {{"--rules", "shop=" NOWCALLS_SOURCE_DIR "/data/rules/shop.json"}, {}});
  ReadmeClient example(server.dir(), server.address());
  const Source live = Source::Live(server.address());
  std::vector<Json> rows;
  REQUIRE(PollUntil(kPatienceMs, [&] {
    rows = AdminRows(live, {"tokens"});
    return !rows.empty() || !example.process().Running();
  }));
  CAPTURE(example.err());
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].at("flow_id") == 1001);
  example.PressEnter();
  CHECK(example.process().Wait() == 0);
  const std::string printed = example.out();
  CHECK(printed.find(rows[0].at("token_id").dump()) != std::string::npos);
  CHECK(AdminRows(live, {"tokens"}).empty());
  RpcClient client = server.Connect();
  const Json flow = ResultOf(&client, "flow", Json::array({1001}));
  CHECK(flow.at("counters").at("granted") == 1);
  CHECK(flow.at("counters").at("ended").at("released") == 1);
}

// The programs of which the README says that they are in build/bin after `tools/dev run`.
TEST_CASE("the programs that the README names after its start are built by that start") {
  const std::string readme = ReadFileToString(NOWCALLS_SOURCE_DIR "/README.md");
  const size_t begin = readme.find("The programs are `build/bin/");
  REQUIRE(begin != std::string::npos);
  const std::string named = readme.substr(begin, readme.find("\n\n", begin) - begin);
  const std::string dev = ReadFileToString(NOWCALLS_SOURCE_DIR "/tools/dev");
  const size_t run = dev.find("\n  build release ", dev.find("\ncmd_run() {"));
  REQUIRE(run != std::string::npos);
  const std::string built = dev.substr(run + 1, dev.find('\n', run + 1) - run - 1) + " ";
  for (const std::string program : {"nowcalls-server", "nowcalls-admin", "nowcalls-bench"}) {
    CAPTURE(program);
    CHECK(named.find(program) != std::string::npos);
    CHECK(built.find(" " + program + " ") != std::string::npos);
  }
}

// The line of the README's table of settings about one flag.
std::string ReadmeRow(const std::string& flag) {
  std::istringstream lines(ReadFileToString(NOWCALLS_SOURCE_DIR "/README.md"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| `" + flag + " ") || line.starts_with("| `" + flag + "`")) return line;
  }
  return "";
}

TEST_CASE("the README's table has every setting with its default and its range") {
  const server::ServerConfig defaults;
  for (const server::Setting& setting : server::Settings()) {
    CAPTURE(setting.name);
    const std::string row = ReadmeRow(setting.flag());
    CHECK_FALSE(row.empty());
    if (setting.kind == server::SettingKind::kSwitch) continue;
    const std::string fallback = setting.get(defaults);
    CHECK(row.find("| " + (fallback.empty() ? "none" : fallback) + " |") != std::string::npos);
    // What a wrong value is answered with ends "... from 1 to 1000, got 'x'".
    server::ServerConfig config;
    const std::string refusal = setting.set({"x"}, &config).message();
    const size_t from = refusal.find(" from ");
    if (from == std::string::npos) continue;
    const std::string range = refusal.substr(from + 6, refusal.rfind(", got") - from - 6);
    CAPTURE(range);
    CHECK(row.find(range) != std::string::npos);
  }
}

}  // namespace
}  // namespace nowcalls::testing
