#include "server/server.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "access/gate.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/counted.h"
#include "base/exit_codes.h"
#include "node/limits.h"
#include "nowcalls_version.h"
#include "server/config/config_changes.h"
#include "server/log/logging.h"

namespace nowcalls::server {
namespace {

// A signal that repeats so soon is one signal: timeout(1), for one, sends it to a process, then to
// its group.
constexpr int64_t kSameSignalMs = 500;

engine::EngineOptions MakeEngineOptions(const ServerConfig& config,
                                        const engine::TlsCounters* tls) {
  return {.limits = config.core.limits,
          .version = NOWCALLS_VERSION,
          .durability = config.cluster.on() ? "cluster" : config.durability.ToString(),
          .data_dir = config.data_dir,
          .expire_strategy = config.expire_strategy_name,
          .tls = tls};
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

net::SocketBatch::Means MeansOf(const ServerConfig& config) {
  return config.no_io_uring ? net::SocketBatch::Means::kSystemCalls
                            : net::SocketBatch::Means::kBest;
}

constexpr int64_t kPauseMs = 10;
// For looks at files and requests for rules that are under way at the end.
constexpr int64_t kLooksMsMax = 300;

// A commit to etcd takes some 4 ms, so a batch that has all clients in it saves half of their wait.
constexpr int64_t kGatherMs = 1;

// A look at a rule file, the access file or the configuration may take long: a huge file, a file
// server that is gone. Nothing depends on it any more. But its thread uses memory that would be
// destroyed now, and libuv would wait for it.
[[noreturn]] void LeaveLookBehind() {
  LogAt(Severity::kInfo, "closed in good order; a look at a file or URL is left unfinished");
  ExitNow(kExitOk);
}

}  // namespace

Server::Server(const ServerConfig& config, const recovery::RecoveredLedger* ledger,
               const ledger::Clock* clock, store::Store* store, BackupThread::Make make_backup,
               std::function<Status()> close_store, web::Board* board, ConfigAgain again,
               Additions* additions, TlsContext tls, ClaimWatch claim)
    : config_(config),
      again_(std::move(again)),
      clock_(clock),
      store_(store),
      close_store_(std::move(close_store)),
      board_(board),
      additions_(additions),
      claim_(std::move(claim)),
      log_(config.core.limits),
      engine_(MakeEngineOptions(config, &tls_counters_), ledger->core.get(), this, clock->Now()),
      turn_(&engine_, clock, this, claim_.on() ? kGatherMs : 0),
      hooks_({.polled = [this] { BeginTurn(); },
              .before_poll = [this] { DoTurn(); },
              .on_signal = [this](int signal) { OnSignal(signal); }}),
      tls_(&config_, std::move(tls), &tls_counters_),
      peers_(config.core.limits, MeansOf(config), &engine_, clock, &log_, &tls_),
      commits_(&config_, clock, store, board,
               {.durable = [this] { turn_.OnDurable(); },
                .closed = [this] { turn_.OnClosed(); },
                .deposed = claim_.on() ? [this] { turn_.OnDeposed(); } : std::function<void()>(),
                .disk_space =
                    [this](std::optional<uint64_t> bytes, std::optional<uint64_t> files) {
                      engine_.OnDiskSpace(bytes, files);
                    }}),
      backups_(std::move(make_backup), &engine_, clock, &log_),
      copies_(config.data_dir),
      rules_(&config_, &engine_, clock, &ledger->rule_sources),
      access_(
          config.access_file,
          [this](const AccessListPtr& list) {
            engine_.SetAccess(claim_.on() ? access::Gate(list, access::DigestOf(claim_.secret))
                                          : access::Gate(list));
            if (access_replaced_) access_replaced_(list);
          },
          [this](Severity level, LogTopic topic, const std::string& text, const LogFields& fields) {
            log_.Write(level, topic, text, fields, Now());
          }),
      config_watch_(
          again_.read ? config.config_file : std::string(), again_.read,
          [this](const Result<Invocation>& read, bool asked) { OnConfigRead(read, asked); }) {}

Server::~Server() = default;

Status Server::PutRulesInForce(std::vector<LoadedRuleFile> files) {
  NOWCALLS_RETURN_IF_ERROR(rules_.PutInForce(std::move(files)));
  NOWCALLS_RETURN_IF_ERROR(rules_.StartSources(additions_->rule_sources()));
  turn_.CommitAll();
  return commits_.SyncNow();
}

void Server::Start(std::vector<std::unique_ptr<Listener>> listeners) {
  NOWCALLS_CHECK(uv_loop_init(&loop_) == 0);
  // Threads first, listeners last: what a peer may ask for must be there.
  commits_.Start(&loop_);
  scans_.emplace(&loop_, store_, [this](const ledger::ScanResult& result) { OnScanDone(result); });
  hooks_.Start(&loop_);
  rules_.Watch(&loop_);
  access_.Start(&loop_);
  config_watch_.Start(&loop_);
  tls_.Watch(&loop_);
  std::vector<std::string> addresses;
  addresses.reserve(listeners.size());
  for (const auto& listener : listeners) addresses.push_back(listener->address().ToString());
  peers_.Start(&loop_, std::move(listeners));
  additions_->Serve(&loop_, std::move(addresses), [this] {
    if (ended_.end_asked) return;
    LogAt(Severity::kInfo, "the program asks for the end: finishing what is in flight");
    AskForEnd("the program asked for the end");
  });
  board_->phase.store(web::Board::Phase::kServing, std::memory_order_release);
  service_.Ready();
}

void Server::Run() {
  uv_run(&loop_, UV_RUN_DEFAULT);
  NOWCALLS_CHECK(ended_.deposed || turn_.phase() == node::Phase::kClosed);
  NOWCALLS_CHECK(uv_loop_close(&loop_) == 0);
}

Status Server::BeginBackup(const engine::BackupJob& job) {
  if (!job.to.empty()) return backups_.Begin(&loop_, job);
  if (!claim_.on()) return Status::FailedPrecondition("this server is no member of a cluster");
  if (copies_.busy(BoottimeMs())) {
    return Status::ResourceExhausted("another member takes the last copy");
  }
  copies_.Keep(BoottimeMs());
  engine::BackupJob copy = job;
  copy.to = copies_.dir();
  return backups_.Begin(&loop_, copy);
}

void Server::LookAtCopies() {
  const int64_t now_ms = BoottimeMs();
  if (backups_.busy()) {
    copies_.Keep(now_ms);
  } else if (!turn_.ending()) {
    copies_.DropUnused(&loop_, now_ms);
  }
}

Result<std::string_view> Server::ReadCopy(std::string_view file, uint64_t offset) {
  if (!claim_.on()) return Driver::ReadCopy(file, offset);
  return copies_.Read(file, offset, BoottimeMs());
}

Result<wire::ClusterReply> Server::DescribeCluster() {
  return claim_.on() ? claim_.describe() : Driver::DescribeCluster();
}

// The turn that answers the asker comes first.
Result<uint64_t> Server::HandOver(std::string_view by) {
  if (!claim_.on()) return Driver::HandOver(by);
  if (turn_.ending() || !handover_by_.empty()) {
    return Status::ResourceExhausted("this server ends, or hands over already");
  }
  NOWCALLS_RETURN_IF_ERROR(claim_.may_hand_over());
  handover_by_ = by;
  return board_->cluster_term.load(std::memory_order_relaxed);
}

void Server::BeginTurn() {
  turn_began_ns_ = MonotonicNs();
  // At the latest now: the loop has looked at all sockets. Full lists were received before.
  peers_.Receive();
}

void Server::DoTurn() {
  // 1. A batch that became durable while the loop was reading: its replies leave in this turn.
  commits_.Collect();
  // Also a loop that stood still looks before anything leaves.
  if (claim_.on() && turn_.engine_runs() && (left_out_ || claim_.over())) turn_.OnDeposed();
  if (!handover_by_.empty() && !turn_.ending() && turn_.engine_runs()) {
    LogAt(Severity::kInfo, "handing over: finishing what is in flight");
    Leave("administrator " + handover_by_ + " asked for a handover");
  }
  // 2. Lines that are due.
  const Instant now = Now();
  log_.ReportSuppressed(now);
  ReportNoRing();
  service_.Alive(now);
  commits_.ReportHanging(now);
  if (claim_.on()) LookAtCopies();

  // 3. Decide, commit, reply.
  int64_t sleep_ms = turn_.Run();
  if (turn_.phase() >= node::Phase::kClosed) return CloseHandles();
  if (!handover_by_.empty() && !turn_.ending()) sleep_ms = 0;
  // 4. Sleep; the timer counts from the loop's time.
  uv_update_time(&loop_);  // A commit within the turn may have taken long.
  hooks_.WakeIn(sleep_ms);
  PublishTurn(sleep_ms);
}

Instant Server::NextWork() const {
  return std::min(
      {log_.NextReport(), commits_.NextReport(), peers_.NextWork(), service_.NextAlive()});
}

void Server::OnScanDone(const ledger::ScanResult& result) {
  peers_.Receive();  // Bytes that the loop has found already come first.
  const Status status = turn_.OnScanned(result);
  if (!status.ok()) DieOfIoError("scan", status);
}

void Server::PublishTurn(int64_t sleeps_ms) {
  // The first turn begins before any poll, so its length is unknown.
  if (turn_began_ns_ != 0) {
    board_->turns.Add(static_cast<uint64_t>(MonotonicNs() - turn_began_ns_) / 1000);
  }
  board_->turns_by_ms.store(BoottimeMs() + sleeps_ms, std::memory_order_relaxed);
}

void Server::ReportNoRing() {
  if (peers_.why_alone().empty() || std::exchange(no_ring_reported_, true)) return;
  LogAt(Severity::kInfo, "io_uring is not to be had (" + peers_.why_alone() +
                             "), so each socket takes system calls of its own");
}

void Server::OnSignal(int signal) {
  if (signal == SIGHUP) {
    if (turn_.ending()) return;
    // All, though all are watched: an operator who asks gets an answer in the log.
    rules_.ReloadAll();
    access_.ReadNow();
    tls_.ReadNow();
    if (again_.read) config_watch_.ReadNow();
    return;
  }
  const std::string name = signal == SIGINT ? "SIGINT" : "SIGTERM";
  if (!ended_.end_asked) {
    LogAt(Severity::kInfo, name + ": finishing what is in flight");
    return AskForEnd(name);
  }
  if (Now() - end_asked_ < kSameSignalMs) return;
  // Like kill -9: nothing acknowledged is lost.
  LogAt(Severity::kWarn, "second signal (" + name + "): exiting at once");
  ExitNow(kExitFailure);
}

void Server::OnConfigRead(const Result<Invocation>& read, bool asked) {
  if (!read.ok()) {
    return LogAt(Severity::kWarn,
                 "the configuration cannot be read again: " + read.status().message() +
                     "; no setting changes until that is put right");
  }
  const Severity level_before = config_.log_level;
  // 1. Copy live settings, one by one, on the loop.
  const ConfigChanges changes = ApplyLiveSettings(again_.at_start, read->config, &config_);
  if (!changes.applied.empty()) {
    // 2. Parts that keep copies. Threads beside the loop get atomics.
    engine_.SetOptions(config_.core);
    peers_.SetLimits(config_.core.limits);
    commits_.SetLimits(config_.core.limits);
    again_.set_nearly_full(config_.core.limits.disk_free_high());
    // Lines about the change are shown if the old or the new level shows them.
    SetLogLevel(std::min(level_before, config_.log_level));
  }
  // 3. Tell the operator, also of settings that need a restart.
  for (const std::string& change : changes.applied) {
    LogAt(Severity::kInfo, "configuration: " + change);
  }
  if (!changes.need_restart.empty()) {
    LogAt(Severity::kWarn, "configuration: these settings have changed, and need a restart: " +
                               Joined(changes.need_restart));
  }
  if (asked && changes.applied.empty() && changes.need_restart.empty()) {
    LogAt(Severity::kInfo, "configuration: no setting has changed");
  }
  SetLogLevel(config_.log_level);
}

// Also of a server that hands over: then it does not go on as a standby.
void Server::AskForEnd(const std::string& why) {
  ended_.end_asked = true;
  end_asked_ = Now();
  service_.Stopping();
  if (!turn_.ending()) Leave(why);
}

void Server::Leave(const std::string& why) {
  ended_.why = why;
  board_->phase.store(web::Board::Phase::kEnding, std::memory_order_release);
  // In this order: receive what came before the signal, begin the end, stop reading.
  peers_.Receive();
  turn_.End();
  peers_.StopReading();
  StopWatching();
}

void Server::StopWatching() {
  if (std::exchange(stopped_watching_, true)) return;
  config_watch_.Stop();
  rules_.StopWatching();
  access_.Stop();
  tls_.StopWatching();
  backups_.End();
}

// To a connection that ends the engine writes while input is received, so before the turn looks at
// the claim. A claim that is renewed late does not bring back what was left out.
void Server::Write(std::span<engine::Output> outputs) {
  left_out_ = left_out_ || (claim_.on() && claim_.over());
  if (!left_out_) peers_.Write(outputs);
}

void Server::Abandon() {
  ended_.deposed = true;
  board_->phase.store(web::Board::Phase::kStandby, std::memory_order_release);
  board_->commit_since_ms.store(0, std::memory_order_relaxed);  // Nobody waits for it any more.
  claim_.give_up();
  peers_.Abandon();
  StopWatching();
}

void Server::LeftUnanswered(size_t connections) {
  LogAt(Severity::kWarn,
        "what " + Counted(connections, "connection") + " had asked for is not all done after " +
            std::to_string(node::kEndWorkMsMax) + " ms, and the rest is left unanswered");
}

void Server::EndIsLate() {
  // Nothing acknowledged is lost: what hangs was not answered.
  DieOfIoError("shutdown", Status::Unavailable("not done after " + std::to_string(node::kEndMsMax) +
                                               " ms; the disk may hang"));
}

void Server::CloseHandles() {
  if (looks_until_ms_ == 0) looks_until_ms_ = BoottimeMs() + kLooksMsMax;
  const bool looks = !rules_.idle() || !access_.idle() || !config_watch_.idle() || !tls_.idle();
  // A process that goes on as a standby waits for what still uses its members.
  const bool goes_on = ended_.deposed || !ended_.end_asked;
  if (goes_on && (looks || commits_.busy() || backups_.busy())) return hooks_.WakeIn(kPauseMs);
  if (looks && BoottimeMs() < looks_until_ms_) return hooks_.WakeIn(kPauseMs);
  if (looks) LeaveLookBehind();
  // Threads are joined, and handles closed; uv_run returns when the last one is.
  commits_.Stop();
  scans_->Stop();
  backups_.Stop();
  additions_->Close();
  hooks_.Close();
}

}  // namespace nowcalls::server
