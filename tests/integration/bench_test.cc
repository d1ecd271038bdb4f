// nowcalls-bench against real servers. What is fast is not asked here; what is counted is.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/fake_server.h"
#include "support/machine.h"
#include "support/server_process.h"
#include "support/tcp.h"
#include "test_paths.h"
#include "wire/json.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kFirstFlow = 1'000'001;

std::vector<std::string> BenchCommand(std::vector<std::string> words, const std::string& target) {
  words.insert(words.begin(), ProductBinary("nowcalls-bench"));
  words.insert(words.end(), {"--target", target});
  return words;
}

Finished RunBench(const std::vector<std::string>& words, const std::string& target) {
  return RunProgram(BenchCommand(words, target));
}

std::string Nowcalls(const TestServer& server) { return "nowcalls://" + server.address(); }

// The JSON of a run that must have ended well.
Json Figures(const std::vector<std::string>& words, const std::string& target) {
  const Finished run = RunBench(words, target);
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  return Json::parse(run.out);
}

uint64_t SumOf(const Json& rows, const std::string& name) {
  return std::accumulate(
      rows.begin(), rows.end(), uint64_t{0},
      [&name](uint64_t sum, const Json& row) { return sum + row.at(name).get<uint64_t>(); });
}

void CheckAddsUp(const Json& figures) {
  CAPTURE(figures.dump());
  const Json& counts = figures.at("counts");
  const auto granted = counts.at("granted").get<uint64_t>();
  const auto released = counts.at("released").get<uint64_t>();
  CHECK(figures.at("operations") == granted + released);
  for (const char* name : {"operations", "granted", "released", "refused", "errors"}) {
    const Json& total = counts.contains(name) ? counts.at(name) : figures.at(name);
    CHECK(SumOf(figures.at("seconds"), name) == total);
  }
  uint64_t refused = 0;
  for (const auto& [name, count] : counts.at("refused_by").items())
    refused += count.get<uint64_t>();
  CHECK(counts.at("refused") == refused);
  const Json& latency = figures.at("latency_us");
  CHECK(latency.at("both").at("count").get<uint64_t>() ==
        latency.at("acquire").at("count").get<uint64_t>() +
            latency.at("release").at("count").get<uint64_t>());
  for (const auto& item : latency.items()) {
    const std::string& kind = item.first;
    const Json& quantiles = item.second;
    CAPTURE(kind);
    double before = 0;
    for (const char* name : {"p50", "p90", "p99", "p99.9", "p99.99", "max"}) {
      CHECK(quantiles.at(name).get<double>() >= before);
      before = quantiles.at(name).get<double>();
    }
  }
}

TEST_CASE("nowcalls-bench in a closed loop counts what the server counts, and leaves nothing") {
  Machine machine;  // On a disk that stalls nothing is answered within the interval.
  machine.control().sync_is_free = 1;
  TestServer server(nullptr, {{}, machine.environment()});
  const Json figures =
      Figures({"--connections", "3", "--in-flight", "4", "--flows", "2", "--duration", "0.5",
               "--warm-up", "0", "--server-pid", std::to_string(server.server().process().pid())},
              Nowcalls(server));
  CheckAddsUp(figures);
  CHECK(figures.at("counts").at("granted") > 0);
  CHECK(figures.at("counts").at("errors") == 0);
  CHECK(figures.at("target").at("durability") == "sync");
  CHECK(figures.at("server").at("resident_bytes") > 0);
  RpcClient client = server.Connect();
  const Json info = ResultOf(&client, "info");
  // What was answered after the interval was not counted by the tool.
  CHECK(info.at("totals").at("granted") >= figures.at("counts").at("granted"));
  CHECK(info.at("totals").at("granted") == info.at("totals").at("ended").at("released"));
  CHECK(info.at("counts").at("tokens") == 0);
  CHECK(info.at("counts").at("rules") == 0);
}

