// Server: drives the engine with libuv, sockets and two worker threads; a third while there is a
// backup to be made.
//
// Thread: loop (the one that calls Start and Run). The engine's calls happen in callbacks of the
// loop. What can be read is, at the latest, when the loop has looked at all sockets (Receive); Pump
// runs once a loop turn, just before the loop sleeps, and does what a turn ends with: input left
// over, deadlines, the next scan, the next commit, replies that may leave, arming the timer. So
// every callback only has to tell the engine what happened.
//
// Happy path: Start, Run until a signal, drain: answer what was read, commit, close the
// connections, close the store, close every handle; Run returns. If a look at a rule file is still
// under way then, the process ends with exit code 0 instead.
// Failure modes: a failed commit, sync or scan ends the process with exit code 74 at once, and so
// does a drain that takes longer than kDrainMsMax (loop_limits.h). A second signal ends it at once
// with exit code 1; that loses nothing acknowledged, as kill -9 does not.
#ifndef NOWCALLS_SERVER_SERVER_H_
#define NOWCALLS_SERVER_SERVER_H_

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/socket_turn.h"
#include "engine/engine.h"
#include "nowcalls/status.h"
#include "server/backup_thread.h"
#include "server/catch_up.h"
#include "server/commit_thread.h"
#include "server/commit_watch.h"
#include "server/config.h"
#include "server/connection.h"
#include "server/file_rule_source.h"
#include "server/listener.h"
#include "server/log_limiter.h"
#include "server/loop_limits.h"
#include "server/loop_rule_sink.h"
#include "server/recovery.h"
#include "server/rule_files.h"
#include "server/scan_thread.h"
#include "store/store.h"

namespace nowcalls::server {

class Server final : public engine::Driver, public Connection::Owner {
 public:
  // A connection that is being closed has this long to read its last replies when the server ends,
  // and in any case to close its end when it has read them.
  static constexpr int64_t kCloseMsMax = 2'000;

  // `ledger` and `store` outlive the server. `make_backup` runs on the backup thread, and
  // `close_store` on the commit thread at the end.
  Server(const ServerConfig& config, RecoveredLedger* ledger, store::Store* store,
         BackupThread::Make make_backup, std::function<Status()> close_store);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Makes the files' rules those of their namespaces, together if possible; durable when it
  // returns. A file that cannot be put in force leaves its namespace the rules that the ledger has
  // from that very file, and is tried again while the server runs. Where there are none the start
  // fails, and nothing is changed: kInvalidArgument names file, namespace and rule, or who owns the
  // namespace. Other codes are the store's. REQUIRES: before Start.
  Status LoadRules(std::vector<LoadedRuleFile> files);

  // Serves from now on: signals are handled and connections accepted, once Run runs.
  void Start(std::unique_ptr<Listener> listener);

  // Returns when a signal asked for the end and all is closed. REQUIRES: Start was called.
  void Run();

  // engine::Driver.
  void Write(std::span<engine::Output> outputs) override;
  void Close(engine::ConnectionId id, bool flush) override;
  void SetReading(engine::ConnectionId id, bool on) override;
  void Log(engine::LogLevel level, std::string_view message) override;
  Status BeginBackup(const engine::BackupJob& job) override;

  // Connection::Owner.
  void OnReadable(Connection* connection) override;
  void OnBytes(engine::ConnectionId id, std::string_view bytes) override;
  void OnEndOfInput(engine::ConnectionId id) override;
  void OnSent(engine::ConnectionId id, size_t kept) override;
  void OnFlushing(engine::ConnectionId id) override;
  void OnLingering(engine::ConnectionId id) override;
  void OnClosed(engine::ConnectionId id) override;

 private:
  enum class Phase { kServing, kAnswering, kDisconnecting, kClosingStore, kClosed };

  struct Peer {
    std::unique_ptr<Connection> connection;  // nullptr: this id is free.
    Instant close_by = kNever;               // While it is being closed.
  };

  void OnAccept(int fd, const std::string& peer);
  void OnCommitDone();
  void OnDiskSpace(std::optional<uint64_t> free_bytes);
  void OnScanDone(const ledger::ScanResult& result);
  void OnBackupDone(const engine::BackupJob& job, bool begun, const Result<backup::Manifest>& made);
  void OnSignal(int signal);
  void OnHangup();
  void LogAboutPeer(engine::LogLevel level, std::string_view message);

  Status PutInForce(std::vector<core::RuleSet> sets);
  Status KeepRules(const std::string& name_space, const Status& why);
  void WatchRules();

  void Pump();
  void BeginScan(Instant now);
  bool BeginCommit(bool may_be_inline);
  void LogCommit(const std::optional<std::string>& what) const;
  void LogInlineCommit(const std::string& what) const;
  void CloseOverdue(Instant now);
  void ReportSuppressed(Instant now);
  void ReportNoRing();
  void ArmTimer(Instant began, Instant now, bool hold);
  void SetCloseBy(engine::ConnectionId id, Instant when);
  // How long a peer may take none of what is sent to it before it is closed.
  int64_t FlushMsMax() const {
    return draining() ? kCloseMsMax : config_.core.limits.output_stalled_ms;
  }

  void BeginDrain();
  void ContinueDrain(Instant now);
  void LeaveWorkUndone();
  [[noreturn]] static void LeaveLookBehind();
  void CloseHandles();
  bool draining() const { return phase_ != Phase::kServing; }
  // The engine is finished before its store is.
  bool engine_runs() const { return phase_ < Phase::kClosingStore; }

  Instant Now() const { return ledger_->Now(); }
  ClockSample Clocks() const;

  const ServerConfig config_;
  RecoveredLedger* const ledger_;
  store::Store* const store_;
  const std::function<Status()> close_store_;
  engine::Engine engine_;
  LogLimiter peer_lines_;
  LogLimiter act_lines_;

  uv_loop_t loop_{};
  uv_check_t check_{};
  uv_prepare_t prepare_{};
  uv_timer_t timer_{};
  uv_signal_t sigterm_{};
  uv_signal_t sigint_{};
  uv_signal_t sighup_{};
  std::unique_ptr<Listener> listener_;
  std::optional<CommitThread> commit_;
  std::optional<ScanThread> scan_;
  BackupThread backup_;

  LoopRuleSink rule_sink_;
  std::vector<FileAtStart> rules_at_start_;      // Of config_.rules.
  std::unique_ptr<FileRuleSource> rule_source_;  // None before Start.

  SocketTurn sockets_;
  bool no_ring_reported_ = false;
  std::vector<Peer> peers_;  // By connection id: the engine numbers them densely.
  size_t connections_ = 0;
  std::set<std::pair<int64_t, engine::ConnectionId>> closing_;  // By close_by.

  CommitWatch commit_watch_;
  CatchUp catch_up_;
  bool to_read_ = false;  // Since the last turn a socket has joined those that a poll reads.
  Phase phase_ = Phase::kServing;
  Instant drain_by_ = kNever;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SERVER_H_
