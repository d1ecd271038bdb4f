// Where a server listens: several addresses, and the socket in its data directory.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

std::string OwnSocketOf(const TestServer& server) { return server.data_dir() + "/server.sock"; }

// The address behind `before` in the server's line about where it serves.
std::string ServedAt(TestServer* server, const std::string& before) {
  REQUIRE(server->server().LogHas("serving on "));
  const std::string log = server->server().log();
  const size_t begin = log.find(before, log.find("serving on "));
  REQUIRE(begin != std::string::npos);
  return log.substr(begin, log.find_first_of(" ,", begin) - begin);
}

TEST_CASE("a server serves one ledger at all its addresses and at its own socket") {
  TestServer server(RuleJson(1, 10), {.arguments = {"--listen", "127.0.0.2:0"}, .environment = {}});
  RpcClient first = server.Connect("first");
  Acquire(&first, 1);
  RpcClient second(ServedAt(&server, "127.0.0.2:"));
  CHECK(NowCalls(&second, 1) == 1);
  Acquire(&second, 1);
  const auto flows = AdminRows(Source::Live(OwnSocketOf(server)), {"stat"});
  REQUIRE(flows.size() == 1);
  CHECK(flows.front().at("now_calls") == 2);
}

TEST_CASE("an act by the socket is told with the process that asked") {
  TestServer server(RuleJson(1, 10));
  RpcClient client = server.Connect("client");
  const Grant grant = Acquire(&client, 1);
  const Finished reclaimed =
      RunAdmin(Source::Live(OwnSocketOf(server)),
               {"reclaim", std::to_string(grant.token_id), "--reason", "test"});
  CHECK(reclaimed.exit_code == 0);
  CHECK(server.server().LogHas("unix:"));
}

TEST_CASE("the socket of a killed server is replaced, and an orderly end removes it") {
  TestServer server(RuleJson(1, 10));
  server.server().Kill9();
  CHECK(std::filesystem::is_socket(OwnSocketOf(server)));
  server.server().Start();
  CHECK(RunAdmin(Source::Live(OwnSocketOf(server)), {"info"}).exit_code == 0);
  CHECK(server.server().Terminate() == 0);
  CHECK_FALSE(std::filesystem::exists(OwnSocketOf(server)));
}

TEST_CASE("a file with the name of the socket is left alone and told, and the server serves") {
  TestServer server(RuleJson(1, 10));
  REQUIRE(server.server().Terminate() == 0);
  std::ofstream(OwnSocketOf(server)) << "mine";
  server.server().Start();
  CHECK(server.server().LogHas("server.sock: something that is no socket is there; remove it"));
  RpcClient client = server.Connect("client");
  Acquire(&client, 1);
  CHECK(server.server().Terminate() == 0);
  CHECK(ReadFileToString(OwnSocketOf(server)) == "mine");
}

TEST_CASE("one address of several that cannot be had ends the start with its name") {
  TestServer taken(RuleJson(1, 10));
  TempDir dir;
  ServerProcess second(dir.path(), {.arguments = {"--listen", taken.address()}, .environment = {}});
  second.StartWithoutWaiting();
  CHECK_FALSE(second.WaitUntilServing());
  CHECK(second.LogHas("cannot listen on " + taken.address()));
  CHECK_FALSE(std::filesystem::exists(second.data_dir() + "/ledger"));
}

TEST_CASE("a killed server's socket does not keep a restore from its directory") {
  TestServer server(RuleJson(1, 10));
  RpcClient client = server.Connect("client");
  Acquire(&client, 1);
  server.server().Kill9();
  const std::string backup = server.Sub("backup");
  REQUIRE(RunAdmin(Source::Offline(server.data_dir()), {"backup", "--to", backup}).exit_code == 0);
  std::filesystem::remove_all(server.data_dir() + "/ledger");
  const Finished restored =
      RunAdmin(Source::Offline(server.data_dir()), {"restore", "--from", backup});
  CHECK_MESSAGE(restored.exit_code == 0, restored.err);
  server.server().Start();
  RpcClient again = server.Connect("again");
  CHECK(NowCalls(&again, 1) == 1);
}

}  // namespace
}  // namespace nowcalls::testing
