#include "crash/crash_loop.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "crash/backup_probe.h"
#include "crash/burst.h"
#include "crash/crew.h"
#include "crash/kill_moment.h"
#include "crash/ledger_view.h"
#include "crash/operator.h"
#include "crash/rule_sets.h"
#include "crash/start_log.h"
#include "crash/tally.h"
#include "crash/whitebox.h"
#include "support/server_process.h"

namespace nowcalls::crash {
namespace {

namespace fs = std::filesystem;
using testing::RpcClient;

constexpr int64_t kRestartGraceMs = 1'000;
constexpr int kLogsKept = 20;  // Cycles whose client logs stay on disk.

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
        server_(dir_, {.arguments = {"--rules", dir_ + "/rules.json", "--restart-grace-ms",
                                     std::to_string(kRestartGraceMs), "--durability", "sync"},
                       .environment = {},
                       .program = options.whitebox ? Whitebox::Program() : std::string()}),
        checker_(RuleSets::Flows(), kRestartGraceMs),
        rules_(dir_ + "/rules.json"),
        backup_(dir_),
        whitebox_(dir_),
        start_log_(dir_),
        crew_(&prng_, /*instances=*/true) {}

  CrashLoopResult Run() {
    while (result_.violations.empty() && result_.cycles < options_.cycles) OneCycle();
    if (result_.violations.empty()) CheckEverythingEnds();
    const CheckerCounts& counts = checker_.counts();
    result_.acknowledged = counts.acknowledged;
    result_.unknown = counts.unknown;
    result_.adopted = counts.adopted;
    result_.tally["acquires asked again and answered with their token"] = counts.asked_again;
    result_.tally["groups asked again and answered with their tokens"] = counts.groups_asked_again;
    result_.tally["groups left unanswered that had been granted"] = counts.adopted_groups;
    result_.tally["tokens told lost"] = counts.told_lost;
    if (result_.violations.empty() && !options_.keep_dir) {
      fs::remove_all(dir_);
    } else {
      result_.dir = dir_;
    }
    return result_;
  }

 private:
  // Shorter when a kill point has ended the server.
  void Sleep(int64_t us) {
    if (options_.whitebox) {
      testing::PollUntil(us / 1000, [this] { return !server_.Running(); });
    } else if (us > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(us));
    }
  }
  void SleepUpTo(int64_t ms) { Sleep(prng_.Between(0, ms * 1000)); }

  void Violate(const std::string& what) {
    result_.violations.push_back(what + " in cycle " + std::to_string(result_.cycles));
  }

  void Take(const Violations& violations) {
    result_.violations.insert(result_.violations.end(), violations.begin(), violations.end());
  }

  std::string LogDir(int cycle) const { return dir_ + "/clients/" + std::to_string(cycle); }
  std::string LogPath(const std::string& name) const {
    return LogDir(result_.cycles) + "/" + name + ".log";
  }

  void OneCycle() {
    ++result_.cycles;
    fs::create_directories(LogDir(result_.cycles));
    fs::remove_all(LogDir(result_.cycles - kLogsKept));
    moment_ = moments_.Next(&prng_);
    // Kill points are reached during recovery as often as is good.
    if (options_.whitebox && moment_ == KillMoment::kRecovery) moment_ = KillMoment::kLoad;
    detail_.clear();
    if (options_.whitebox) server_.options().environment = whitebox_.Arm(&prng_);
    DrawDurability();
    Cycle cycle;
    cycle.started_us = BoottimeUs();
    rules_.BeginCycle(cycle.started_us);
    if (moment_ == KillMoment::kRecovery) {
      KillRecovery();
    } else {
      start_log_.Begin();
      server_.StartWithoutWaiting();
      Load(cycle.started_us);
      const StartStage stage = start_log_.End();
      if (moment_ == KillMoment::kRecovery) ++result_.starts[NameOf(stage)];
    }
    cycle.dead_us = BoottimeUs();
    for (const auto& log : fs::directory_iterator(LogDir(result_.cycles))) {
      ReadHistory(log.path().string(), &cycle.history);
    }
    cycle.levels = rules_.changes();
    CheckLedger(&cycle);
    Count(cycle);
  }

  // What was answered is with the operating system at least, which a kill -9 leaves alone.
  void DrawDurability() {
    const uint64_t roll = prng_.Below(5);
    std::string durability = roll == 0 ? "none" : "sync";
    if (roll == 1) durability = "interval:" + std::to_string(prng_.Between(1, 200));
    server_.options().arguments.back() = durability;
    ++result_.durabilities[durability.substr(0, durability.find(':'))];
  }