TEST_CASE("nowcalls-bench asks in Sentinel's frames, for tokens and for calls a second") {
  TestServer server(nullptr, {{"--namespace-qps-max", "0"}, {}});
  const std::vector<std::string> load = {"--connections", "2",       "--in-flight", "8",
                                         "--duration",    "0.5",     "--warm-up",   "0",
                                         "--protocol",    "sentinel"};
  const Json tokens = Figures(load, Nowcalls(server));
  CheckAddsUp(tokens);
  CHECK(tokens.at("counts").at("granted") > 0);
  CHECK(tokens.at("counts").at("released") > 0);
  CHECK(tokens.at("counts").at("errors") == 0);
  std::vector<std::string> flow = load;
  flow.insert(flow.end(), {"--operation", "request", "--level", "1000"});
  const Json rates = Figures(flow, Nowcalls(server));
  CheckAddsUp(rates);
  CHECK(rates.at("options").at("operation") == "request");
  // Windows of a second that half a second may touch, with room for a slow machine.
  CHECK(rates.at("counts").at("granted") >= 1000);
  CHECK(rates.at("counts").at("refused_by").at("rate") > 0);
  RpcClient client = server.Connect();
  const Json totals = ResultOf(&client, "info").at("totals");
  CHECK(totals.at("sentinel_requests").at("flow") > 0);
  CHECK(totals.at("sentinel_requests").at("acquire") > 0);
  CHECK(totals.at("sentinel_malformed") == 0);
}

TEST_CASE("nowcalls-bench asks for calls a second, of a rule and of values") {
  TestServer server(nullptr, {{"--namespace-qps-max", "0"}, {}});
  for (const char* operation : {"request", "request-param"}) {
    CAPTURE(operation);
    const Json rates =
        Figures({"--connections", "2", "--in-flight", "8", "--duration", "0.5", "--warm-up", "0",
                 "--operation", operation, "--values", "10", "--level", "100"},
                Nowcalls(server));
    CheckAddsUp(rates);
    CHECK(rates.at("counts").at("granted") >= 100);
    const char* const limit = std::string(operation) == "request" ? "rate" : "param";
    CHECK(rates.at("counts").at("refused_by").at(limit) > 0);
    CHECK(rates.at("counts").at("errors") == 0);
  }
}

TEST_CASE("nowcalls-bench in an open loop does every operation of its schedule") {
  TestServer server;
  const Json figures =
      Figures({"--connections", "4", "--rate", "2000", "--hold-ms", "20", "--flows", "3",
               "--flow-distribution", "uniform", "--duration", "1", "--warm-up", "0.2",
               "--expire-rate", "100", "--expire-after-ms", "200"},
              Nowcalls(server));
  CheckAddsUp(figures);
  const Json& latency = figures.at("latency_us");
  CHECK(latency.at("acquire").at("count") == 1000);
  CHECK(latency.at("send_delay").at("count") == latency.at("both").at("count"));
  const Json& expiring = figures.at("expiring");
  CHECK(expiring.at("latency_us").at("count") == 100);
  CHECK(expiring.at("counts").at("released") == 0);
  RpcClient client = server.Connect();
  CHECK(PollUntil(kPatienceMs, [&client] {
    const Json info = ResultOf(&client, "info");
    return info.at("counts").at("tokens") == 0 &&
           info.at("totals").at("ended").at("resource_timeout") > 0;
  }));
}

TEST_CASE("nowcalls-bench counts refusals by their limit") {
  Machine machine;  // As above.
  machine.control().sync_is_free = 1;
  TestServer server(nullptr, {{}, machine.environment()});
  const Json figures = Figures({"--level", "1", "--connections", "2", "--in-flight", "3",
                                "--hold-ms", "5", "--duration", "0.3", "--keep-rules"},
                               Nowcalls(server));
  CheckAddsUp(figures);
  CHECK(figures.at("counts").at("refused_by").at("level") > 0);
  CHECK(figures.at("latency_us").at("refused").at("count") > 0);
  RpcClient client = server.Connect();
  CHECK(ResultOf(&client, "info").at("counts").at("rules") == 1);
}

TEST_CASE("nowcalls-bench fill leaves its tokens, also over kill -9") {
  TestServer server;
  const Json figures = Figures({"fill", "--tokens", "1000", "--flows", "2"}, Nowcalls(server));
  CheckAddsUp(figures);
  CHECK(figures.at("counts").at("granted") == 1000);
  server.server().Restart();
  const Source live = Source::Live(server.address());
  const std::vector<Json> flows = AdminRows(live, {"stat"});
  REQUIRE(flows.size() == 2);
  for (const Json& flow : flows) {
    CHECK(flow.at("tokens") == 500);
    CHECK(flow.at("flow_id") >= kFirstFlow);
  }
  CHECK(AdminRows(live, {"sessions"}).at(0).at("client_id") == "nowcalls-bench-fill");
}

