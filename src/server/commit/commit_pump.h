// CommitPump: brings sealed batches to the disk and tells when they are durable.
//
// Thread: loop. The commit path:
//
// 1. Engine::OnBytes decides a request. Its reply waits for the open batch (invariant 1).
// 2. node::Turn seals that batch at a turn's end, unless a commit is under way.
// 3. A small batch is committed here while commits are quick, others on the commit thread.
// 4. The thread appends, syncs, reports the batch durable, then applies it.
// 5. The loop collects that in its next turn, and the replies leave.
// 6. The next batch holds what arrived meanwhile: group commit without a timer.
//
// Errors: a failed commit or sync ends the process (exit code 74). One that hangs holds up changes
// only.
#ifndef NOWCALLS_SERVER_COMMIT_COMMIT_PUMP_H_
#define NOWCALLS_SERVER_COMMIT_COMMIT_PUMP_H_

#include <uv.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/limits.h"
#include "base/time.h"
#include "ledger/clock.h"
#include "ledger/commit_batch.h"
#include "nowcalls/status.h"
#include "server/commit/commit_thread.h"
#include "server/commit/commit_watch.h"
#include "server/config/config.h"
#include "store/store.h"
#include "web/board.h"

namespace nowcalls::server {

class CommitPump {
 public:
  struct Events {
    std::function<void()> durable;  // The batch of the last Commit that answered false.
    std::function<void()> closed;   // The last job is done.
    // The log has another writer. The batch of the last Commit is not told any more. Empty: there
    // can be none.
    std::function<void()> deposed;
    std::function<void(std::optional<uint64_t> free_bytes, std::optional<uint64_t> free_files)>
        disk_space;
  };

  // All outlive it.
  CommitPump(const ServerConfig* config, const ledger::Clock* clock, store::Store* store,
             web::Board* board, Events events)
      : config_(config), clock_(clock), store_(store), board_(board), events_(std::move(events)) {}

  // As node::Io::Commit. Before Start: on this thread.
  bool Commit(const ledger::CommitBatch& batch, bool at_once);

  // Before Start: syncs what Commit wrote. Returns the first failure of either.
  Status SyncNow();

  void Start(uv_loop_t* loop);

  bool busy() const { return thread_->busy(); }

  // First in a turn: notes a batch that became durable.
  void Collect() {
    if (thread_->busy()) thread_->Collect();
  }

  // New marks of free disk. REQUIRES: Start.
  void SetLimits(const Limits& limits) { thread_->SetDiskNear(NearBytes(limits)); }

  // Logs a commit that hangs, once.
  void ReportHanging(Instant now) { LogSlow(watch_.UnderWay(now)); }
  Instant NextReport() const { return watch_.NextReport(); }

  // The last job: syncs the store, runs `close`. REQUIRES: no commit is under way.
  void Finish(const std::function<Status()>& close);
  // REQUIRES: Events::closed was called.
  void Stop() { thread_->Stop(); }

 private:
  static uint64_t NearBytes(const Limits& limits) { return 2 * limits.disk_free_high(); }
  void OnDone();
  void OnFailed(const char* what, const Status& failure);
  void OnDiskSpace(std::optional<uint64_t> free_bytes, std::optional<uint64_t> free_files);
  void PublishEnd();
  void LogSlow(const std::optional<std::string>& what) const;
  void LogSlowHere(const std::string& what) const;

  const ServerConfig* const config_;
  const ledger::Clock* const clock_;
  store::Store* const store_;
  web::Board* const board_;
  const Events events_;
  Status failed_;                       // Of Commit before Start.
  int64_t began_ns_ = 0;                // Of the last commit.
  std::optional<CommitThread> thread_;  // None before Start.
  CommitWatch watch_;                   // Of commits on the thread.
  bool finishing_ = false;
  std::atomic<bool> deposed_ = false;  // The thread's; the loop hears of it by OnDone.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_COMMIT_COMMIT_PUMP_H_
