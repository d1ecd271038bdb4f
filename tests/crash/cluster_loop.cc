#include "crash/cluster_loop.h"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "crash/crew.h"
#include "crash/ledger_view.h"
#include "crash/rule_sets.h"
#include "crash/tally.h"
#include "support/etcd_cluster.h"
#include "support/server_process.h"
#include "support/tcp.h"

namespace nowcalls::crash {
namespace {

namespace fs = std::filesystem;
using testing::RpcClient;

// Longer than a takeover and a dump: what is gone in the dump was gone when the writer began.
constexpr int64_t kRestartGraceMs = 60'000;
constexpr size_t kMembers = 3;
constexpr int kLogsKept = 20;

// How the time of a writer ends.
enum class End {
  kKill,        // kill -9.
  kHandOver,    // SIGTERM.
  kStop,        // SIGSTOP, and SIGCONT with its clients still there, mostly behind a takeover.
  kEtcdLeader,  // kill -9 of etcd's leader, then of the writer.
  kBoth,        // At once.
  kEtcdAway,    // All of etcd stands still for longer than a lease.
};

std::string NameOf(End end) {
  switch (end) {
    case End::kKill: return "kill of the writer";
    case End::kHandOver: return "handover";
    case End::kStop: return "stop of the writer";
    case End::kEtcdLeader: return "kill of etcd's leader, then of the writer";
    case End::kBoth: return "kill of etcd's leader and the writer";
    case End::kEtcdAway: return "etcd that stands still";
  }
  return {};
}

std::string MakeRunDir() {
  std::string dir = (fs::temp_directory_path() / "nowcalls-cluster-XXXXXX").string();
  if (mkdtemp(dir.data()) == nullptr) throw std::runtime_error("cannot make " + dir);
  return dir;
}

bool AddsUp(const LedgerView& ledger) {
  CountByFlow counts;
  for (const DumpedToken& token : ledger.tokens) counts[token.flow_id] += token.count;
  for (const auto& [flow, count] : ledger.now_calls) {
    const auto found = counts.find(flow);
    if (count != (found == counts.end() ? 0 : found->second)) return false;
  }
  return true;
}

class ClusterLoop {
 public:
  explicit ClusterLoop(const CrashLoopOptions& options)
      : options_(options),
        prng_(options.seed),
        dir_(MakeRunDir()),
        etcd_(3),
        checker_(RuleSets::Flows(), kRestartGraceMs),
        rules_(dir_ + "/rules.json"),
        crew_(&prng_, /*instances=*/false) {
    for (size_t i = 0; i < kMembers; ++i) {
      const std::string dir = dir_ + "/member-" + std::to_string(i);
      fs::create_directories(dir);
      members_.push_back(std::make_unique<testing::ServerProcess>(
          dir, testing::ServerOptions{
                   .arguments = {"--cluster", "etcd://" + etcd_.endpoints() + "/crash", "--rules",
                                 dir_ + "/rules.json", "--restart-grace-ms",
                                 std::to_string(kRestartGraceMs)},
                   .port = testing::FreePort()}));
      members_.back()->StartWithoutWaiting();
    }
  }

  CrashLoopResult Run() {
    writer_ = AwaitWriter();
    while (writer_ && result_.violations.empty() && result_.cycles < options_.cycles) OneCycle();
    if (!writer_) Violate("no member serves");
    const CheckerCounts& counts = checker_.counts();
    result_.acknowledged = counts.acknowledged;
    result_.unknown = counts.unknown;
    result_.adopted = counts.adopted;
    for (const auto& member : members_) {
      if (!member->Running()) continue;
      if (member->Terminate() != 0) Violate("a member does not end in good order");
    }
    if (result_.violations.empty() && !options_.keep_dir) {
      fs::remove_all(dir_);
    } else {
      result_.dir = dir_;
    }
    return result_;
  }

 private:
  void Violate(const std::string& what) {
    result_.violations.push_back(what + " in cycle " + std::to_string(result_.cycles));
  }
  void SleepUpTo(int64_t ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(prng_.Between(0, ms)));
  }
  std::string LogDir(int cycle) const { return dir_ + "/clients/" + std::to_string(cycle); }
  std::string AddressOf(size_t member) const {
    return "127.0.0.1:" + std::to_string(members_[member]->options().port);
  }

  bool Serves(size_t member) {
    return members_[member]->Running() && RpcClient(AddressOf(member)).Call("ping").ok();
  }

  std::optional<size_t> AwaitWriter() {
    std::optional<size_t> writer;
    testing::PollUntil(2 * testing::kPatienceMs, [&] {
      for (size_t i = 0; i < kMembers && !writer; ++i) {
        if (Serves(i)) writer = i;
      }
      return writer.has_value();
    });
    return writer;
  }

  // How often a member has begun to serve.
  size_t Lives() const {
    size_t lives = 0;
    for (const auto& member : members_) {
      const std::string log = member->log();
      for (size_t at = 0; (at = log.find(" serves in term", at)) != std::string::npos; ++at)
        ++lives;
    }
    return lives;
  }

