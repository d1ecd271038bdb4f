// Server: drives the engine with libuv, sockets and worker threads.
//
// Thread: loop (the thread that calls Start and Run). The commit thread and the scan thread run
// beside it, and the backup thread while there is a backup to be made. A callback of the loop only
// tells the engine, or node::Turn, what happened. The turn runs once a turn of the loop, just
// before the loop sleeps, and does the rest. Bytes are received at the latest when the loop has
// looked at all sockets.
//
// Happy path: Start; Run until a signal; the turn ends the node; every handle closes; Run returns.
// If a look at a rule file is still under way then, the process ends with exit code 0 instead.
// Failure modes: a failed commit, sync or scan ends the process with exit code 74 at once. A second
// signal ends it at once with exit code 1; that loses nothing acknowledged, as kill -9 does not.
#ifndef NOWCALLS_SERVER_SERVER_H_
#define NOWCALLS_SERVER_SERVER_H_

#include <uv.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "ledger/clock.h"
#include "node/turn.h"
#include "nowcalls/status.h"
#include "recovery/recovery.h"
#include "server/backups.h"
#include "server/commit_pump.h"
#include "server/config.h"
#include "server/config_watch.h"
#include "server/configured_rules.h"
#include "server/listener.h"
#include "server/loop_hooks.h"
#include "server/peers.h"
#include "server/rule_files.h"
#include "server/scan_thread.h"
#include "server/server_log.h"
#include "server/service_manager.h"
#include "store/store.h"
#include "web/board.h"

namespace nowcalls::server {

// How the configuration is read again while the server runs.
struct ConfigAgain {
  ServerConfig at_start;     // As it was read, before the start adapted it to the machine.
  ConfigWatch::Read read{};  // On a worker thread; empty: it is not.
  // What of the disk counts as nearly full is something else from now on.
  std::function<void(uint64_t bytes)> set_nearly_full = [](uint64_t) {};
};

class Server final : public engine::Driver, private node::Io {
 public:
  // `ledger`, `clock`, `store` and `board` outlive the server. `make_backup` runs on the backup
  // thread, and `close_store` on the commit thread at the end.
  Server(const ServerConfig& config, const recovery::RecoveredLedger* ledger,
         const ledger::Clock* clock, store::Store* store, BackupThread::Make make_backup,
         std::function<Status()> close_store, web::Board* board, ConfigAgain again);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // ConfiguredRules::PutInForce, durable when it returns. Other codes are the store's. REQUIRES:
  // before Start.
  Status PutRulesInForce(std::vector<LoadedRuleFile> files);

  // Serves from now on: signals are handled and connections accepted, once Run runs.
  void Start(std::unique_ptr<Listener> listener);

  // Returns when a signal asked for the end and all is closed. REQUIRES: Start was called.
  void Run();

  // engine::Driver.
  void Write(std::span<engine::Output> outputs) override { peers_.Write(outputs); }
  void Close(engine::ConnectionId id, bool flush) override { peers_.Close(id, flush); }
  void SetReading(engine::ConnectionId id, bool on) override { peers_.SetReading(id, on); }
  void Log(engine::LogLevel level, LogTopic topic, std::string_view message,
           const LogFields& fields) override {
    log_.Write(level, topic, message, fields, Now());
  }
  Status BeginBackup(const engine::BackupJob& job) override { return backups_.Begin(&loop_, job); }

 private:
  // node::Io.
  bool Commit(const ledger::CommitBatch& batch, bool at_once) override {
    return commits_.Commit(batch, at_once);
  }
  void Scan(const ledger::ScanRequest& request) override { scans_->Scan(request); }
  void Polled(Instant now) override { peers_.CloseOverdue(now); }
  Instant NextWork() const override;
  bool answers_later() const override { return backups_.busy(); }
  void LeftUnanswered(size_t connections) override;
  void Disconnect(Instant now) override { peers_.CloseAll(now); }
  bool connected() const override { return peers_.open() > 0; }
  void CloseStore() override { commits_.Finish(close_store_); }
  [[noreturn]] void EndIsLate() override;

  void BeginTurn();
  void DoTurn();
  void OnScanDone(const ledger::ScanResult& result);
  void PublishTurn(int64_t sleeps_ms);
  void ReportNoRing();

  void OnSignal(int signal);
  void OnConfigRead(const Result<Invocation>& read, bool asked);
  void BeginEnd();
  void CloseHandles();

  Instant Now() const { return clock_->Now(); }

  // Only live settings change, on the loop; other threads read none of them here.
  ServerConfig config_;
  const ConfigAgain again_;
  const ledger::Clock* const clock_;
  store::Store* const store_;
  const std::function<Status()> close_store_;
  web::Board* const board_;
  ServiceManager service_;
  ServerLog log_;
  engine::Engine engine_;
  node::Turn turn_;

  uv_loop_t loop_{};
  LoopHooks hooks_;
  Peers peers_;
  CommitPump commits_;
  std::optional<ScanThread> scans_;  // None before Start.
  Backups backups_;
  ConfiguredRules rules_;
  ConfigWatch config_watch_;

  bool no_ring_reported_ = false;
  int64_t turn_began_ns_ = 0;  // 0: none has.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SERVER_H_
