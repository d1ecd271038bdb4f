// Server: drives the engine with libuv, sockets and worker threads.
//
// Thread: loop, that of Start and Run.
//
// Run returns after a signal, once all is closed. Otherwise the process ends: exit code 74 after a
// failed commit, sync or scan; 1 at a second signal, which loses nothing acknowledged; 0 if a look
// at a file outlasts the end.
#ifndef NOWCALLS_SERVER_SERVER_H_
#define NOWCALLS_SERVER_SERVER_H_

#include <uv.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "ledger/clock.h"
#include "node/turn.h"
#include "nowcalls/status.h"
#include "recovery/recovery.h"
#include "server/additions.h"
#include "server/cluster/copy_shelf.h"
#include "server/commit/commit_pump.h"
#include "server/config/config.h"
#include "server/config/config_watch.h"
#include "server/log/server_log.h"
#include "server/loop/listener.h"
#include "server/loop/loop_hooks.h"
#include "server/loop/peers.h"
#include "server/rules/configured_rules.h"
#include "server/rules/rule_files.h"
#include "server/security/access_file_watch.h"
#include "server/security/tls_port.h"
#include "server/service_manager.h"
#include "server/threads/backups.h"
#include "server/threads/scan_thread.h"
#include "store/store.h"
#include "web/board.h"
#include "wire/cluster_messages.h"

namespace nowcalls::server {

struct ConfigAgain {
  ServerConfig at_start;     // As it was read, before the start adapted it to the machine.
  ConfigWatch::Read read{};  // On a worker thread; empty: it is not.
  std::function<void(uint64_t bytes)> set_nearly_full = [](uint64_t) {};
};

// Of the writer of a cluster. The calls are any thread's. Empty: there is one server.
struct ClaimWatch {
  std::function<bool()> over{};     // Another may be the writer: nothing may leave.
  std::function<void()> give_up{};  // Commits end and fail from now on.
  std::string secret{};             // Lineage::secret.
  std::function<wire::ClusterReply()> describe{};
  // As engine::Driver::HandOver.
  std::function<Status()> may_hand_over{};

  bool on() const { return over != nullptr; }
};

// How a server ended. Neither deposed nor asked for its end: it has handed over.
struct Ended {
  bool deposed = false;    // Another is the writer. Connections are closed, the store is not.
  bool end_asked = false;  // By a signal or the program.
  std::string why{};       // It left in good order, for the log.
};

class Server final : public engine::Driver, private node::Io {
 public:
  // Pointers outlive the server. `make_backup` runs on the backup thread, `close_store` on the
  // commit thread. `tls`: of LoadTls.
  Server(const ServerConfig& config, const recovery::RecoveredLedger* ledger,
         const ledger::Clock* clock, store::Store* store, BackupThread::Make make_backup,
         std::function<Status()> close_store, web::Board* board, ConfigAgain again,
         Additions* additions, TlsContext tls, ClaimWatch claim = {});
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // As ConfiguredRules::PutInForce, durable on return; or a code of the store. REQUIRES: before
  // Start.
  Status PutRulesInForce(std::vector<LoadedRuleFile> files);

  // nullptr: there is no access file. REQUIRES: before Start.
  void PutAccessInForce(AccessListPtr list) { access_.PutInForce(std::move(list)); }

  // As TlsPort::WhenReplaced. REQUIRES: before Start.
  void WhenCertificateReplaced(std::function<void(const net::TlsServer& tls)> taken) {
    tls_.WhenReplaced(std::move(taken));
  }
  // `taken` runs with each list that is put in force. REQUIRES: before PutAccessInForce.
  void WhenAccessReplaced(std::function<void(const AccessListPtr& list)> taken) {
    access_replaced_ = std::move(taken);
  }

  // Handles signals and accepts, once Run runs.
  void Start(std::vector<std::unique_ptr<Listener>> listeners);

  // REQUIRES: Start.
  void Run();
  // After Run.
  const Ended& ended() const { return ended_; }

  // engine::Driver.
  void Write(std::span<engine::Output> outputs) override;
  void Close(engine::ConnectionId id, bool flush) override { peers_.Close(id, flush); }
  void SetReading(engine::ConnectionId id, bool on) override { peers_.SetReading(id, on); }
  void Log(engine::Severity severity, LogTopic topic, std::string_view message,
           const LogFields& fields) override {
    log_.Write(severity, topic, message, fields, Now());
  }
  Status BeginBackup(const engine::BackupJob& job) override;
  Result<std::string_view> ReadCopy(std::string_view file, uint64_t offset) override;
  Result<wire::ClusterReply> DescribeCluster() override;
  Result<uint64_t> HandOver(std::string_view by) override;

 private:
  // node::Io.
  bool Commit(const ledger::CommitBatch& batch, bool at_once) override {
    return commits_.Commit(batch, at_once);
  }
  void Scan(const ledger::ScanRequest& request) override { scans_->Scan(request); }
  bool TakeMoreToRead() override { return peers_.TakeToRead(); }
  void Polled(Instant now) override { peers_.CloseOverdue(now); }
  Instant NextWork() const override;
  bool answers_later() const override { return backups_.busy(); }
  void LeftUnanswered(size_t connections) override;
  void Disconnect(Instant now) override {
    peers_.CloseAll(now + (claim_.on() ? Peers::kHandOverMsMax : Peers::kCloseMsMax));
  }
  bool connected() const override { return peers_.open() > 0; }
  void CloseStore() override { commits_.Finish(close_store_); }
  [[noreturn]] void EndIsLate() override;
  void Abandon() override;

  void BeginTurn();
  void DoTurn();
  void OnScanDone(const ledger::ScanResult& result);
  void PublishTurn(int64_t sleeps_ms);
  void ReportNoRing();

  void OnSignal(int signal);
  void OnConfigRead(const Result<Invocation>& read, bool asked);
  void LookAtCopies();
  void AskForEnd(const std::string& why);
  void Leave(const std::string& why);
  void StopWatching();
  void CloseHandles();

  Instant Now() const { return clock_->Now(); }

  // Only live settings change, on the loop; no other thread reads one.
  ServerConfig config_;
  const ConfigAgain again_;
  const ledger::Clock* const clock_;
  store::Store* const store_;
  const std::function<Status()> close_store_;
  web::Board* const board_;
  Additions* const additions_;
  const ClaimWatch claim_;
  ServiceManager service_;
  ServerLog log_;
  engine::TlsCounters tls_counters_;
  engine::Engine engine_;
  node::Turn turn_;

  uv_loop_t loop_{};
  LoopHooks hooks_;
  TlsPort tls_;
  Peers peers_;
  CommitPump commits_;
  std::optional<ScanThread> scans_;  // None before Start.
  Backups backups_;
  CopyShelf copies_;
  ConfiguredRules rules_;
  std::function<void(const AccessListPtr& list)> access_replaced_;
  AccessFileWatch access_;
  ConfigWatch config_watch_;

  Ended ended_;
  Instant end_asked_;        // When, with Ended::end_asked.
  std::string handover_by_;  // Who has asked for one; empty: nobody.
  bool left_out_ = false;    // Bytes, behind the claim.
  bool stopped_watching_ = false;
  bool no_ring_reported_ = false;
  int64_t turn_began_ns_ = 0;   // 0: none has.
  int64_t looks_until_ms_ = 0;  // The end waits so long for looks; 0: it has not begun to.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SERVER_H_