  void OneCycle() {
    ++result_.cycles;
    fs::create_directories(LogDir(result_.cycles));
    fs::remove_all(LogDir(result_.cycles - kLogsKept));
    const End end = static_cast<End>(prng_.Below(6));
    Cycle cycle;
    cycle.started_us = began_us_;
    rules_.BeginCycle(BoottimeUs());
    const size_t before = *writer_;
    LoadSignals signals;
    RpcClient client(AddressOf(before));
    if (!rules_.moving_has_rules()) rules_.Load(&client);
    crew_.Start(
        AddressOf(before),
        [this](const std::string& name) { return LogDir(result_.cycles) + "/" + name + ".log"; },
        &signals);
    SleepUpTo(1'000);
    MayKillStandby();
    SleepUpTo(1'000);
    signals.ending = true;
    began_us_ = BoottimeUs();
    const size_t lives = Lives();
    Do(end, before);
    writer_ = AwaitWriter();
    // The writer went on, or not: a cycle is one life.
    if (writer_ && Lives() == lives) {
      members_[before]->Kill9();
      writer_ = AwaitWriter();
    }
    signals.stop = true;
    crew_.Join();
    for (const std::string& problem : crew_.Problems()) Violate(problem);
    if (!writer_) return;
    Judge(&cycle);
    Repair(before);
    ++result_.moments[NameOf(end)];
    AddToTally(cycle.history, &result_.tally);
    if (options_.progress) {
      options_.progress("cycle " + std::to_string(result_.cycles) + ": " + NameOf(end) + "; " +
                        std::to_string(cycle.history.operations.size()) + " operations, " +
                        std::to_string(cycle.ledger.tokens.size()) + " tokens in the ledger");
    }
  }

  void MayKillStandby() {
    if (prng_.Below(4) != 0) return;
    const auto standby = static_cast<size_t>(prng_.Below(kMembers));
    if (standby == *writer_) return;
    members_[standby]->Kill9();
    members_[standby]->StartWithoutWaiting();
  }

  void Do(End end, size_t writer) {
    testing::ServerProcess& member = *members_[writer];
    switch (end) {
      case End::kKill: return member.Kill9();
      case End::kHandOver:
        if (member.Terminate() != 0) Violate("a handover ends with another code than 0");
        return;
      case End::kStop:
        member.process().Signal(SIGSTOP);
        std::this_thread::sleep_for(std::chrono::milliseconds(prng_.Between(500, 6'000)));
        return member.process().Signal(SIGCONT);
      case End::kEtcdLeader:
        KillLeader();
        SleepUpTo(3'000);
        return member.Kill9();
      case End::kBoth: KillLeader(); return member.Kill9();
      case End::kEtcdAway:
        for (size_t i = 0; i < etcd_.count(); ++i) etcd_.Signal(i, SIGSTOP);
        std::this_thread::sleep_for(std::chrono::milliseconds(prng_.Between(2'000, 4'000)));
        for (size_t i = 0; i < etcd_.count(); ++i) etcd_.Signal(i, SIGCONT);
    }
  }

  void KillLeader() {
    etcd_down_ = etcd_.Leader();
    if (etcd_down_) etcd_.Kill(*etcd_down_);
  }

  void Repair(size_t before) {
    if (etcd_down_) etcd_.Start(*std::exchange(etcd_down_, std::nullopt));
    if (!members_[before]->Running()) members_[before]->StartWithoutWaiting();
    for (size_t i = 0; i < kMembers; ++i) {
      if (!members_[i]->Running()) Violate("member " + std::to_string(i) + " ended by itself");
    }
  }

  // The next writer has all that counts.
  void Judge(Cycle* cycle) {
    for (const auto& log : fs::directory_iterator(LogDir(result_.cycles))) {
      ReadHistory(log.path().string(), &cycle->history);
    }
    const auto source = testing::Source::Live(AddressOf(*writer_));
    try {
      // Tokens end between the dump and its sums.
      testing::PollUntil(testing::kPatienceMs, [&] {
        cycle->ledger = ReadLedger(source);
        return AddsUp(cycle->ledger);
      });
      const Violations wrong = rules_.CheckAndAdopt(source);
      result_.violations.insert(result_.violations.end(), wrong.begin(), wrong.end());
    } catch (const std::runtime_error& error) {
      return Violate(error.what());
    }
    cycle->dead_us = BoottimeUs();
    cycle->levels = rules_.changes();
    const Violations wrong = checker_.CheckCycle(*cycle);
    result_.violations.insert(result_.violations.end(), wrong.begin(), wrong.end());
    crew_.Adopt(cycle->ledger);
  }

  CrashLoopOptions options_;
  Prng prng_;
  std::string dir_;
  testing::EtcdCluster etcd_;
  Checker checker_;
  RuleSets rules_;
  Crew crew_;
  std::vector<std::unique_ptr<testing::ServerProcess>> members_;
  std::optional<size_t> writer_;
  int64_t began_us_ = BoottimeUs();  // Not later than its time: the grace of a restart counts.
  std::optional<size_t> etcd_down_;  // A node.
  CrashLoopResult result_;
};

}  // namespace

CrashLoopResult RunClusterLoop(const CrashLoopOptions& options) {
  return ClusterLoop(options).Run();
}

}  // namespace nowcalls::crash
