#include "crash/crash_loop.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "crash/ledger_view.h"
#include "crash/load_client.h"
#include "support/server_process.h"

namespace nowcalls::crash {
namespace {

namespace fs = std::filesystem;
using testing::Json;
using testing::RpcClient;

constexpr int64_t kRestartGraceMs = 1'000;
constexpr int kLogsKept = 20;  // Cycles whose client logs stay on disk.

// One flow for each family of deadlines in the ledger, one with the sessions in its level, one that
// is swept all the time and one that is lost by clients that stay away.
std::vector<FlowFacts> Flows() {
  return {{1, 60, 15'000, 5'000},
          {2, 100'000, 300'000, 5'000},
          {3, 200, 150, 5'000},
          {4, 0, 15'000, 5'000},
          {5, 500, 5'000, 100}};
}

std::vector<int64_t> FlowIds() {
  std::vector<int64_t> ids;
  for (const auto& flow : Flows()) ids.push_back(flow.flow_id);
  return ids;
}

Json Rules() {
  constexpr double kCountForEachSession = 6;
  Json rules = Json::array();
  for (const auto& flow : Flows()) {
    Json cluster = {{"resourceTimeout", flow.resource_timeout_ms},
                    {"clientOfflineTime", flow.client_offline_ms}};
    if (flow.level == 0) cluster["thresholdType"] = 0;
    const double count = flow.level == 0 ? kCountForEachSession : static_cast<double>(flow.level);
    rules.push_back(testing::RuleJson(flow.flow_id, count, cluster));
  }
  return rules;
}

std::string MakeRunDir() {
  std::string dir = (fs::temp_directory_path() / "nowcalls-crash-XXXXXX").string();
  if (mkdtemp(dir.data()) == nullptr) throw std::runtime_error("cannot make " + dir);
  return dir;
}

class CrashLoop {
 public:
  explicit CrashLoop(const CrashLoopOptions& options)
      : options_(options),
        prng_(options.seed),
        dir_(MakeRunDir()),
        server_(dir_, {{"--rules", dir_ + "/rules.json", "--restart-grace-ms",
                        std::to_string(kRestartGraceMs)},
                       {}}),
        checker_(Flows(), kRestartGraceMs) {
    testing::WriteStringToFile(dir_ + "/rules.json", Rules().dump());
    for (int i = 0; i < 5; ++i) {
      AddClient({.client_id = "client-" + std::to_string(i), .flow_ids = FlowIds()});
    }
    // Nobody can release what such a connection leaves behind, so it uses what ends by itself.
    for (int i = 0; i < 2; ++i) {
      AddClient({.client_id = "", .flow_ids = {3, 5}, .held_max = 5, .reconnects_per_10k = 5});
    }
  }

  CrashLoopResult Run() {
    while (result_.violations.empty() && result_.cycles < options_.cycles) OneCycle();
    if (result_.violations.empty()) CheckEverythingEnds();
    result_.acknowledged = checker_.acknowledged();
    result_.unknown = checker_.unknown();
    result_.adopted = checker_.adopted();
    if (result_.violations.empty() && !options_.keep_dir) {
      fs::remove_all(dir_);
    } else {
      result_.dir = dir_;
    }
    return result_;
  }

 private:
  void AddClient(LoadOptions options) {
    clients_.push_back(std::make_unique<LoadClient>(std::move(options), prng_.Next()));
  }

  void SleepUpTo(int64_t ms) {
    std::this_thread::sleep_for(std::chrono::microseconds(prng_.Between(0, ms * 1000)));
  }

  void Violate(const std::string& what) {
    result_.violations.push_back(what + " in cycle " + std::to_string(result_.cycles));
  }

  void Take(const Violations& violations) {
    result_.violations.insert(result_.violations.end(), violations.begin(), violations.end());
  }

  std::string LogDir(int cycle) const { return dir_ + "/clients/" + std::to_string(cycle); }

  void OneCycle() {
    constexpr uint32_t kKilledDuringRecovery = 150'000;  // Per million.
    ++result_.cycles;
    fs::create_directories(LogDir(result_.cycles));
    fs::remove_all(LogDir(result_.cycles - kLogsKept));
    Cycle cycle;
    cycle.started_us = BoottimeUs();
    server_.StartWithoutWaiting();
    if (prng_.ChancePerMillion(kKilledDuringRecovery)) {
      ++result_.kills_during_recovery;
      SleepUpTo(60);
      server_.Kill9();
    } else {
      Load(cycle.started_us);
    }
    cycle.dead_us = BoottimeUs();
    for (const auto& log : fs::directory_iterator(LogDir(result_.cycles))) {
      ReadHistory(log.path().string(), &cycle.history);
    }
    CheckLedger(&cycle);
    if (options_.progress) {
      options_.progress("cycle " + std::to_string(result_.cycles) + ": " +
                        std::to_string(cycle.history.operations.size()) + " operations, " +
                        std::to_string(cycle.ledger.tokens.size()) + " tokens in the ledger");
    }
  }

  void Load(int64_t started_us) {
    constexpr uint32_t kDrained = 250'000;  // Per million.
    if (!server_.WaitUntilServing()) {
      Violate("the server does not start; its log is server.log");
      return;
    }
    has_served_ = true;
    CheckReport(started_us);
    LoadSignals signals;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < clients_.size(); ++i) {
      const std::string log = LogDir(result_.cycles) + "/" + std::to_string(i) + ".log";
      threads.emplace_back(
          [this, i, log, &signals] { clients_[i]->Run(server_.address(), log, &signals); });
    }
    SleepUpTo(1'000);
    // An almost empty ledger is a case of its own: what was given last is not in it.
    signals.drain = prng_.ChancePerMillion(kDrained);
    if (signals.drain) SleepUpTo(100);
    signals.ending = true;
    EndServer();
    signals.stop = true;
    for (auto& thread : threads) thread.join();
    for (const auto& client : clients_) {
      if (!client->problem().empty()) Violate(client->problem());
    }
  }

  void EndServer() {
    constexpr uint32_t kTerminated = 50'000;  // Per million; the others are killed.
    if (!server_.Running()) {
      Violate("the server ended by itself; its log is server.log");
    } else if (prng_.ChancePerMillion(kTerminated)) {
      Terminate();
    } else {
      server_.Kill9();
    }
  }

  void Terminate() {
    server_.process().Signal(SIGTERM);
    const auto ended = server_.process().Wait();
    if (!ended) server_.Kill9();
    if (ended == 0) return;
    Violate("SIGTERM ended the server with " + (ended ? std::to_string(*ended) : "nothing"));
  }

  void CheckReport(int64_t started_us) {
    RpcClient client(server_.address());
    const CountByFlow reported = ReportedNowCalls(&client, FlowIds());
    Take(checker_.CheckReported(reported, started_us, BoottimeUs()));
  }

  void CheckLedger(Cycle* cycle) {
    const auto source = testing::Source::Offline(server_.data_dir());
    // A kill during the very first start may leave no ledger at all.
    if (has_served_) {
      cycle->ledger = ReadLedger(source);
      const auto verified = testing::RunAdmin(source, {"verify"});
      if (verified.exit_code != 0) Violate("verify finds: " + verified.out + verified.err);
    }
    Take(checker_.CheckCycle(*cycle));
    std::map<std::string, std::vector<uint64_t>> held;
    for (const auto& token : cycle->ledger.tokens) {
      held[token.client_id].push_back(token.token_id);
    }
    for (auto& client : clients_) client->SetHeld(held[client->client_id()]);
  }

  // I7: with all clients gone everything ends by itself, and every flow then grants its level.
  void CheckEverythingEnds() {
    server_.Start();
    const bool drained = testing::PollUntil(2 * testing::kPatienceMs, [this] {
      RpcClient client(server_.address());
      const CountByFlow counts = ReportedNowCalls(&client, FlowIds());
      return std::all_of(counts.begin(), counts.end(),
                         [](const auto& entry) { return entry.second == 0; });
    });
    if (!drained) Violate("I7 tokens are left after every deadline");
    RpcClient client(server_.address());
    client.Call("hello", {1, "default", "client-last"});
    for (const auto& flow : Flows()) {
      const int64_t count = flow.level == 0 ? 1 : flow.level;
      const auto reply = client.Call("acquire", {flow.flow_id, count});
      if (reply.ok() && reply.result.at(0) == 0) continue;
      Violate("I7 flow " + std::to_string(flow.flow_id) + " does not grant " +
              std::to_string(count) + ": " + reply.ToString());
    }
    Terminate();
  }

  CrashLoopOptions options_;
  Prng prng_;
  std::string dir_;
  testing::ServerProcess server_;
  Checker checker_;
  std::vector<std::unique_ptr<LoadClient>> clients_;
  CrashLoopResult result_;
  bool has_served_ = false;
};

}  // namespace

CrashLoopResult RunCrashLoop(const CrashLoopOptions& options) { return CrashLoop(options).Run(); }

}  // namespace nowcalls::crash
