// nowcalls-demo: kill -9 of a server with tokens out, or of a cluster's writer, told so that an
// operator can follow it.
//
// It shows what it checks and checks what it shows; its exit code is 0 only if every check held.
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/exit_codes.h"
#include "crash/checker.h"
#include "crash/demo_stage.h"
#include "crash/ledger_view.h"
#include "crash/load_client.h"
#include "support/admin.h"
#include "support/temp_dir.h"
#include "test_paths.h"

namespace nowcalls::crash {
namespace {

namespace fs = std::filesystem;
using testing::Json;
using testing::RpcClient;
using testing::Source;

constexpr int kClientsPerNamespace = 3;
constexpr int kResourceColumns = 36;
constexpr int64_t kRestartGraceMs = 10'000;  // The server's default.

void Say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

std::string Padded(const std::string& text, int width) {
  const std::string space(
      static_cast<size_t>(std::max(0, std::abs(width) - static_cast<int>(text.size()))), ' ');
  return width < 0 ? text + space : space + text;
}

// What the clients' logs say of one flow at the moment of the kill.
struct FlowStory {
  std::string resource;
  std::string name_space;
  int64_t acknowledged = 0;  // nowCalls after every answered operation.
  int64_t granted_unanswered = 0;
  int64_t released_unanswered = 0;
  int64_t ledger = 0;
  int64_t restarted = 0;
};

class Demo {
 public:
  explicit Demo(bool cluster) {
    if (cluster) {
      stage_ = std::make_unique<ClusterStage>();
    } else {
      stage_ = std::make_unique<SingleStage>(dir_.path());
    }
  }
  ~Demo() { JoinClients(); }
  Demo(const Demo&) = delete;
  Demo& operator=(const Demo&) = delete;

  bool Run() {
    Start();
    Load();
    Kill();
    if (!ok_) return false;
    ReadLeft();
    Recover();
    ShowTable();
    ReleaseFromBefore();
    Finish();
    return ok_;
  }

