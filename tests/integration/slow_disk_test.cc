// A disk that takes hundreds of milliseconds for each sync: who pushes is held back, nobody is told
// what is not so, and what was granted is there afterwards.
#include <doctest/doctest.h>

#include <csignal>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "integration/calls.h"
#include "support/admin.h"
#include "support/machine.h"
#include "support/server_process.h"

namespace nowcalls::testing {
namespace {

constexpr int64_t kListedFlow = 1;
constexpr int64_t kOtherFlow = 2;
constexpr uint64_t kSlowDiskGrowthMax = GrowthMax(32 << 20);
constexpr uint32_t kPushed = 10;

void TakeAndRelease(RpcClient* client, int times) {
  for (int i = 0; i < times; ++i) {
    REQUIRE(Release(client, Acquire(client, kOtherFlow).token_id) == kStatusReleaseOk);
  }
}

// Waits until commits are so quick that the loop makes them.
bool CommitsInline(RpcClient* client, Machine* machine) {
  return PollUntil(kPatienceMs, [&] {
    const int64_t before = machine->control().loop_syncs;
    TakeAndRelease(client, 1);
    return machine->control().loop_syncs == before + 2;
  });
}

// Has the disk hang under a commit that the loop makes, of an acquire whose answer is `client`'s.
// However quick commits are, one that is held up leaves the next to the commit thread. REQUIRES: no
// token of kOtherFlow is out.
void HangInline(RpcClient* client, Machine* machine) {
  MachineControl& control = machine->control();
  REQUIRE(PollUntil(kPatienceMs, [&] {
    REQUIRE(CommitsInline(client, machine));
    const int64_t begun = control.syncs_begun;
    const int64_t on_loop = control.loop_syncs_begun;
    control.sync_takes_ms = 2 * kPatienceMs;
    client->Send("acquire", {kOtherFlow, 1});
    REQUIRE(PollUntil(kPatienceMs, [&] { return control.syncs_begun > begun; }));
    if (control.loop_syncs_begun > on_loop) return true;
    control.sync_takes_ms = 0;
    const Reply grant = client->Receive();
    REQUIRE_MESSAGE(grant.ok(), grant.ToString());
    REQUIRE(Release(client, grant.result.at(1).get<uint64_t>()) == kStatusReleaseOk);
    return false;
  }));
}

// The disk hangs from now on, and of what `client` sends there is more than the server takes before
// it goes on. REQUIRES: --requests-in-flight-max 2, no tokens are out, and commits are not inline.
void PushOntoHangingDisk(const TestServer& server, RpcClient* client, Machine* machine) {
  machine->control().sync_takes_ms = 2 * kPatienceMs;
  std::string flood;
  for (uint32_t i = 0; i < kPushed; ++i) flood += EncodeRequest(i, "acquire", {kListedFlow, 1});
  REQUIRE(client->SendRaw(flood));
  RpcClient watcher = server.Connect();
  REQUIRE(PollUntil(kPatienceMs,
                    [&] { return ResultOf(&watcher, "info").at("counts").at("tokens") == 2; }));
}

TEST_CASE("on a slow disk clients that push are held back, memory is bounded, nothing is lost") {
  constexpr int64_t kClients = 16;
  constexpr int64_t kRequests = 1'000;  // Of each.
  constexpr int64_t kInFlightMax = 50;
  constexpr int64_t kSlowSyncs = 6;
  Machine machine;
  TestServer server(
      {RuleJson(kListedFlow, 1'000'000), RuleJson(kOtherFlow, 10)},
      {{"--requests-in-flight-max", std::to_string(kInFlightMax)}, machine.environment()});
  RpcClient watcher = server.Connect("watcher");
  const Grant early = Acquire(&watcher, kOtherFlow);
  const uint64_t resident_before = ResidentBytes(server.server().process().pid());
  machine.control().sync_takes_ms = 200;
  std::vector<RpcClient> clients;
  std::string flood;
  for (int64_t i = 0; i < kRequests; ++i) {
    flood += EncodeRequest(static_cast<uint32_t>(i), "acquire", {kListedFlow, 1});
  }
  const int64_t syncs_before = machine.control().syncs;
  for (int64_t i = 0; i < kClients; ++i) {
    clients.emplace_back(server.address());
    REQUIRE(clients.back().SendRaw(flood));
  }
  int64_t granted = 0;
  REQUIRE(PollUntil(kPatienceMs, [&] {
    granted = NowCalls(&watcher, kListedFlow);
    // What is unanswered, and what the syncs since have answered; three batches are on their way.
    const int64_t syncs = machine.control().syncs - syncs_before;
    CHECK(granted <= kClients * kInFlightMax * (syncs + 3));
    CHECK(ResidentBytes(server.server().process().pid()) < resident_before + kSlowDiskGrowthMax);
    return syncs >= kSlowSyncs;
  }));
  CHECK(granted > 0);
  CHECK(granted < kClients * kRequests);
  // Who does not push is served meanwhile, one sync or two later.
  CHECK(Release(&watcher, early.token_id) == kStatusReleaseOk);
  CHECK(ResultOf(&watcher, "ping").at(0).get<int64_t>() > 0);

  machine.control().sync_takes_ms = 0;
  std::multiset<uint64_t> tokens;
  for (RpcClient& client : clients) {
    for (int64_t i = 0; i < kRequests; ++i) {
      const Reply reply = client.Receive();
      REQUIRE(reply.ok());
      REQUIRE(reply.result.at(0) == kStatusOk);
      tokens.insert(reply.result.at(1).get<uint64_t>());
    }
  }
  CHECK(NowCalls(&watcher, kListedFlow) == kClients * kRequests);
  server.server().Kill9();
  CHECK(Column<uint64_t>(AdminRows(Source::Offline(server.data_dir()), {"dump"}), "token_id") ==
        tokens);
  CHECK(RunAdmin(Source::Offline(server.data_dir()), {"verify"}).exit_code == 0);
}

TEST_CASE("who lists while the disk hangs waits, memory is bounded, and grants go on") {
  constexpr int64_t kRules = 1'000;
  constexpr int kListing = 40;
  Machine machine;
  Json rules = Json::array();
  for (int64_t i = 1; i <= kRules; ++i) {
    Json rule = RuleJson(i, 1'000);
    rule["resource"] = std::string(1'000, 'r') + std::to_string(i);
    rules.push_back(std::move(rule));
  }
  TempDir dir;  // They are too long for a message.
  WriteStringToFile(dir.Sub("rules.json"), rules.dump());
  TestServer server(nullptr, {{"--output-total-bytes-max", std::to_string(8 << 20), "--rules",
                               dir.Sub("rules.json"), "--commit-inline-records-max", "0"},
                              machine.environment()});
  RpcClient honest = server.Connect("honest");
  Acquire(&honest, kListedFlow);
  RpcClient watcher = server.Connect();
  const auto tokens = [&] { return ResultOf(&watcher, "info").at("counts").at("tokens"); };
  const uint64_t resident_before = ResidentBytes(server.server().process().pid());
  machine.control().sync_takes_ms = 2 * kPatienceMs;
  honest.Send("acquire", {kListedFlow, 1});
  REQUIRE(PollUntil(kPatienceMs, [&] { return tokens() == 2; }));

  std::vector<RpcClient> clients;
  for (int i = 0; i < kListing; ++i) {
    clients.push_back(server.Connect());
    clients.back().Send("flows", {kRules});
  }
  for (int i = 3; i <= 30; ++i) {
    honest.Send("acquire", {kListedFlow, 1});
    REQUIRE(PollUntil(kPatienceMs, [&] { return tokens() == i; }));
  }
  // They would be 50 MiB; a quarter of the bound is theirs, and a page.
  CHECK(ResidentBytes(server.server().process().pid()) < resident_before + GrowthMax(24 << 20));

  machine.control().sync_takes_ms = 0;
  for (int i = 2; i <= 30; ++i) CHECK(honest.Receive().result.at(0) == kStatusOk);
  for (RpcClient& client : clients) {
    const Reply reply = client.Receive();
    REQUIRE(reply.ok());
    CHECK(reply.result.at(0).size() == kRules);
  }
  CHECK(ResultOf(&watcher, "info").at("counts").at("connections") == kListing + 2);
}

TEST_CASE("what depends on the disk is answered after a sync, and all else while it lasts") {
  Machine machine;
  machine.control().sync_is_free = 1;
  bool inline_before = false;
  std::vector<std::string> settings;
  SUBCASE("commits are never inline") { settings = {"--commit-inline-records-max", "0"}; }
  SUBCASE("commits were inline before one took long") { inline_before = true; }
  TestServer server({RuleJson(kListedFlow, 3), RuleJson(kOtherFlow, 1)},
                    {settings, machine.environment()});
  RpcClient alice = server.Connect("alice");
  RpcClient bob = server.Connect("bob");
  const int64_t loop_syncs = machine.control().loop_syncs;
  TakeAndRelease(&bob, 100);
  if (inline_before) REQUIRE(CommitsInline(&bob, &machine));
  CHECK((machine.control().loop_syncs > loop_syncs) == inline_before);
  Acquire(&bob, kOtherFlow);
  machine.control().sync_takes_ms = 300;
  if (inline_before) Release(&alice, Acquire(&alice, kListedFlow).token_id);
  std::set<uint64_t> held;
  for (int i = 0; i < 3; ++i) {
    const int64_t syncs_before = machine.control().syncs;
    machine.control().sync_takes_ms = 2 * kPatienceMs;
    alice.Send("acquire", {kListedFlow, 1});
    // The disk is busy with it, and with nothing else.
    REQUIRE(PollUntil(kPatienceMs,
                      [&] { return ResultOf(&bob, "info").at("counts").at("tokens") == i + 2; }));
    CHECK(Acquire(&bob, kOtherFlow).status == kStatusBlocked);
    machine.control().sync_takes_ms = 300;
    const Reply reply = alice.Receive();
    REQUIRE(reply.ok());
    CHECK(machine.control().syncs > syncs_before);
    held.insert(reply.result.at(1).get<uint64_t>());
  }
  const int64_t syncs_before = machine.control().syncs;
  CHECK(Release(&alice, *held.begin()) == kStatusReleaseOk);
  CHECK(machine.control().syncs > syncs_before);
}

TEST_CASE("what came while an inline commit hung is answered, and the log tells of it") {
  Machine machine;
  machine.control().sync_is_free = 1;
  TestServer server(RuleJson(kOtherFlow, 1), {{}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  RpcClient bob = server.Connect("bob");
  HangInline(&alice, &machine);
  REQUIRE(server.server().LogHas("which answers nobody meanwhile; look at the disk under "));
  bob.Send("ping");
  machine.control().sync_takes_ms = 0;
  CHECK(alice.Receive().result.at(0) == kStatusOk);
  CHECK(bob.Receive().ok());
  CHECK(server.server().LogHas("a commit took "));
}

TEST_CASE("a server whose disk hangs ends by itself when it is told to") {
  Machine machine;
  machine.control().sync_is_free = 1;
  TestServer server({RuleJson(kListedFlow, 3), RuleJson(kOtherFlow, 1)},
                    {{}, machine.environment()});
  RpcClient bob = server.Connect("bob");
  REQUIRE(CommitsInline(&bob, &machine));
  machine.control().sync_takes_ms = 2 * kPatienceMs;
  server.server().process().Signal(SIGTERM);
  CHECK(server.server().process().Wait() == 74);
}

TEST_CASE("a server whose disk hangs ends by itself also while clients push") {
  Machine machine;
  machine.control().sync_is_free = 1;
  std::vector<std::string> settings{"--requests-in-flight-max", "2"};
  bool inline_before = false;
  SUBCASE("commits are never inline") {
    settings.insert(settings.end(), {"--commit-inline-records-max", "0"});
  }
  SUBCASE("commits were inline before one took long") { inline_before = true; }
  TestServer server({RuleJson(kListedFlow, 1'000), RuleJson(kOtherFlow, 1)},
                    {settings, machine.environment()});
  RpcClient alice = server.Connect("alice");
  if (inline_before) {
    REQUIRE(CommitsInline(&alice, &machine));
    machine.control().sync_takes_ms = 300;
    TakeAndRelease(&alice, 1);
  }
  PushOntoHangingDisk(server, &alice, &machine);
  server.server().process().Signal(SIGTERM);
  // The test above waits as long as it takes; here the clock is what goes on.
  REQUIRE(server.server().LogHas("SIGTERM: finishing what is in flight"));
  machine.control().boot_offset_ms += 10'000;
  CHECK(server.server().process().Wait() == 74);
  CHECK(server.server().LogHas("not done after 10000 ms"));
}

TEST_CASE("who is too slow is cut off also while the disk hangs and clients push") {
  Machine machine;
  TestServer server({RuleJson(kListedFlow, 1'000)},
                    {{"--requests-in-flight-max", "2", "--commit-inline-records-max", "0",
                      "--message-incomplete-ms", "300"},
                     machine.environment()});
  RpcClient alice = server.Connect("alice");
  PushOntoHangingDisk(server, &alice, &machine);
  RpcClient half = server.Connect();
  const std::string request = EncodeRequest(1, "ping", Json::array());
  REQUIRE(half.SendRaw(request.substr(0, request.size() / 2)));
  CHECK(server.server().LogHas("did not complete a message"));
  // It does not close, and is not waited for.
  RpcClient watcher = server.Connect();
  CHECK(PollUntil(kPatienceMs,
                  [&] { return ResultOf(&watcher, "info").at("counts").at("connections") == 2; }));
  machine.control().sync_takes_ms = 0;
  for (uint32_t i = 0; i < kPushed; ++i) CHECK(alice.Receive().result.at(0) == kStatusOk);
}

TEST_CASE("signals that come while an inline commit hangs are seen when it has ended, as one") {
  Machine machine;
  machine.control().sync_is_free = 1;
  TestServer server(RuleJson(kOtherFlow, 1), {{}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  HangInline(&alice, &machine);
  REQUIRE(server.server().LogHas("which answers nobody meanwhile; look at the disk under "));
  server.server().process().Signal(SIGTERM);
  machine.control().boot_offset_ms += 1'000;
  server.server().process().Signal(SIGTERM);
  CHECK(server.server().Running());
  machine.control().sync_takes_ms = 0;
  CHECK(alice.Receive().result.at(0) == kStatusOk);
  CHECK(server.server().process().Wait() == 0);
  CHECK(server.server().LogHas("SIGTERM: finishing what is in flight"));
}

TEST_CASE("a disk that hangs for longer than a second is in the log, and passes") {
  Machine machine;
  TestServer server(RuleJson(kListedFlow, 3), {{}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  machine.control().sync_takes_ms = 1'100;
  CHECK(Acquire(&alice, kListedFlow).status == kStatusOk);
  machine.control().sync_takes_ms = 0;
  CHECK(Acquire(&alice, kListedFlow).status == kStatusOk);
  CHECK(server.server().LogHas("grants wait for the disk under "));
}

TEST_CASE(
    "restart grace begins when clients can connect, however long the disk took for the start") {
  constexpr int64_t kGraceMs = 2'000;
  Machine machine;
  TestServer server(RuleJson(kListedFlow, 10, {{"clientOfflineTime", 1}}),
                    {{"--restart-grace-ms", std::to_string(kGraceMs)}, machine.environment()});
  RpcClient alice = server.Connect("alice");
  const Grant grant = Acquire(&alice, kListedFlow);
  REQUIRE(grant.status == kStatusOk);
  const int64_t before_ms = BoottimeMs();
  machine.control().sync_takes_ms = kGraceMs / 4;
  server.server().Restart();
  machine.control().sync_takes_ms = 0;
  // What it would have had for longer than that, if it began with the reading of the ledger.
  CHECK(BoottimeMs() - before_ms > 2 * kGraceMs);
  RpcClient again(server.address());
  CHECK(ResultOf(&again, "hello", {1, "default", "alice"}).at(3) == 1);
  CHECK(Release(&again, grant.token_id) == kStatusReleaseOk);
}

}  // namespace
}  // namespace nowcalls::testing