TEST_CASE("nowcalls-bench fill fails when it cannot have all its tokens") {
  TestServer server;
  const Finished run = RunBench({"fill", "--tokens", "100", "--level", "60"}, Nowcalls(server));
  CHECK(run.exit_code == 1);
  CHECK(run.err.find("only 60 of 100 tokens were granted") != std::string::npos);
  CHECK(Json::parse(run.out).at("counts").at("refused_by").contains("level"));
}

TEST_CASE("nowcalls-bench idle only keeps connections open") {
  TestServer server;
  const Json figures =
      Figures({"idle", "--connections", "50", "--duration", "0.2"}, Nowcalls(server));
  CHECK(figures.at("options").at("connections") == 50);
  CHECK(figures.at("counted_s") >= 0.2);
  CHECK_FALSE(figures.contains("operations"));
}

TEST_CASE("nowcalls-bench prints a table when it is asked to") {
  TestServer server;
  const Finished run = RunBench({"--duration", "0.2", "--format", "table"}, Nowcalls(server));
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("closed loop: 16 connections with 16 in flight each") != std::string::npos);
  CHECK(run.out.find("latency, us") != std::string::npos);
  CHECK(run.out.find("request ids") == std::string::npos);
  CHECK(run.err.empty());
}

TEST_CASE("nowcalls-bench sends request ids unless told otherwise, and says so") {
  TestServer server;
  const auto with_ids = [&server](std::vector<std::string> words) {
    words.insert(words.end(), {"--keep-rules", "--duration", "0.2"});
    return Figures(words, Nowcalls(server)).at("options").at("request_ids").get<bool>();
  };
  CHECK(with_ids({}));
  CHECK_FALSE(with_ids({"--no-request-ids"}));
  const Finished run =
      RunBench({"--duration", "0.2", "--no-request-ids", "--format", "table"}, Nowcalls(server));
  CHECK(run.out.find("hold 0 ms, no request ids\n") != std::string::npos);
}

TEST_CASE("nowcalls-bench says that nobody listens") {
  const Finished run = RunBench({}, "nowcalls://127.0.0.1:1");
  CHECK(run.exit_code == 69);
  CHECK(run.err.find("is nowcalls-server running there?") != std::string::npos);
}

TEST_CASE("nowcalls-bench loads the one of several that listens") {
  TestServer server;
  const Finished run = RunBench({"--duration", "0.2", "--format", "table"},
                                "nowcalls://127.0.0.1:1," + server.address());
  CHECK(run.exit_code == 0);
  CHECK(run.out.find("nowcalls://" + server.address()) == 0);
}

TEST_CASE("nowcalls-bench does not take a namespace from its file") {
  TestServer server(nullptr,
                    {{"--rules", "shop=" NOWCALLS_SOURCE_DIR "/data/rules/shop.json"}, {}});
  const Finished run = RunBench({"--namespace", "shop"}, Nowcalls(server));
  CHECK(run.exit_code == 1);
  CHECK(run.err.find("CONFLICT") != std::string::npos);
  CHECK(run.err.find("shop.json") != std::string::npos);
  CHECK(run.err.find("--namespace NS") != std::string::npos);
  const Finished taken = RunBench({"--first-flow", "1001"}, Nowcalls(server));
  CHECK(taken.exit_code == 1);
  CHECK(taken.err.find("--first-flow ID") != std::string::npos);
}

TEST_CASE("nowcalls-bench gives up a schedule that the server cannot keep") {
  TestServer server;
  const Finished run = RunBench(
      {"--rate", "5000000", "--connections", "1", "--in-flight", "1", "--behind-max-ms", "1"},
      Nowcalls(server));
  CHECK(run.exit_code == 1);
  CHECK(run.err.find("cannot keep up with the schedule") != std::string::npos);
}

TEST_CASE("nowcalls-bench gives up a schedule whose requests in flight are not answered") {
  TestServer server;
  Process bench({BenchCommand({"--rate", "200", "--connections", "2", "--duration", "600",
                               "--warm-up", "0", "--behind-max-ms", "1000"},
                              Nowcalls(server)),
                 {},
                 server.Sub("out"),
                 server.Sub("err")});
  RpcClient client = server.Connect();
  REQUIRE(PollUntil(
      kPatienceMs, [&client] { return ResultOf(&client, "info").at("totals").at("granted") > 0; }));
  server.server().process().Stop();
  CHECK(bench.Wait() == 1);
  server.server().process().Signal(SIGCONT);
  const std::string said = ReadFileToString(server.Sub("err"));
  CAPTURE(said);
  CHECK(said.find("cannot keep up with the schedule") != std::string::npos);
  CHECK(said.find("requests are in flight and 0 wait to be sent") != std::string::npos);
}