  // Starts the server until a kill has hit the middle of its recovery, as its log tells; some kills
  // come at any moment from the fork on.
  void KillRecovery() {
    constexpr int kTries = 10;
    StartStage stage = StartStage::kBefore;
    for (int i = 0; i < kTries && stage != StartStage::kIn && result_.violations.empty(); ++i) {
      start_log_.Begin();
      server_.StartWithoutWaiting();
      if (prng_.Below(8) == 0) {
        SleepUpTo(20);
      } else if (start_log_.WaitForFirstLine(&server_.process())) {
        Sleep(prng_.Between(0, start_log_.RecoveryUs()));
      }
      EndServer();
      stage = start_log_.End();
      ++result_.starts[NameOf(stage)];
    }
    detail_ = NameOf(stage);
  }

  // One line about the cycle, and the sums.
  void Count(const Cycle& cycle) {
    if (moment_ == KillMoment::kSweep) detail_ = SweepDetail(cycle);
    const std::string during = NameOf(moment_) + (detail_.empty() ? "" : ", " + detail_);
    ++result_.moments[during];
    AddToTally(cycle.history, &result_.tally);
    std::string line = "cycle " + std::to_string(result_.cycles) + ": ";
    if (options_.whitebox) {
      const std::string fired = whitebox_.Fired();
      ++result_.fired[fired.empty() ? "timer" : Whitebox::KindOf(fired)];
      line += whitebox_.armed() + (fired.empty() ? ", not reached" : ", killed by " + fired) + "; ";
    }
    line += during + "; " + std::to_string(cycle.history.operations.size()) + " operations, " +
            std::to_string(cycle.ledger.tokens.size()) + " tokens in the ledger";
    if (options_.progress) options_.progress(line);
  }

  static std::string SweepDetail(const Cycle& cycle) {
    std::set<uint64_t> granted;
    for (const auto& operation : cycle.history.operations) {
      if (operation.client != Burst::kClientId) continue;
      if (operation.outcome == Outcome::kGranted) granted.insert(operation.token_id);
    }
    const auto left =
        std::count_if(cycle.ledger.tokens.begin(), cycle.ledger.tokens.end(),
                      [&](const DumpedToken& token) { return granted.contains(token.token_id); });
    if (static_cast<size_t>(left) == granted.size()) return "not begun";
    return left == 0 ? "over" : "in the middle";
  }

  // Whether a kill point ended the server, or is about to.
  bool KilledFromWithin() {
    return options_.whitebox && server_.process().Wait() == -SIGKILL && !whitebox_.Fired().empty();
  }

  void Load(int64_t started_us) {
    if (!server_.WaitUntilServing()) {
      if (KilledFromWithin()) {
        moment_ = KillMoment::kRecovery;
      } else {
        Violate("the server does not start; its log is server.log");
      }
      return;
    }
    has_served_ = true;
    LoadSignals signals;
    signals.ending = options_.whitebox;
    Ask([&] {
      operator_ = RpcClient(server_.address());
      if (!rules_.moving_has_rules()) rules_.Load(&operator_);
      CheckReport(started_us);
    });
    crew_.Start(
        server_.address(), [this](const std::string& name) { return LogPath(name); }, &signals);
    Ask([&] { ComeToTheMoment(&signals); });
    signals.ending = true;
    EndServer();
    signals.stop = true;
    crew_.Join();
    for (const std::string& problem : crew_.Problems()) Violate(problem);
  }

  // What is asked of a server that a kill point ends gets no answer.
  void Ask(const std::function<void()>& ask) {
    try {
      ask();
    } catch (const std::runtime_error& error) {
      if (!KilledFromWithin()) Violate(error.what());
    }
  }

  // Ends when the server is to be killed.
  void ComeToTheMoment(LoadSignals* signals) {
    switch (moment_) {
      case KillMoment::kLoad:
      case KillMoment::kSigterm:
      case KillMoment::kRecovery: return LoadOnly(signals);
      case KillMoment::kBackup: return BackUp();
      case KillMoment::kRulesLoad: return LoadRules();
      case KillMoment::kSweep: return LetExpire();
    }
  }

