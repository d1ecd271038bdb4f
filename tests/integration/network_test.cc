// What happens to TCP under a server: peers that trickle, floods of connections, files that run
// out, hosts that vanish. An honest client beside them goes on.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "integration/calls.h"
#include "integration/honest_client.h"
#include "net/socket_batch.h"
#include "support/admin.h"
#include "support/machine.h"
#include "support/other_host.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kSteadyFlow = 1;
constexpr int64_t kVanishingFlow = 2;
constexpr uint64_t kNetworkGrowthMax = GrowthMax(48 << 20);

Json NetworkRules() {
  return {RuleJson(kSteadyFlow, 1), RuleJson(kVanishingFlow, 1'000, {{"clientOfflineTime", 1}})};
}

int64_t Connections(RpcClient* client) {
  return ResultOf(client, "info").at("counts").at("connections").get<int64_t>();
}

bool HasRing(pid_t pid) {
  for (const auto& file :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(file, gone).string();
    if (target.find("io_uring") != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("a server is the same whether it takes sockets together or each by itself") {
  const bool allowed = net::SocketBatch().why_alone().empty();
  for (const bool together : {true, false}) {
    CAPTURE(together);
    ServerOptions options;
    if (!together) options.arguments = {"--no-io-uring"};
    TestServer server(NetworkRules(), options);
    CHECK(HasRing(server.server().process().pid()) == (together && allowed));
    if (together && !allowed) CHECK(server.server().LogHas("io_uring is not to be had ("));
    std::vector<RpcClient> clients;
    for (int i = 0; i < 100; ++i) clients.push_back(server.Connect());
    // All at once, so that turns have many.
    for (RpcClient& client : clients) client.Send("acquire", {kVanishingFlow, 3});
    for (RpcClient& client : clients) {
      const Reply reply = client.Receive();
      REQUIRE_MESSAGE(reply.ok(), reply.ToString());
      CHECK(reply.result.at(0) == kStatusOk);
    }
    CHECK(NowCalls(&clients.front(), kVanishingFlow) == 300);
    for (RpcClient& client : clients) client.Close();
    RpcClient last = server.Connect();
    CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&last, kVanishingFlow) == 0; }));
  }
}

TEST_CASE("a crowd that leaves together is heard to the end, answered and let go") {
  constexpr int kLeaving = 500;
  AllowManyFiles(1'000);
  TestServer server(NetworkRules());
  RpcClient stays = server.Connect();
  // More than a receive takes, so that the end comes behind several.
  const Json words = Json::array({std::string(20'000, 'x')});
  constexpr int kWords = 5;
  std::vector<RpcClient> clients;
  for (int i = 0; i < kLeaving; ++i) clients.push_back(server.Connect());
  for (RpcClient& client : clients) REQUIRE(client.Call("ping").ok());
  // All ends are there when the server looks again.
  server.server().process().Signal(SIGSTOP);
  for (size_t i = 0; i < clients.size(); ++i) {
    for (int word = 0; word < (i % 10 == 0 ? kWords : 0); ++word) clients[i].Send("ping", words);
    clients[i].Send("acquire", {kVanishingFlow, 1});
    clients[i].EndInput();
  }
  server.server().process().Signal(SIGCONT);
  for (size_t i = 0; i < clients.size(); ++i) {
    for (int word = 0; word < (i % 10 == 0 ? kWords : 0); ++word) {
      REQUIRE(clients[i].Receive().answered());
    }
    const Reply reply = clients[i].Receive();
    REQUIRE_MESSAGE(reply.ok(), reply.ToString());
    CHECK(reply.result.at(0) == kStatusOk);
    CHECK(clients[i].SeesEof());
  }
  CHECK(PollUntil(kPatienceMs, [&] { return Connections(&stays) == 1; }));
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&stays, kVanishingFlow) == 0; }));
}

TEST_CASE("two thousand sockets at a byte a second are closed in time, and nobody else notices") {
  constexpr size_t kSockets = 2'000;
  AllowManyFiles(3'000);
  TestServer server(NetworkRules(), {{"--message-incomplete-ms", "2500"}, {}});
  HonestClient honest(server.address(), kSteadyFlow);
  REQUIRE(honest.MakesProgress());
  const uint64_t resident_before = ResidentBytes(server.server().process().pid());
  const std::string message = EncodeRequest(
      1, "acquire", {kVanishingFlow, 1, {{"wait_ms", 1'000}, {"request_id", 123'456'789}}});
  std::vector<RpcClient> sockets;
  for (size_t i = 0; i < kSockets; ++i) {
    sockets.push_back(server.Connect());
    REQUIRE(sockets.back().connected());
  }
  int64_t last_ms = 0;
  for (size_t byte = 0; byte < 4; ++byte) {
    REQUIRE(PollUntil(kPatienceMs, [&] { return BoottimeMs() >= last_ms + 1'000; }));
    last_ms = BoottimeMs();
    for (RpcClient& socket : sockets) socket.SendRaw(message.substr(byte, 1), 0);
    CHECK(honest.MakesProgress());
    CHECK(ResidentBytes(server.server().process().pid()) < resident_before + kNetworkGrowthMax);
  }
  for (RpcClient& socket : sockets) REQUIRE(socket.SeesEof());
  CHECK(server.server().LogHas("did not complete a message"));
  CHECK(honest.MakesProgress());
  CHECK(honest.Finish() == "");
  RpcClient client = server.Connect();
  CHECK(NowCalls(&client, kVanishingFlow) == 0);
}

TEST_CASE("floods of connections that come and go leave the server to the others") {
  constexpr int kThreads = 3;
  constexpr int kConnects = 1'500;
  TestServer server(NetworkRules());
  HonestClient honest(server.address(), kSteadyFlow);
  REQUIRE(honest.MakesProgress());
  std::vector<std::thread> flood;
  for (int thread = 0; thread < kThreads; ++thread) {
    flood.emplace_back([&, thread] {
      const std::string hello = EncodeRequest(1, "hello", {1, "default", nullptr});
      for (int i = 0; i < kConnects; ++i) {
        RpcClient client(server.address());
        // Some say nothing, some half a word, some do not wait for the answer.
        if (thread > 0) client.SendRaw(hello.substr(0, thread == 1 ? 5 : hello.size()), 0);
      }
    });
  }
  CHECK(honest.MakesProgress());
  for (std::thread& thread : flood) thread.join();
  CHECK(honest.MakesProgress());
  RpcClient client = server.Connect();
  CHECK(PollUntil(kPatienceMs, [&] { return Connections(&client) == 2; }));
  CHECK(honest.Finish() == "");
}

// The soft limit of open files of a process that runs.
void LimitFiles(pid_t pid, rlim_t files) {
  rlimit limit{};
  REQUIRE(prlimit(pid, RLIMIT_NOFILE, nullptr, &limit) == 0);
  limit.rlim_cur = files;
  REQUIRE(prlimit(pid, RLIMIT_NOFILE, &limit, nullptr) == 0);
}

rlim_t OpenFiles(pid_t pid) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<rlim_t>(std::distance(begin(files), end(files)));
}

// Of RocksDB's logs.
[[maybe_unused]] uintmax_t LogBytes(const std::string& data_dir) {
  uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(data_dir + "/ledger")) {
    std::error_code gone;
    const uintmax_t size = file.file_size(gone);
    if (!gone && file.path().extension() == ".log") bytes += size;
  }
  return bytes;
}

// Some 40 KiB of log, where an acquire and its release are 100 bytes.
[[maybe_unused]] void ChangeManyRules(RpcClient* client, int64_t level) {
  Json rules = Json::array();
  for (int64_t flow = 1'000; flow < 1'200; ++flow) rules.push_back(RuleJson(flow, level));
  REQUIRE(LoadRules(client, rules, "others") == Json::array({200}));
}

TEST_CASE("a server without a file left turns new connections away and serves those it has") {
  TestServer server(NetworkRules());
  HonestClient honest(server.address(), kSteadyFlow);
  RpcClient client = server.Connect("alice");
  REQUIRE(honest.MakesProgress());
  const pid_t pid = server.server().process().pid();
  rlimit before{};
  REQUIRE(prlimit(pid, RLIMIT_NOFILE, nullptr, &before) == 0);
  REQUIRE(PollUntil(kPatienceMs, [&] { return Connections(&client) == 2; }));
  LimitFiles(pid, OpenFiles(pid));
  // Numbers below the limit may be free, or become so when the server closes a file of its ledger.
  std::vector<RpcClient> served;
  for (int refused = 0; refused < 200;) {
    RpcClient late_comer(server.address());
    const Reply reply = late_comer.Call("ping");
    if (reply.ok()) {
      served.push_back(std::move(late_comer));
      REQUIRE(served.size() < 10);
    } else {
      REQUIRE_MESSAGE(reply.kind == Reply::Kind::kClosed, reply.ToString());
      ++refused;
    }
  }
  CHECK(server.server().LogHas("refused a connection: Too many open files"));
// UBSan takes sound objects for broken ones where it gets no pipe to try their memory with.
#ifndef __SANITIZE_ADDRESS__
  // With 256 KiB of log a spare is asked for, and its thread syncs the directory.
  for (int64_t level = 1; level <= 20; ++level) ChangeManyRules(&client, level);
  CHECK(LogBytes(server.server().data_dir()) > 384 << 10);
#endif
  const Grant grant = Acquire(&client, kVanishingFlow);
  CHECK(grant.status == kStatusOk);
  CHECK(Release(&client, grant.token_id) == kStatusReleaseOk);
  CHECK(honest.MakesProgress());
  LimitFiles(pid, before.rlim_cur);
  RpcClient late = server.Connect("bob");
  CHECK(Acquire(&late, kVanishingFlow).status == kStatusOk);
  CHECK(honest.Finish() == "");
  CHECK(server.server().Terminate() == 0);
}

TEST_CASE("a server that may open few files takes as many connections as fit, and says so") {
  TempDir dir;
  ServerProcess server(dir.path());
  std::vector<std::string> argv = {"/bin/sh", "-c", R"(ulimit -n 320; exec "$0" "$@")"};
  for (const std::string& argument : server.Arguments()) argv.push_back(argument);
  Process process({argv, {}, "/dev/null", dir.Sub("log"), "/dev/null"});
  REQUIRE(
      PollUntil(kPatienceMs, [&] { return ReadFileToString(dir.Sub("port")).ends_with('\n'); }));
  std::string port = ReadFileToString(dir.Sub("port"));
  port.pop_back();
  const std::string address = "127.0.0.1:" + port;
  RpcClient client(address);
  LoadRules(&client, NetworkRules());
  HonestClient honest(address, kSteadyFlow);
  REQUIRE(honest.MakesProgress());
  std::vector<RpcClient> crowd;
  for (int i = 0; i < 400; ++i) crowd.emplace_back(address);
  size_t refused = 0;
  for (size_t i = 62; i < crowd.size(); ++i) refused += crowd[i].SeesEof() ? 1 : 0;
  CHECK(refused == crowd.size() - 62);
  CHECK(crowd.front().Call("ping").ok());
  CHECK(honest.MakesProgress());
  crowd.clear();
  REQUIRE(PollUntil(kPatienceMs, [&] { return RpcClient(address).Call("ping").ok(); }));
  CHECK(honest.Finish() == "");
  process.Signal(SIGTERM);
  CHECK(process.Wait() == 0);
  const std::string log = ReadFileToString(dir.Sub("log"));
  CHECK(log.find("connections-max lowered from 10000 to 64") != std::string::npos);
  CHECK(log.find("refused a connection") != std::string::npos);
}

TEST_CASE("clients whose host vanished are found, whoever owes whom a byte, and their tokens end") {
  OtherHost far;
  if (!far.Plug()) return;
  Machine machine;
  machine.control().tcp_hurry = 5;  // 12 s instead of a minute, none of which the disk may take.
  machine.control().sync_is_free = 1;
  TestServer server(NetworkRules(), {{"--insecure-listen", "--mass-expiry-percent", "0"},
                                     machine.environment(),
                                     far.our_address()});
  HonestClient honest(server.address(), kSteadyFlow);
  RpcClient near = server.Connect("near");
  const Grant room = Acquire(&near, kVanishingFlow, 990);
  const auto say_hello = [&](const std::string& client_id) {
    RpcClient client = far.Connect(server.address());
    ResultOf(&client, "hello", {1, "default", client_id});
    return client;
  };
  RpcClient quiet = say_hello("quiet");
  Acquire(&quiet, kVanishingFlow, 1);
  RpcClient owed = say_hello("owed");
  Acquire(&owed, kVanishingFlow, 2);
  RpcClient moved = say_hello("moved");
  const Grant moved_grant = Acquire(&moved, kVanishingFlow, 4);
  // Its answer will be on its way when nobody is there any more.
  owed.Send("acquire", {kVanishingFlow, 5, {{"wait_ms", 60'000}}});
  REQUIRE(PollUntil(kPatienceMs,
                    [&] { return ResultOf(&near, "info").at("counts").at("waiters") == 1; }));
  REQUIRE(PollUntil(kPatienceMs, [&] { return Connections(&near) == 5; }));
  far.CutCable();
  CHECK(Release(&near, room.token_id) == kStatusReleaseOk);
  // All are still there as far as anybody can know, and the waiter was granted.
  CHECK(NowCalls(&near, kVanishingFlow) == 1 + 2 + 4 + 5);
  // One comes back by another way, while its old connection is half open.
  RpcClient again(server.address());
  CHECK(ResultOf(&again, "hello", {1, "default", "moved"}).at(3) == 1);
  CHECK(Keep(&again, moved_grant.token_id) == kStatusOk);
  CHECK(honest.MakesProgress());
  REQUIRE(PollUntil(kPatienceMs, [&] { return Connections(&near) == 3; }));
  REQUIRE(PollUntil(kPatienceMs, [&] { return NowCalls(&near, kVanishingFlow) == 4; }));
  CHECK(Release(&again, moved_grant.token_id) == kStatusReleaseOk);
  const Json ended =
      ResultOf(&near, "flow", Json::array({kVanishingFlow})).at("counters").at("ended");
  CHECK(ended.at("client_offline") == 3);
  CHECK(honest.MakesProgress());
  CHECK(honest.Finish() == "");
}

}  // namespace
}  // namespace nowcalls::testing