TEST_CASE("nowcalls-bench fails when everything was refused") {
  TestServer server;
  const Finished run =
      RunBench({"--level", "0", "--duration", "0.2", "--warm-up", "0"}, Nowcalls(server));
  CHECK(run.exit_code == 1);
  const Json counts = Json::parse(run.out).at("counts");
  const std::string refused = counts.at("refused").dump();
  CAPTURE(run.err);
  CHECK(run.err == "nowcalls-bench: nothing was granted: " + refused +
                       " requests were refused (over_level " + refused + ")\n");
}

TEST_CASE("nowcalls-bench says why its output cannot be written") {
  TestServer server;
  const auto said_with = [&server](const std::vector<std::string>& words) {
    Process bench({BenchCommand(words, Nowcalls(server)), {}, "/dev/full", server.Sub("err")});
    CHECK(bench.Wait() == 74);
    std::string said = ReadFileToString(server.Sub("err"));
    WriteStringToFile(server.Sub("err"), "");
    return said;
  };
  CHECK(said_with({"--help"}) ==
        "nowcalls-bench: writing the output failed: No space left on device\n");
  CHECK(said_with({"idle", "--duration", "0.1"}) ==
        "nowcalls-bench: the figures cannot be written to stdout: No space left on device\n");
}

// A run that would last for minutes, once it has been granted tokens.
Process StartLongRun(TestServer* server) {
  Process bench({BenchCommand({"--duration", "600", "--warm-up", "0"}, Nowcalls(*server)),
                 {},
                 server->Sub("out"),
                 server->Sub("err")});
  RpcClient client = server->Connect();
  REQUIRE(PollUntil(
      kPatienceMs, [&client] { return ResultOf(&client, "info").at("totals").at("granted") > 0; }));
  return bench;
}

TEST_CASE("nowcalls-bench ends with an error when the server goes away") {
  TestServer server;
  Process bench = StartLongRun(&server);
  server.server().Kill9();
  CHECK(bench.Wait() == 69);
  const std::string said = ReadFileToString(server.Sub("err"));
  CAPTURE(said);
  CHECK(said.find("nowcalls-bench: connection ") == 0);
  CHECK(said.find(server.address()) != std::string::npos);
  CHECK(said.find("\nnowcalls-bench: its rules may still be loaded") != std::string::npos);
  CHECK(said.find("nowcalls-admin rules load - --namespace bench --server " + server.address()) !=
        std::string::npos);
}

TEST_CASE("nowcalls-bench prints what it has when it is interrupted") {
  TestServer server;
  Process bench = StartLongRun(&server);
  bench.Signal(SIGINT);
  CHECK(bench.Wait() == 0);
  const Json figures = Json::parse(ReadFileToString(server.Sub("out")));
  CHECK(figures.at("interrupted") == true);
  CheckAddsUp(figures);
  RpcClient client = server.Connect();
  CHECK(ResultOf(&client, "info").at("counts").at("rules") == 0);
}

// Answers `info` on its first connection, and ends the one that says hello when that has come: in
// order, or by a reset, as a server does that has not read what it closes.
class ServerAtItsLimit {
 public:
  explicit ServerAtItsLimit(bool resets) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(listener_, generic, size) == 0);
    REQUIRE(listen(listener_, 1) == 0);
    REQUIRE(getsockname(listener_, generic, &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, resets] {
      AnswerInfo(accept(listener_, nullptr, nullptr));
      // What stays unread makes the close a reset. A connection that says nothing was a probe.
      for (ssize_t said = 0; said == 0;) {
        std::vector<char> hello(4096);
        const int fd = accept(listener_, nullptr, nullptr);
        said = recv(fd, hello.data(), hello.size(), resets ? MSG_PEEK : 0);
        close(fd);
      }
    });
  }
  ~ServerAtItsLimit() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  std::string target() const { return "nowcalls://127.0.0.1:" + std::to_string(port_); }

 private:
  static void AnswerInfo(int fd) {
    std::string bytes(4096, '\0');
    const ssize_t got = recv(fd, bytes.data(), bytes.size(), 0);
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    const Json request = FromMessagePack(bytes);
    const Json info = {{"version", "1"},
                       {"ledger", {{"durability", "sync"}}},
                       {"settings", {{"resource_timeout_factor", 2.0}}}};
    if (request.is_array()) {
      const std::string answer = ToMessagePack(Json::array({1, request.at(1), nullptr, info}));
      static_cast<void>(send(fd, answer.data(), answer.size(), MSG_NOSIGNAL));
    }
    close(fd);
  }

  int listener_;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST_CASE("nowcalls-bench tells a limit of connections alike, however the connection ended") {
  for (const bool resets : {false, true}) {
    CAPTURE(resets);
    const ServerAtItsLimit server(resets);
    const Finished run =
        RunBench({"idle", "--connections", "1", "--duration", "0.1"}, server.target());
    CHECK(run.exit_code == 69);
    CAPTURE(run.err);
    CHECK(run.err.find("was closed by the server at once; it may be at its limit of connections") !=
          std::string::npos);
  }
}