 private:
  void JoinClients() {
    signals_.stop = true;
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

  void Check(bool held, const std::string& what) {
    Say(std::string("  ") + (held ? "ok    " : "WRONG ") + what);
    ok_ = ok_ && held;
  }

  void Start() {
    const fs::path rules = NOWCALLS_SOURCE_DIR "/data/rules";
    std::vector<std::string> arguments;
    for (const auto& file : fs::directory_iterator(rules)) {
      if (file.path().extension() != ".json") continue;
      namespaces_.insert(file.path().stem().string());
      arguments.emplace_back("--rules");
      arguments.push_back(file.path().stem().string() + "=" + file.path().string());
    }
    Say("1. " + stage_->Begin(arguments) + ", rules from data/rules.");
    for (const auto& row : testing::AdminRows(Source::Live(stage_->address()), {"rules", "list"})) {
      // An acquire here names no value of a parameter, and expects a level.
      if (!row.contains("count") || row.contains("paramIdx")) continue;
      const Json& cluster = row.at("clusterConfig");
      const auto flow_id = cluster.at("flowId").get<int64_t>();
      flows_[flow_id].resource = row.at("resource").get<std::string>();
      flows_[flow_id].name_space = row.at("namespace").get<std::string>();
      const bool is_global = cluster.at("thresholdType") == 1;
      facts_.push_back({flow_id, is_global ? row.at("count").get<int64_t>() : 0,
                        cluster.at("resourceTimeout").get<int64_t>(),
                        cluster.at("clientOfflineTime").get<int64_t>()});
    }
  }

  void Load() {
    cycle_.started_us = BoottimeUs();
    for (const auto& name_space : namespaces_) {
      std::vector<int64_t> flow_ids;
      for (const auto& [flow_id, flow] : flows_) {
        if (flow.name_space == name_space) flow_ids.push_back(flow_id);
      }
      if (flow_ids.empty()) continue;
      for (int i = 1; i <= kClientsPerNamespace; ++i) {
        LoadOptions options;
        options.client_id = name_space + "-" + std::to_string(i);
        options.name_space = name_space;
        options.flow_ids = flow_ids;
        options.request_ids = false;
        options.short_holds = false;
        options.reconnects_per_10k = 0;
        clients_.push_back(std::make_unique<LoadClient>(std::move(options), RandomBits128()[0]));
      }
    }
    Say("2. " + std::to_string(clients_.size()) +
        " clients acquire, keep and release, many requests in flight each.");
    for (const auto& client : clients_) {
      const std::string log = dir_.Sub(client->client_id() + ".log");
      logs_.push_back(log);
      threads_.emplace_back(
          [this, &client, log] { client->Run(stage_->address(), log, &signals_); });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1'200));
  }

  void Kill() {
    const bool was_running = stage_->Runs();
    signals_.ending = true;
    stage_->Kill();
    cycle_.dead_us = BoottimeUs();
    JoinClients();
    Say("3. kill -9 in mid-load.");
    Check(was_running, "the server was alive until then");
    for (const auto& log : logs_) ReadHistory(log, &cycle_.history);
    std::map<Outcome, int> outcomes;
    for (const auto& operation : cycle_.history.operations) ++outcomes[operation.outcome];
    Say("  The clients' logs: " + std::to_string(outcomes[Outcome::kGranted]) + " granted, " +
        std::to_string(outcomes[Outcome::kRefused]) + " refused at the level, " +
        std::to_string(outcomes[Outcome::kReleased]) + " released, " +
        std::to_string(outcomes[Outcome::kKept]) + " kept; " +
        std::to_string(outcomes[Outcome::kUnknown]) + " requests got no answer.");
    Check(outcomes[Outcome::kGranted] > 0 && outcomes[Outcome::kUnknown] > 0,
          "there was load, and the kill came in the middle of it");
  }

  void ReadLeft() {
    const Source source = stage_->Left();
    cycle_.ledger = ReadLedger(source);
    Say("4. nowcalls-admin dump " + source.flag + " " + source.value + " finds " +
        std::to_string(cycle_.ledger.tokens.size()) + " tokens. The oldest:");
    const auto oldest = testing::RunAdmin(source, {"tokens", "--limit", "3", "--format", "table"});
    Say(oldest.out.substr(0, oldest.out.find_last_not_of('\n') + 1));
    if (source.flag == "--data-dir") Verify(source);
    const Violations violations = Checker(facts_, kRestartGraceMs).CheckCycle(cycle_);
    for (const auto& violation : violations) Say("  " + violation);
    Check(violations.empty(),
          "every acknowledged operation is in it, and nothing that nobody asked for");
    Reconcile();
  }

  void Verify(const Source& source) {
    Check(testing::RunAdmin(source, {"verify"}).exit_code == 0, "nowcalls-admin verify exits 0");
  }

  // Sums up, flow by flow, what was acknowledged and what became of the unanswered requests.
  void Reconcile() {
    std::map<uint64_t, const Operation*> held;
    std::set<uint64_t> unanswered_releases;
    for (const auto& operation : cycle_.history.operations) {
      if (operation.outcome == Outcome::kGranted) held[operation.token_id] = &operation;
    }
    for (const auto& operation : cycle_.history.operations) {
      if (operation.outcome == Outcome::kReleased || operation.outcome == Outcome::kGone) {
        held.erase(operation.token_id);
      } else if (operation.action == Action::kRelease) {
        unanswered_releases.insert(operation.token_id);
      }
    }
    for (const auto& [id, granted] : held) flows_[granted->flow_id].acknowledged += granted->count;
    for (const auto& token : cycle_.ledger.tokens) {
      FlowStory& flow = flows_[token.flow_id];
      flow.ledger += token.count;
      if (held.erase(token.token_id) == 0) flow.granted_unanswered += token.count;
    }
    bool explained = true;
    for (const auto& [id, granted] : held) {
      flows_[granted->flow_id].released_unanswered += granted->count;
      explained = explained && unanswered_releases.contains(id);
    }
    Check(explained, "tokens that are not in it had a release on the way");
  }

  void Recover() {
    Say("5. " + stage_->Recover());
    std::multiset<uint64_t> before;
    std::multiset<uint64_t> after;
    for (const auto& token : cycle_.ledger.tokens) before.insert(token.token_id);
    const LedgerView live = ReadLedger(Source::Live(stage_->address()));
    for (const auto& token : live.tokens) after.insert(token.token_id);
    for (const auto& [flow_id, now_calls] : live.now_calls) flows_[flow_id].restarted = now_calls;
    Check(before == after, "it has the same " + std::to_string(after.size()) + " tokens");
  }

  void ShowTable() {
    Say("6. nowCalls of each flow. What was acknowledged, plus acquires and minus releases that");
    Say("   took effect though the kill came before their answer, is what the ledger holds.");
    Say("   " + Padded("FLOW", 6) + "  " + Padded("RESOURCE", -kResourceColumns) +
        Padded("ACKNOWLEDGED", 13) + Padded("+GRANTED", 10) + Padded("-RELEASED", 11) +
        Padded("LEDGER", 8) + Padded("RESTARTED", 11));
    bool reconciled = true;
    bool equal = true;
    for (const auto& [flow_id, flow] : flows_) {
      Say("   " + Padded(std::to_string(flow_id), 6) + "  " +
          Padded(flow.resource, -kResourceColumns) + Padded(std::to_string(flow.acknowledged), 13) +
          Padded(std::to_string(flow.granted_unanswered), 10) +
          Padded(std::to_string(flow.released_unanswered), 11) +
          Padded(std::to_string(flow.ledger), 8) + Padded(std::to_string(flow.restarted), 11));
      reconciled =
          reconciled &&
          flow.acknowledged + flow.granted_unanswered - flow.released_unanswered == flow.ledger;
      equal = equal && flow.ledger == flow.restarted;
    }
    Check(reconciled, "acknowledged + granted - released = ledger, for each flow");
    Check(equal, "ledger = restarted, for each flow");
  }

  void ReleaseFromBefore() {
    if (cycle_.ledger.tokens.empty()) return Check(false, "there is a token to release");
    const DumpedToken& token = cycle_.ledger.tokens.front();
    const std::string& name_space = flows_[token.flow_id].name_space;
    RpcClient client(stage_->address());
    const auto hello = client.Call("hello", {1, name_space, token.client_id});
    const std::string resumed = hello.ok() ? hello.result.at(3).dump() : hello.ToString();
    Say("7. Client " + token.client_id + " reconnects and finds its " + resumed +
        " tokens; it releases token " + std::to_string(token.token_id) + " from before the kill.");
    const auto release = Json::array({token.token_id});
    const auto first = client.Call("release", release);
    Check(first.ok() && first.result.at(0) == 6, "the release is answered RELEASE_OK");
    const auto second = client.Call("release", release);
    Check(second.ok() && second.result.at(0) == 7, "once more: ALREADY_RELEASE");
    const auto now = ReportedNowCalls(&client, {token.flow_id})[token.flow_id];
    Check(now == flows_[token.flow_id].restarted - token.count,
          "nowCalls of flow " + std::to_string(token.flow_id) + " went from " +
              std::to_string(flows_[token.flow_id].restarted) + " to " + std::to_string(now));
  }

  void Finish() {
    Say("8. SIGTERM.");
    Check(stage_->End(), "each server exits 0");
    for (const std::string& dir : stage_->data_dirs()) Verify(Source::Offline(dir));
  }

  testing::TempDir dir_;
  std::unique_ptr<DemoStage> stage_;
  std::set<std::string> namespaces_;
  std::map<int64_t, FlowStory> flows_;
  std::vector<FlowFacts> facts_;
  std::vector<std::unique_ptr<LoadClient>> clients_;
  std::vector<std::string> logs_;
  LoadSignals signals_;
  std::vector<std::thread> threads_;
  Cycle cycle_;
  bool ok_ = true;
};

}  // namespace
}  // namespace nowcalls::crash

int main(int argc, char** argv) {
  const std::string_view word = argc == 2 ? argv[1] : "";
  if (argc > 1 && word != "--cluster") {
    const bool help = word == "--help";
    if (!help) std::fprintf(stderr, "nowcalls-demo: '%s' is no argument of the demo\n", argv[1]);
    std::fprintf(help ? stdout : stderr,
                 "usage: nowcalls-demo [--cluster]\n"
                 "Kills a server with kill -9 under load, and shows that the counts before and "
                 "after are the same.\nWith --cluster it kills the writer of three servers on "
                 "three etcds, and another goes on.\nExit codes: 0 every check held; 1 one did "
                 "not; 64 wrong usage.\n");
    return help ? nowcalls::kExitOk : nowcalls::kExitUsage;
  }
  bool ok = false;
  try {
    ok = nowcalls::crash::Demo(word == "--cluster").Run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nowcalls-demo: %s\n", error.what());
  }
  std::printf("%s\n", ok ? "The demo holds: no token was lost, none came back, none was invented."
                         : "THE DEMO FAILED: see WRONG above.");
  return ok ? nowcalls::kExitOk : nowcalls::kExitFailure;
}
