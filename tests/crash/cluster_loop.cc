#include "crash/cluster_loop.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/prng.h"
#include "crash/cluster_end.h"
#include "crash/cluster_site.h"
#include "crash/crew.h"
#include "crash/ledger_view.h"
#include "crash/rule_sets.h"
#include "crash/tally.h"

namespace nowcalls::crash {
namespace {

namespace fs = std::filesystem;
using testing::RpcClient;

// Longer than a takeover and a dump: what is gone in the dump was gone when the writer began.
constexpr int64_t kMemberGraceMs = 60'000;
constexpr int kClientLogsKept = 20;
// So that a standby is soon left behind.
constexpr char kLogBytesMax[] = "16777216";
constexpr int64_t kCutPatienceMs = 1'500;
constexpr char kLost[] = "a lease that the writer lost by itself";

std::string MakeClusterDir() {
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

// A set of rules that nobody uses and that differs from others in each rule, some 100 KiB.
std::string BulkRules(int version) {
  constexpr int kRules = 500;
  constexpr int kFirstFlow = 5'000;
  std::string text;
  for (int i = 0; i < kRules; ++i) {
    const std::string flow = std::to_string(kFirstFlow + i);
    text += (text.empty() ? "[" : ",") + (R"({"resource":"bulk-)" + flow) +
            R"(","grade":0,"count":)" + std::to_string(1 + version) +
            R"(,"clusterMode":true,"clusterConfig":{"flowId":)" + flow + R"(,"thresholdType":1}})";
  }
  return text + "]";
}

// One that has just begun handles no signals yet.
bool EndsInGoodOrder(testing::ServerProcess* member) {
  const int ended = member->Terminate();
  return ended == 0 || ended == -SIGTERM;
}

class ClusterLoop {
 public:
  ClusterLoop(const CrashLoopOptions& options, const PlantedFault& fault)
      : options_(options),
        fault_(fault),
        prng_(options.seed),
        dir_(MakeClusterDir()),
        checker_(RuleSets::Flows(), kMemberGraceMs),
        rules_(dir_ + "/rules.json"),
        site_(dir_, {.arguments = {"--rules", dir_ + "/rules.json", "--restart-grace-ms",
                                   std::to_string(kMemberGraceMs), "--cluster-log-bytes-max",
                                   kLogBytesMax},
                     .environment = fault.environment,
                     .program = fault.program}),
        crew_(&prng_, /*instances=*/false) {}

  CrashLoopResult Run() {
    if (!site_.can_part()) Say("skipped: all that cuts hosts off (root, ip, nsenter)");
    BeginAtOnce();
    while (writer_ && result_.violations.empty() && result_.cycles < options_.cycles) OneCycle();
    if (!writer_) Violate("no member serves");
    const CheckerCounts& counts = checker_.counts();
    result_.acknowledged = counts.acknowledged;
    result_.unknown = counts.unknown;
    result_.adopted = counts.adopted;
    if (result_.violations.empty()) EndAll();
    if (result_.violations.empty() && !options_.keep_dir) {
      fs::remove_all(dir_);
    } else {
      result_.dir = dir_;
    }
    return result_;
  }

 private:
  void Say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }
  void Violate(const std::string& what) {
    result_.violations.push_back(what + " in cycle " + std::to_string(result_.cycles));
  }
  void Violate(const Violations& wrong) {
    result_.violations.insert(result_.violations.end(), wrong.begin(), wrong.end());
  }
  void SleepUpTo(int64_t ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(prng_.Between(0, ms)));
  }
  std::string LogDir(int cycle) const { return dir_ + "/clients/" + std::to_string(cycle); }
  size_t Lives() const { return site_.TimesLogged(" serves in term"); }
  size_t Copies() const { return site_.TimesLogged(" takes a copy of the ledger from"); }

  // All members on an empty prefix: one begins the cluster, the others are of it.
  void BeginAtOnce() {
    for (size_t i = 0; i < ClusterSite::kMembers; ++i) site_.member(i).StartWithoutWaiting();
    FindWriter();
    if (!writer_) return;
    for (size_t i = 0; i < ClusterSite::kMembers; ++i) {
      if (i == *writer_ || site_.AwaitFollowing(i, *writer_)) continue;
      Violate("member " + std::to_string(i) + " does not follow the first writer");
    }
    const std::vector<std::string> lineages = site_.Lineages();
    const bool same = std::count(lineages.begin(), lineages.end(), lineages.front()) ==
                      ptrdiff_t{ClusterSite::kMembers};
    if (!same || lineages.front() == "none")
      Violate("members that began at once are not of one cluster");
  }

