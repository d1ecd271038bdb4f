// The examples of README.md and of the operator's manual, run as a reader would run them.
#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>
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

namespace fs = std::filesystem;

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

// The programs of which the README says that they are in build/bin after `tools/dev run`.
TEST_CASE("the programs that the README names after its start are built by that start") {
  const std::string readme = ReadFileToString(kRoot + "/README.md");
  const size_t begin = readme.find("The programs are `build/bin/");
  REQUIRE(begin != std::string::npos);
  const std::string named = readme.substr(begin, readme.find("\n\n", begin) - begin);
  const std::string dev = ReadFileToString(kRoot + "/tools/dev");
  const size_t run = dev.find("\n  build release ", dev.find("\ncmd_run() {"));
  REQUIRE(run != std::string::npos);
  const std::string built = dev.substr(run + 1, dev.find('\n', run + 1) - run - 1) + " ";
  for (const std::string program : {"nowcalls-server", "nowcalls-admin", "nowcalls-bench"}) {
    CAPTURE(program);
    CHECK(named.find(program) != std::string::npos);
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

// A document without its fenced blocks, whose lines are neither headings nor links.
std::string WithoutFences(const std::string& text) {
  std::istringstream lines(text);
  std::string kept;
  bool fenced = false;
  for (std::string line; std::getline(lines, line);) {
    const bool fence = line.starts_with("```");
    if (!fence && !fenced) kept += line + "\n";
    if (fence) fenced = !fenced;
  }
  return kept;
}

// The anchor that a Markdown renderer makes of a heading: "How tokens end" is "how-tokens-end".
std::string Anchor(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == ' ') anchor += '-';
    if (c == '-' || c == '_' || std::isalnum(byte) != 0) {
      anchor += static_cast<char>(std::tolower(byte));
    }
  }
  return anchor;
}

std::set<std::string> Anchors(const fs::path& document) {
  std::istringstream lines(WithoutFences(ReadFileToString(document)));
  std::set<std::string> anchors;
  for (std::string line; std::getline(lines, line);) {
    const size_t blank = line.find(' ');
    if (!line.starts_with("#") || blank == std::string::npos) continue;
    anchors.insert(Anchor(line.substr(blank + 1)));
  }
  return anchors;
}

// The targets of [text](target), except those on the Web.
std::vector<std::string> Links(const fs::path& document) {
  const std::string text = WithoutFences(ReadFileToString(document));
  std::vector<std::string> links;
  for (size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
    const std::string target = text.substr(at + 2, text.find(')', at) - at - 2);
    if (!target.starts_with("http")) links.push_back(target);
  }
  return links;
}

TEST_CASE("every link in README and the manual leads to a file and a heading that exist") {
  std::vector<fs::path> documents = {kRoot + "/README.md", kRoot + "/src/wire/PROTOCOL.md",
                                     kRoot + "/src/ledger/FORMAT.md"};
  for (const auto& page : fs::directory_iterator(kRoot + "/tools/manual")) {
    documents.push_back(page.path());
  }
  size_t links = 0;
  for (const fs::path& document : documents) {
    CAPTURE(document.string());
    for (const std::string& link : Links(document)) {
      CAPTURE(link);
      const size_t hash = link.find('#');
      const std::string file = link.substr(0, hash);
      const fs::path target = file.empty() ? document : document.parent_path() / file;
      ++links;
      REQUIRE(fs::exists(target));
      if (hash != std::string::npos) CHECK(Anchors(target).contains(link.substr(hash + 1)));
    }
  }
  CHECK(links > 100);
}

}  // namespace
}  // namespace nowcalls::testing