  void LoadOnly(LoadSignals* signals) {
    constexpr uint32_t kDrained = 250'000;  // Per million.
    SleepUpTo(1'000);
    // An almost empty ledger is a case of its own: what was given last is not in it.
    signals->drain = prng_.ChancePerMillion(kDrained);
    if (signals->drain) SleepUpTo(100);
  }

  // The kill comes some moment after it was asked for, or after it was begun, or finished.
  void BackUp() {
    SleepUpTo(500);
    backup_.Begin(server_.address());
    backup_asked_ = true;
    const uint64_t roll = prng_.Below(3);
    testing::PollUntil(testing::kPatienceMs, [this, roll] {
      return roll == 0 || (roll == 1 ? backup_.HasBegun() : backup_.IsFinished()) ||
             !server_.Running();
    });
    SleepUpTo(roll == 0 ? 100 : roll == 1 ? 40 : 5);
  }

  void LoadRules() {
    for (int64_t loads = prng_.Between(1, 3); loads > 0; --loads) {
      SleepUpTo(150);
      rules_.Load(&operator_);
    }
    SleepUpTo(150);
    const uint64_t roll = prng_.Below(4);
    // What has just been acknowledged must be there.
    if (roll == 3) return rules_.Load(&operator_);
    if (roll != 0) rules_.BeginReload(server_.process());
    if (roll != 1) rules_.BeginLoad(&operator_);
    // Soon after it has been sent it is in force already.
    SleepUpTo(prng_.Below(2) == 0 ? 2 : 20);
  }

  void LetExpire() {
    constexpr int kTokens = 2'000;
    constexpr int64_t kFlow = 6;
    SleepUpTo(200);
    burst_.Run(server_.address(), LogPath(Burst::kClientId), kFlow, kTokens);
    if (burst_.granted() == 0) return;
    const int64_t to_us = prng_.Between(burst_.first_deadline_us(), burst_.last_deadline_us());
    Sleep(to_us + prng_.Between(0, 80'000) - BoottimeUs());
  }

  void EndServer() {
    if (!server_.Running()) {
      if (!KilledFromWithin()) Violate("the server ended by itself; its log is server.log");
    } else if (moment_ == KillMoment::kSigterm) {
      Terminate();
    } else {
      server_.Kill9();
    }
  }

  void Terminate() {
    server_.process().Signal(SIGTERM);
    const auto ended = server_.process().Wait();
    if (!ended) server_.Kill9();
    if (ended == 0 || KilledFromWithin()) return;
    Violate("SIGTERM ended the server with " + (ended ? std::to_string(*ended) : "nothing"));
  }

  void CheckReport(int64_t started_us) {
    const CountByFlow reported = ReportedNowCalls(&operator_, RuleSets::FlowIds());
    Take(checker_.CheckReported(reported, started_us, BoottimeUs()));
  }

  void CheckLedger(Cycle* cycle) {
    const auto source = testing::Source::Offline(server_.data_dir());
    // A kill during the very first start may leave no ledger at all.
    if (has_served_) {
      try {
        cycle->ledger = ReadLedger(source);
      } catch (const std::runtime_error& error) {
        return Violate(error.what());
      }
      const auto verified = testing::RunAdmin(source, {"verify"});
      if (verified.exit_code != 0) Violate("verify finds: " + verified.out + verified.err);
    }
    if (backup_asked_) JudgeBackup(cycle);
    if (has_served_) Take(rules_.CheckAndAdopt(source));
    if (moment_ == KillMoment::kRulesLoad) {
      detail_ = rules_.newest_found() ? "the new sets found" : "an old set found";
    }
    Take(checker_.CheckCycle(*cycle));
    crew_.Adopt(cycle->ledger);
  }

  void JudgeBackup(Cycle* cycle) {
    backup_asked_ = false;
    const auto check_rules = [this](const std::string& data_dir) {
      return rules_.Check(testing::Source::Offline(data_dir));
    };
    Violations violations;
    cycle->backup = backup_.Judge(check_rules, &violations);
    Take(violations);
    switch (backup_.state()) {
      case BackupProbe::State::kNotBegun: detail_ = "not begun"; break;
      case BackupProbe::State::kUnfinished: detail_ = "unfinished"; break;
      case BackupProbe::State::kFinished: detail_ = "finished"; break;
    }
  }

  // I7: with all clients gone everything ends by itself, and every flow then grants its level.
  void CheckEverythingEnds() {
    server_.options().environment.clear();
    server_.options().arguments.back() = "sync";
    rules_.RewriteForTheEnd();
    server_.Start();
    Operator::Settle(server_.address());
    const bool drained = testing::PollUntil(2 * testing::kPatienceMs, [this] {
      RpcClient client(server_.address());
      const CountByFlow counts = ReportedNowCalls(&client, RuleSets::FlowIds());
      return std::all_of(counts.begin(), counts.end(),
                         [](const auto& entry) { return entry.second == 0; });
    });
    if (!drained) Violate("I7 tokens are left after every deadline");
    for (const auto& flow : RuleSets::Flows()) {
      RpcClient client(server_.address());
      client.Call("hello", {1, RuleSets::NameSpaceOf(flow.flow_id), "client-last"});
      const int64_t count = flow.level == 0 ? 1 : rules_.LevelOf(flow.flow_id);
      testing::Json options = testing::Json::object();
      if (IsKeyLane(flow.flow_id)) options["param"] = KeyOfLane(flow.flow_id);
      const auto reply = client.Call("acquire", {FlowOfLane(flow.flow_id), count, options});
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
  RuleSets rules_;
  BackupProbe backup_;
  Whitebox whitebox_;
  StartLog start_log_;
  Crew crew_;
  KillMoments moments_;
  Burst burst_;
  RpcClient operator_;
  CrashLoopResult result_;
  bool has_served_ = false;
  KillMoment moment_ = KillMoment::kLoad;  // Of this cycle,
  std::string detail_;                     // and what came of it.
  bool backup_asked_ = false;
};

}  // namespace

CrashLoopResult RunCrashLoop(const CrashLoopOptions& options) { return CrashLoop(options).Run(); }

}  // namespace nowcalls::crash