  bool AnyLacksLedger() {
    bool lacks = false;
    for (size_t i = 0; i < ClusterSite::kMembers; ++i) lacks = lacks || site_.LacksLedger(i);
    return lacks;
  }

  void FindWriter() {
    writer_ = site_.AwaitWriter();
    if (!writer_ && AnyLacksLedger()) {
      // Only what is away or dead has it.
      ++result_.tally["times that only a member that was down had the ledger"];
      if (away_) BringBack();
      Repair();
      writer_ = site_.AwaitWriter();
    }
    if (writer_) writer_log_ = site_.log(*writer_).size();
  }

  void OneCycle() {
    ++result_.cycles;
    fs::create_directories(LogDir(result_.cycles));
    fs::remove_all(LogDir(result_.cycles - kClientLogsKept));
    Cycle cycle;
    cycle.started_us = began_us_;
    began_us_ = BoottimeUs();
    rules_.BeginCycle(began_us_);
    const size_t before = *writer_;
    LoadSignals signals;
    std::string end;
    try {
      RpcClient client(site_.AddressOf(before));
      if (!rules_.moving_has_rules()) rules_.Load(&client);
      StartCrew(&signals);
      SleepUpTo(1'000);
      DisturbStandby(&client);
      SleepUpTo(1'000);
      signals.ending = true;
      end = LostByItself(before) ? kLost : EndWriter(before, &signals);
    } catch (const std::runtime_error& error) {
      if (!LostByItself(before)) Violate(error.what());
      end = kLost;
    }
    FindWriter();
    signals.ending = true;
    signals.stop = true;
    crew_.Join();
    for (const std::string& problem : crew_.Problems()) {
      if (end != kLost || !problem.ends_with("connection closed")) Violate(problem);
    }
    if (!writer_) return;
    Judge(&cycle);
    Repair();
    ++result_.moments[end];
    AddToTally(cycle.history, &result_.tally);
    Say("cycle " + std::to_string(result_.cycles) + ": " + end + "; " +
        std::to_string(cycle.history.operations.size()) + " operations, " +
        std::to_string(cycle.ledger.tokens.size()) + " tokens in the ledger");
  }

  void StartCrew(LoadSignals* signals) {
    const std::string dir = LogDir(result_.cycles) + "/";
    crew_.Start(
        site_.AddressOf(*writer_), [dir](const std::string& name) { return dir + name + ".log"; },
        signals);
  }

  // By another election of etcd, or a machine with too much to do.
  bool LostByItself(size_t writer) const {
    const std::string log = site_.log(writer);
    return log.find("may not be the writer any more", writer_log_) != std::string::npos;
  }

  // Returns how. A cycle is one life: a writer that went on is killed.
  std::string EndWriter(size_t writer, LoadSignals* signals) {
    if (ends_.empty()) ends_ = ShuffledEnds(site_, fault_.only_end, &prng_);
    const ClusterEnd end = ends_.back();
    ends_.pop_back();
    if (end == ClusterEnd::kCutFromClients) signals->patience_ms = kCutPatienceMs;
    const size_t lives = Lives();
    began_us_ = BoottimeUs();
    const EndDone done = DoEnd(end, writer, &site_, &prng_);
    if (done.node_down) node_down_ = done.node_down;
    if (!done.wrong.empty()) Violate(done.wrong);
    FindWriter();
    if (writer_ && Lives() == lives) {
      SleepUpTo(1'000);
      site_.member(writer).Kill9();
    }
    return NameOf(end);
  }

  void DisturbStandby(RpcClient* client) {
    if (away_) return BringBack();
    const uint64_t what = prng_.Below(8);
    const auto standby = static_cast<size_t>(prng_.Below(ClusterSite::kMembers));
    if (what > 2 || standby == *writer_) return;
    testing::ServerProcess& member = site_.member(standby);
    if (what == 0 && AnyLacksLedger()) return;  // The other standby.
    if (what == 0) return LeaveBehind(standby, client);
    member.Kill9();
    member.StartWithoutWaiting();
  }

  // Until the log has forgotten what the standby lacks.
  void LeaveBehind(size_t standby, RpcClient* client) {
    testing::ServerProcess& member = site_.member(standby);
    const ClusterSite::Log log = site_.LookAtLog();
    switch (prng_.Below(3)) {
      case 0: member.process().Signal(SIGSTOP); break;
      case 1: member.Kill9(); break;
      default:
        if (!EndsInGoodOrder(&member)) Violate("a standby does not end in good order");
    }
    away_ = standby;
    constexpr int kLoadsMax = 2'000;
    constexpr int kLoadsBetween = 10;
    for (int i = 1; i <= kLoadsMax; ++i) {
      const auto loaded = client->Call("rules_load", {"bulk", BulkRules(++bulk_version_)});
      if (loaded.kind == testing::Reply::Kind::kClosed) return;  // The writer lost its lease.
      if (!loaded.ok()) return Violate("rules_load got " + loaded.ToString());
      if (i % kLoadsBetween == 0 && site_.LookAtLog().first > log.last + 1) {
        ++result_.tally["standbys left behind by the log"];
        left_behind_.emplace_back(standby, site_.member(standby).log().size());
        return;
      }
    }
    Violate("the log does not forget");
  }

  void BringBack() {
    testing::ServerProcess& member = site_.member(*away_);
    if (member.Running()) {
      member.process().Signal(SIGCONT);
    } else {
      member.StartWithoutWaiting();
    }
    away_.reset();
  }

  void Repair() {
    if (node_down_) site_.etcd().Start(*std::exchange(node_down_, std::nullopt));
    for (size_t i = 0; i < ClusterSite::kMembers; ++i) {
      testing::ServerProcess& member = site_.member(i);
      if (member.Running() || i == away_) continue;
      const int ended = member.process().Wait().value_or(0);
      if (ended != 0 && ended != -SIGKILL) {
        Violate("member " + std::to_string(i) + " ended by itself");
      }
      member.StartWithoutWaiting();
    }
  }

  // The next writer has all that counts.
  void Judge(Cycle* cycle) {
    for (const auto& log : fs::directory_iterator(LogDir(result_.cycles))) {
      ReadHistory(log.path().string(), &cycle->history);
    }
    constexpr int kAttempts = 3;
    for (int attempt = 1;; ++attempt) {
      try {
        ReadNext(cycle);
        break;
      } catch (const std::runtime_error& error) {
        // It may lose its lease meanwhile.
        FindWriter();
        if (attempt == kAttempts || !writer_) return Violate(error.what());
      }
    }
    cycle->dead_us = BoottimeUs();
    cycle->levels = rules_.changes();
    Violate(checker_.CheckCycle(*cycle));
    crew_.Adopt(cycle->ledger);
  }

  void ReadNext(Cycle* cycle) {
    const auto source = testing::Source::Live(site_.AddressOf(*writer_));
    // Tokens end between the dump and its sums.
    testing::PollUntil(testing::kPatienceMs, [&] {
      cycle->ledger = ReadLedger(source);
      return AddsUp(cycle->ledger);
    });
    Violate(rules_.CheckAndAdopt(source));
  }

  void EndAll() {
    if (away_) BringBack();
    for (const auto& [member, logged] : left_behind_) {
      const bool copied =
          testing::PollUntil(2 * testing::kPatienceMs, [&, from = logged, at = member] {
            return site_.member(at).log().find(" takes a copy of the ledger from", from) !=
                   std::string::npos;
          });
      if (!copied) Violate("a member that was left behind takes no copy");
    }
    result_.tally["copies of the ledger taken"] = static_cast<int64_t>(Copies());
    for (size_t i = 0; i < ClusterSite::kMembers; ++i) {
      if (!EndsInGoodOrder(&site_.member(i))) Violate("a member does not end in good order");
    }
  }

  CrashLoopOptions options_;
  PlantedFault fault_;
  Prng prng_;
  std::string dir_;
  Checker checker_;
  RuleSets rules_;
  ClusterSite site_;
  Crew crew_;
  std::vector<ClusterEnd> ends_;  // To come.
  std::optional<size_t> writer_;
  size_t writer_log_ = 0;                               // Bytes, when it was found.
  std::optional<size_t> away_;                          // A standby.
  std::vector<std::pair<size_t, size_t>> left_behind_;  // Members, and the size of their logs then.
  int bulk_version_ = 0;
  int64_t began_us_ = BoottimeUs();  // Not later than its time: the grace of a restart counts.
  std::optional<size_t> node_down_;  // Of etcd.
  CrashLoopResult result_;
};

}  // namespace

CrashLoopResult RunClusterLoop(const CrashLoopOptions& options, const PlantedFault& fault) {
  return ClusterLoop(options, fault).Run();
}

}  // namespace nowcalls::crash