TEST_CASE("nowcalls-bench shows what a server said without its control characters") {
  testing::FakeServer server([](testing::FakeServer::Peer* peer) {
    wire::Envelope request;
    while (peer->Take(&request)) {
      peer->Answer([&](wire::OutputBuffer* out) {
        wire::EncodeError(request.msgid, {wire::ErrorCode::kInternal, "\x1b[2Jgone"}, out);
      });
    }
  });
  const Finished run = RunBench({"idle", "--connections", "1", "--duration", "0.1"},
                                "nowcalls://" + server.address());
  CHECK(run.exit_code != 0);
  CAPTURE(run.err);
  CHECK(run.err.find("\\x1b[2Jgone") != std::string::npos);
  CHECK(run.err.find('\x1b') == std::string::npos);
}

TEST_CASE("nowcalls-bench names what a server's info lacks") {
  testing::FakeServer server([](testing::FakeServer::Peer* peer) {
    wire::Envelope request;
    while (peer->Take(&request)) {
      peer->Answer([&](wire::OutputBuffer* out) {
        const Json info = {{"version", "1"}, {"ledger", Json::object()}};
        out->Append(ToMessagePack({1, request.msgid, nullptr, info}));
      });
    }
  });
  const Finished run = RunBench({"idle", "--connections", "1", "--duration", "0.1"},
                                "nowcalls://" + server.address());
  CHECK(run.exit_code == 69);
  CHECK(run.err ==
        "nowcalls-bench: the server's info is not understood: its ledger.durability is missing or "
        "of another type\n");
}

// Empty: there is none on PATH.
std::string FindRedisServer() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string program = folder + "/redis-server";
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

TEST_CASE("nowcalls-bench measures Redis in the same way") {
  const std::string program = FindRedisServer();
  if (program.empty()) {
    MESSAGE("skipped: there is no redis-server on PATH");
    return;
  }
  const TempDir dir;
  std::optional<Process> redis;
  std::string target;
  REQUIRE(PollUntil(kPatienceMs, [&] {
    if (!redis.has_value() || !redis->Running()) {
      const std::string port = std::to_string(FreePort());
      redis.emplace(Process::Options{
          {program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", dir.path()}, {}});
      target = "redis://127.0.0.1:" + port;
    }
    return RunBench({"idle", "--duration", "0.1"}, target).exit_code == 0 && redis->Running();
  }));
  const Json closed = Figures({"--connections", "2", "--level", "3", "--in-flight", "4",
                               "--duration", "0.3", "--warm-up", "0"},
                              target);
  CheckAddsUp(closed);
  CHECK(closed.at("target").at("durability") == "appendonly no");
  CHECK(closed.at("counts").at("granted") > 0);
  CHECK(closed.at("counts").at("refused_by").contains("level"));
  CHECK(closed.at("counts").at("errors") == 0);
  const Json open = Figures({"--connections", "2", "--rate", "1000", "--hold-ms", "5", "--duration",
                             "1", "--expire-rate", "50"},
                            target);
  CheckAddsUp(open);
  CHECK(open.at("latency_us").at("acquire").at("count") == 500);
  CHECK(open.at("expiring").at("latency_us").at("count") == 50);
  CHECK(Figures({"fill", "--tokens", "200"}, target).at("counts").at("granted") == 200);
  // The tokens of fill are still there, and fill the level.
  const Finished refused = RunBench({"fill", "--tokens", "60", "--level", "250"}, target);
  CHECK(refused.exit_code == 1);
  CHECK(refused.err.find("only 50 of 60 tokens") != std::string::npos);
}

}  // namespace
}  // namespace nowcalls::testing
