// A disk that fills up under a server that serves: before it is full, and when it is.
#include <doctest/doctest.h>
#include <sys/statvfs.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "integration/calls.h"
#include "support/admin.h"
#include "support/process.h"
#include "support/server_process.h"
#include "support/small_disk.h"

namespace nowcalls::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1024 * 1024;
constexpr int64_t kLongFlow = 1;
constexpr int64_t kShortFlow = 2;

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::multiset<uint64_t> DumpedIds(const Source& source) {
  return Column<uint64_t>(AdminRows(source, {"dump"}), "token_id");
}

// A server on a disk of its own, a client on it, and what this client holds.
class OnSmallDisk {
 public:
  OnSmallDisk() : disk(dir_.Sub("data")), server(dir_.path()) {}

  // False: such a disk cannot be had here.
  bool Begin(const std::string& size, const std::vector<std::string>& settings) {
    if (!disk.Mount(size)) return false;
    server.options().arguments = settings;
    server.Start();
    client = RpcClient(server.address());
    LoadRules(&client, {RuleJson(kLongFlow, 1'000'000),
                        RuleJson(kShortFlow, 1'000, {{"resourceTimeout", 1}})});
    ResultOf(&client, "hello", {1, "default", "alice"});
    return true;
  }

  // Whether one token was granted.
  bool Take() {
    const Grant grant = Acquire(&client, kLongFlow);
    if (grant.status != kStatusOk) {
      last_refusal = grant;
      return false;
    }
    held.insert(grant.token_id);
    return true;
  }
  uint64_t PopHeld() {
    const uint64_t token = *held.begin();
    held.erase(held.begin());
    return token;
  }

 private:
  TempDir dir_;

 public:
  SmallDisk disk;
  ServerProcess server;
  RpcClient client;
  std::multiset<uint64_t> held;
  Grant last_refusal;
};

// What works while nothing is granted.
void CheckServesWhoHolds(OnSmallDisk* on) {
  for (int i = 0; i < 5; ++i) CHECK(Release(&on->client, on->PopHeld()) == kStatusReleaseOk);
  CHECK(Keep(&on->client, *on->held.begin()) == kStatusOk);
  CHECK(Keep(&on->client, *on->held.rbegin()) == kStatusOk);
  const Json reclaimed =
      ResultOf(&on->client, "reclaim", Json::array({on->PopHeld(), "the disk is full"}));
  CHECK(reclaimed.at(0) == kStatusReleaseOk);
  CHECK(PollUntil(kPatienceMs, [&] { return NowCalls(&on->client, kShortFlow) == 0; }));
  const auto listed = ListAll(&on->client, "tokens", Json::array({nullptr}));
  CHECK(Column<uint64_t>(listed, "token_id") == on->held);
  const Json info = ResultOf(&on->client, "info");
  CHECK(info.at("ledger").at("disk_low") == true);
  CHECK(info.at("ledger").at("disk_free_bytes") < 16 * kMiB);
  CHECK(NowCalls(&on->client, kLongFlow) == static_cast<int64_t>(on->held.size()));
}

TEST_CASE("twenty times a disk is nearly full and has room again, and only grants notice") {
  constexpr int kRounds = 20;
  OnSmallDisk on;
  if (!on.Begin("160m", {"--disk-free-low-bytes", std::to_string(16 * kMiB),
                         "--disk-free-high-bytes", std::to_string(96 * kMiB)})) {
    return;
  }
  for (int round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    for (int i = 0; i < 20; ++i) REQUIRE(on.Take());
    REQUIRE(Acquire(&on.client, kShortFlow).status == kStatusOk);
    on.disk.FillUpTo(8 * kMiB);
    REQUIRE(PollUntil(kPatienceMs, [&] { return !on.Take(); }));
    CHECK(on.last_refusal.status == kStatusTooManyRequest);
    CHECK(on.last_refusal.refused_by == "disk_low");
    CHECK(on.last_refusal.now_calls == static_cast<int64_t>(on.held.size()));
    CheckServesWhoHolds(&on);
    on.disk.FillUpTo(20 * kMiB);  // More than the low watermark is not enough.
    REQUIRE(PollUntil(kPatienceMs, [&] {
      return ResultOf(&on.client, "info").at("ledger").at("disk_free_bytes") > 17 * kMiB;
    }));
    CHECK_FALSE(on.Take());
    on.disk.RemoveFill();
    REQUIRE(PollUntil(kPatienceMs, [&] { return on.Take(); }));
    CHECK(ResultOf(&on.client, "info").at("ledger").at("disk_low") == false);
  }
  const auto stat = AdminRows(Source::Live(on.server.address()), {"stat"});
  CHECK(stat.at(0).at("refused_disk_low") >= 2 * kRounds);
  REQUIRE(on.server.Running());
  CHECK(on.server.Terminate() == 0);
  CHECK(CountOf(on.server.log(), "are free for the ledger, fewer than") == kRounds);
  CHECK(CountOf(on.server.log(), "are free for the ledger again") == kRounds);
  CHECK(DumpedIds(Source::Offline(on.server.data_dir())) == on.held);
  CHECK(RunAdmin(Source::Offline(on.server.data_dir()), {"verify"}).exit_code == 0);
}

TEST_CASE("a disk that runs out of inodes is low before, and a start that finds none says so") {
  OnSmallDisk on;
  if (!on.Begin("400m,nr_inodes=400", {})) return;
  REQUIRE(on.Take());
  const std::string fillers = on.server.data_dir() + "/fillers";
  const auto fill_up_to = [&](uint64_t left) {
    fs::create_directory(fillers);
    struct statvfs info {};
    for (int i = 0; statvfs(fillers.c_str(), &info) == 0 && info.f_ffree > left; ++i) {
      WriteStringToFile(fillers + "/" + std::to_string(i), "");
    }
  };
  fill_up_to(40);
  REQUIRE(PollUntil(kPatienceMs, [&] { return !on.Take(); }));
  CHECK(on.last_refusal.refused_by == "disk_low");
  CHECK(on.server.LogHas("inodes are free on the ledger's file system, fewer than 64"));
  fs::remove_all(fillers);
  REQUIRE(PollUntil(kPatienceMs, [&] { return on.Take(); }));
  on.server.Kill9();
  fill_up_to(0);
  on.server.StartWithoutWaiting();
  CHECK(on.server.process().Wait() == 74);
  CHECK(on.server.LogHas("the file system has no inodes left, whatever space is free"));
  CHECK_FALSE(Contains(on.server.log(), "free space"));
  fs::remove_all(fillers);
  on.server.Start();
  CHECK(DumpedIds(Source::Live(on.server.address())) == on.held);
}

TEST_CASE("a server that starts on a nearly full disk grants nothing from its first answer on") {
  OnSmallDisk on;
  if (!on.Begin("64m", {"--disk-free-low-bytes", std::to_string(16 * kMiB)})) return;
  for (int i = 0; i < 10; ++i) REQUIRE(on.Take());
  on.server.Kill9();
  on.disk.FillUpTo(12 * kMiB);
  on.server.Start();
  on.client = RpcClient(on.server.address());
  CHECK(ResultOf(&on.client, "hello", {1, "default", "alice"}).at(3) == 10);
  CHECK_FALSE(on.Take());
  CHECK(on.last_refusal.refused_by == "disk_low");
  CHECK(Release(&on.client, on.PopHeld()) == kStatusReleaseOk);
  on.server.Kill9();
  CHECK(DumpedIds(Source::Offline(on.server.data_dir())) == on.held);
}

TEST_CASE("what a start deletes counts as room from its first answer on") {
  OnSmallDisk on;
  if (!on.Begin("160m", {"--disk-free-low-bytes", std::to_string(64 * kMiB),
                         "--disk-free-high-bytes", std::to_string(128 * kMiB)})) {
    return;
  }
  REQUIRE(on.Take());
  on.server.Kill9();
  WriteStringToFile(on.server.data_dir() + "/ledger/spare_log.1", std::string(24 * kMiB, 'x'));
  on.disk.FillUpTo(52 * kMiB);
  on.server.Start();
  on.client = RpcClient(on.server.address());
  ResultOf(&on.client, "hello", {1, "default", "alice"});
  CHECK(on.Take());
  // And later, when it is room and less than the high watermark.
  REQUIRE(PollUntil(kPatienceMs, [&] { return on.disk.FreeBytes() > 68 * kMiB; }));
  CHECK(on.Take());
  CHECK(on.server.Terminate() == 0);
  CHECK(CountOf(on.server.log(), "are free for the ledger, fewer than") == 0);
}

TEST_CASE(
    "on a disk without a byte left a server ends with 74, and all it granted is there later") {
  OnSmallDisk on;
  if (!on.Begin("64m", {"--disk-free-low-bytes", "0"})) return;
  for (int i = 0; i < 100; ++i) REQUIRE(on.Take());
  for (int i = 0; i < 50; ++i) CHECK(Release(&on.client, on.PopHeld()) == kStatusReleaseOk);
  on.disk.FillUpTo(0);
  // There is room in what was allotted to the log. Rules take it sooner than tokens do.
  Json rules = {RuleJson(kLongFlow, 1'000'000)};
  for (int64_t flow = 100; flow < 200; ++flow) rules.push_back(RuleJson(flow, 1));
  bool serves = true;
  for (int64_t level = 2; serves; ++level) {
    for (auto rule = rules.begin() + 1; rule != rules.end(); ++rule) (*rule)["count"] = level;
    serves = on.client.Call("rules_load", {"default", rules}).ok();
    for (int i = 0; serves && i < 5; ++i) {
      const Reply reply = on.client.Call("acquire", {kLongFlow, 1});
      serves = reply.ok();
      if (serves) on.held.insert(reply.result.at(1).get<uint64_t>());
    }
  }
  CHECK(on.server.process().Wait() == 74);
  CHECK(on.server.LogHas("exiting, a restart recovers the ledger"));
  for (int start = 0; start < 2; ++start) {
    on.server.StartWithoutWaiting();
    if (on.server.WaitUntilServing()) on.server.Kill9();
    const std::optional<int> ended = on.server.process().Wait();
    CHECK((ended == 74 || ended == -SIGKILL));
  }
  on.disk.RemoveFill();
  on.server.Start();
  auto dumped = DumpedIds(Source::Live(on.server.address()));
  for (const uint64_t token : on.held) CHECK(dumped.erase(token) == 1);
  CHECK(dumped.size() <= 1);  // The one acquire that was not answered.
  on.client = RpcClient(on.server.address());
  ResultOf(&on.client, "hello", {1, "default", "alice"});
  CHECK(on.Take());
  CHECK(on.server.Terminate() == 0);
  CHECK(RunAdmin(Source::Offline(on.server.data_dir()), {"verify"}).exit_code == 0);
}

}  // namespace
}  // namespace nowcalls::testing
