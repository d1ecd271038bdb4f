// `nowcalls acquire`, `release`, `keep`, `flow`, `ping` and `top`; the pages and the completion.
#include <doctest/doctest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "command/pseudo_terminal.h"
#include "support/fake_server.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/server_process.h"
#include "support/temp_dir.h"
#include "test_paths.h"
#include "wire/messages.h"
#include "wire/rows.h"

namespace nowcalls::testing {
namespace {

Finished RunNowcalls(const TestServer& server, std::vector<std::string> words) {
  words.insert(words.begin(), ProductBinary("nowcalls"));
  return RunProgram(words, {{"NOWCALLS_SERVER", server.address()}, {"NOWCALLS_CLIENT_ID", "me"}});
}

}  // namespace

TEST_CASE("tokens for scripts are taken, kept and given back by their session's name") {
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 60'000}}));
  const Finished acquired = RunNowcalls(server, {"acquire", "--flow", "7", "--json"});
  REQUIRE_MESSAGE(acquired.exit_code == 0, acquired.err);
  const Json token = Json::parse(acquired.out);
  CHECK(token.at("flow_id") == 7);
  CHECK(token.at("hold_ms") == 120'000);
  const auto id = token.at("token").get<std::string>();
  const Finished second = RunNowcalls(server, {"acquire", "--flow", "7"});
  CHECK(second.exit_code == 1);
  CHECK(second.err == "nowcalls: flow 7 refused by level: 1 of 1 in progress\n");
  CHECK(RunNowcalls(server, {"keep", id}).out == "to hold 120000 ms\n");
  CHECK(RunNowcalls(server, {"release", id, "--client-id", "other"}).exit_code == 1);
  CHECK(RunNowcalls(server, {"release", id}).out == "released\n");
  CHECK(RunNowcalls(server, {"release", id}).exit_code == 1);
  CHECK(RunNowcalls(server, {"keep", id}).exit_code == 1);
  const Finished nobody = RunProgram({ProductBinary("nowcalls"), "acquire", "--flow", "7"});
  CHECK(nobody.exit_code == 64);
  CHECK(Contains(nobody.err, "--client-id: is required"));
}

TEST_CASE("output that cannot be written is a failure, and a token that nobody sees goes back") {
  TestServer server(RuleJson(7, 1, {{"clientOfflineTime", 60'000}}));
  const std::string nowcalls = ProductBinary("nowcalls");
  for (const char* words : {"acquire --flow 7", "acquire --flow 7 --json", "flow 7", "top --once",
                            "ping --count 2 --interval 10ms", "--help"}) {
    CAPTURE(words);
    const Finished failed =
        RunProgram({"/bin/sh", "-c", nowcalls + " " + words + " > /dev/full"},
                   {{"NOWCALLS_SERVER", server.address()}, {"NOWCALLS_CLIENT_ID", "me"}});
    CHECK(failed.exit_code == 74);
    CHECK(failed.err == "nowcalls: writing the output failed\n");
  }
  CHECK(Contains(RunNowcalls(server, {"flow", "7"}).out, ": 0 of 1 calls in progress"));
}

TEST_CASE("flow and ping show what they ask") {
  TestServer server(RuleJson(7, 3));
  CHECK(RunNowcalls(server, {"flow", "7"}).out ==
        "flow 7 (resource-7): 0 of 3 calls in progress, 0 waiting\n");
  CHECK(RunNowcalls(server, {"flow", "7", "--json"}).out ==
        "{\"flow_id\":7,\"now_calls\":0,\"level\":3,\"waiters\":0,\"kind\":\"flow\"}\n");
  CHECK(RunNowcalls(server, {"flow", "8"}).exit_code == 1);
  const Finished pinged = RunNowcalls(server, {"ping", "--count", "3", "--interval", "10ms"});
  CHECK(pinged.exit_code == 0);
  CHECK(Contains(pinged.out, "3 answers of 3, min/avg/max "));
  CHECK(RunProgram({ProductBinary("nowcalls"), "ping", "--server", "127.0.0.1:1"}).exit_code == 69);
}

TEST_CASE("acquire, flow and top take the resource of a rule") {
  TestServer server(RuleJson(7, 3, {{"clientOfflineTime", 60'000}}));
  const Finished json = RunNowcalls(server, {"acquire", "--flow", "resource-7", "--json"});
  REQUIRE_MESSAGE(json.exit_code == 0, json.err);
  CHECK(Json::parse(json.out).at("flow_id") == "resource-7");
  const Finished text = RunNowcalls(server, {"acquire", "--flow", "resource-7"});
  CHECK(Contains(text.out, ", flow resource-7, fence "));
  CHECK(RunNowcalls(server, {"flow", "resource-7"}).out ==
        "flow 7 (resource-7): 2 of 3 calls in progress, 0 waiting\n");
  const Finished none = RunNowcalls(server, {"flow", "resource-8"});
  CHECK(none.exit_code == 1);
  CHECK(Contains(none.err, "flow_id 'resource-8' has neither a rule nor tokens"));
  CHECK(Contains(RunNowcalls(server, {"top", "resource-7", "--once"}).out, "flow 7: 2 holders"));
  CHECK(RunNowcalls(server, {"top", "resource-8", "--once"}).exit_code == 1);
}

TEST_CASE("ping goes on when its server is back, and sums up when it is interrupted") {
  TestServer server(RuleJson(7, 3));
  const TempDir dir;
  Process::Options options;
  options.argv = {ProductBinary("nowcalls"), "ping",       "--server",
                  server.address(),          "--interval", "10ms"};
  options.stdout_path = dir.Sub("out");
  options.stderr_path = dir.Sub("err");
  Process ping(options);
  const auto prints = [&](const char* file, const std::string& text) {
    return PollUntil(kPatienceMs, [&] { return Contains(ReadFileToString(dir.Sub(file)), text); });
  };
  CHECK(prints("out", "answer 1: "));
  server.server().StayOnPort();
  server.server().Kill9();
  CHECK(prints("err", "Connection refused"));
  const std::string before = ReadFileToString(dir.Sub("out"));
  server.server().Start();
  CHECK(PollUntil(kPatienceMs, [&] { return ReadFileToString(dir.Sub("out")) != before; }));
  ping.Signal(SIGINT);
  CHECK(ping.Wait() == 69);
  CHECK(prints("out", ", min/avg/max "));
}

TEST_CASE("top shows flows, and the holders and waiters of one") {
  TestServer server(Json::array({RuleJson(7, 1), RuleJson(8, 4)}));
  RpcClient holder = server.Connect("holder");
  REQUIRE(holder.Call("acquire", {7, 1}).ok());
  RpcClient waiter = server.Connect("waiter");
  waiter.Send("acquire", {7, 1, Json{{"wait_ms", 60'000}}});
  Finished frame;
  REQUIRE(PollUntil(kPatienceMs, [&] {
    frame = RunNowcalls(server, {"top", "7", "--once"});
    return Contains(frame.out, "1 waiters");
  }));
  CHECK(frame.exit_code == 0);
  CHECK(Contains(frame.out, "2 flows, 1 calls in progress, 1 waiting\n"));
  CHECK(Contains(frame.out, ">          7  ##########         1         1       1 "));
  CHECK(Contains(frame.out, "          8  ..........         0         4       0 "));
  CHECK(Contains(frame.out, "flow 7: 1 holders"));
  CHECK(Contains(frame.out, "  holder\n"));
  CHECK(Contains(frame.out, "  waiter\n"));
}

TEST_CASE("top of a flow that the server does not know says so") {
  TestServer server(Json::array({RuleJson(7, 1)}));
  const Finished top = RunNowcalls(server, {"top", "999", "--once"});
  CHECK(top.exit_code == 1);
  CHECK(top.out.empty());
  CHECK(Contains(top.err, "999"));
}

TEST_CASE("top ends though the server's pages do not") {
  FakeServer server([](FakeServer::Peer* peer) {
    wire::Envelope request;
    for (uint64_t cursor = 1; peer->Take(&request); ++cursor) {
      peer->Answer([&](wire::OutputBuffer* out) {
        if (request.method == wire::Method::kFlows) {
          wire::EncodeFlowPage(request.msgid, {}, cursor, out);
        } else {
          wire::EncodePing(request.msgid, 1, out);
        }
      });
    }
  });
  const Finished top =
      RunProgram({ProductBinary("nowcalls"), "top", "--once", "--server", server.address()});
  CHECK(top.exit_code == 0);
  CHECK(Contains(top.out, ": 0 flows, 0 calls in progress, 0 waiting\n"));
}

TEST_CASE("a server's words cannot drive the terminal of those who ask it") {
  // NOLINTNEXTLINE(misc-misleading-bidirectional)
  const std::string evil = "gone\x1b]52;c;eA==\x07\u202e";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"flow", "7"},
                                             {"ping", "--count", "1"},
                                             {"top", "--once"},
                                             {"exec", "--flow", "7", "--", "true"},
                                             {"acquire", "--flow", "7", "--client-id", "me"},
                                             {"release", "5", "--client-id", "me"},
                                             {"keep", "5", "--client-id", "me"}}) {
    FakeServer server([&evil](FakeServer::Peer* peer) {
      wire::Envelope request;
      while (peer->Take(&request)) {
        peer->Answer([&](wire::OutputBuffer* out) {
          // A client whose hello is refused would connect again, and wait.
          if (request.method == wire::Method::kHello) {
            return wire::EncodeHello(request.msgid, {.server_version = "0.1", .session = 1}, out);
          }
          wire::EncodeError(request.msgid, {wire::ErrorCode::kBadParams, evil}, out);
        });
      }
    });
    std::vector<std::string> command = {ProductBinary("nowcalls"), words[0],    "--server",
                                        server.address(),          "--timeout", "60s"};
    command.insert(command.end(), words.begin() + 1, words.end());
    const Finished told = RunProgram(command);
    INFO(words[0]);
    CHECK(told.exit_code != 0);
    CHECK(Contains(told.err, "gone\\x1b]52;c;eA==\\x07\\u{202e}"));
    CHECK_FALSE(Contains(told.err + told.out, "\x1b"));
    // NOLINTNEXTLINE(misc-misleading-bidirectional)
    CHECK_FALSE(Contains(told.err + told.out, "\u202e"));
  }
}

TEST_CASE("a word that is no command or option is named, with those that there are") {
  const auto error = [](std::vector<std::string> words) {
    words.insert(words.begin(), ProductBinary("nowcalls"));
    const Finished told = RunProgram(words);
    CHECK(told.exit_code == 64);
    return told.err.substr(0, told.err.find('\n'));
  };
  const std::string all = "exec, acquire, release, keep, flow, ping, top";
  CHECK(error({}) == "nowcalls: a command is missing; there are " + all);
  CHECK(error({"somewhere"}) == "nowcalls: 'somewhere' is not a command; there are " + all);
  CHECK(error({"exce"}) ==
        "nowcalls: 'exce' is not a command; there are " + all + "; did you mean exec?");
  CHECK(error({"--foo"}) == "nowcalls: '--foo' is no option of 'nowcalls'");
  CHECK(error({"--server", "a:1", "ping"}) ==
        "nowcalls: --server belongs behind the command: nowcalls ping --server ...");
  CHECK(error({"exec", "--flwo", "7", "--", "true"}) ==
        "nowcalls: '--flwo' is no option of 'nowcalls exec'; did you mean --flow?");
  CHECK(error({"flow", "1", "2", "3"}) == "nowcalls: '2' is one argument too many");
}

TEST_CASE("top on a terminal follows keys, survives its server, and leaves the screen as it was") {
  TestServer server(Json::array({RuleJson(7, 1), RuleJson(8, 4)}));
  RpcClient holder = server.Connect("holder");
  REQUIRE(holder.Call("acquire", {8, 1}).ok());
  PseudoTerminal top(
      {ProductBinary("nowcalls"), "top", "--server", server.address(), "--interval", "50ms"});
  CHECK(top.Shows(">          8  ###"));
  CHECK_FALSE(top.Echoes());
  top.Press("\n");
  CHECK(top.Shows("flow 8: 1 holders"));
  top.Press("j");
  CHECK(top.Shows(">          7  ..."));
  top.Press("ss");
  CHECK(top.Shows(">          8"));
  server.server().StayOnPort();
  server.server().Kill9();
  CHECK(top.Shows("no answer, the figures are old: "));
  server.server().Start();
  CHECK(top.Shows("2 flows, 1 calls in progress"));
  SUBCASE("by a key") { top.Press("q"); }
  SUBCASE("by a signal") { top.Signal(SIGTERM); }
  CHECK(top.Shows("\x1b[?25h\x1b[?1049l"));
  CHECK(top.Wait() == 0);
  CHECK(top.Echoes());
}

}  // namespace nowcalls::testing
