// CommitPump: brings sealed batches to the disk and tells when they are there.
//
// Thread: loop. This is the commit path, from a request to its reply:
//
//   1. Engine::OnBytes decides a request. Its records go into the open batch. Its reply waits in
//      the connection's buffer for that batch (invariant 1: no reply before its batch is durable).
//   2. At the end of a turn node::Turn seals the open batch (Engine::BeginCommit) unless a commit
//   is
//      under way. A sealed batch never changes. The next batch is open at once, so requests go on
//      being decided while the disk works.
//   3. The batch goes to the disk in one of two ways:
//      - A small batch, while commits are quick, is committed here, on the loop thread
//        (CommitThread::CommitHere): to wake a thread costs more than such a commit. Its replies
//        leave in this very turn.
//      - Any other batch is handed to the commit thread, and the loop goes on.
//   4. The commit thread appends the batch to the log and syncs it (Store::CommitTelling). The
//      batch is durable now, and the thread reports so. Only then does it apply the batch to the
//      store's tables, while the loop already sends the replies.
//   5. The loop hears of it when it next looks: at the beginning of its turn, if the commit ended
//      meanwhile, or by its next poll, if the loop sleeps. Turn::OnDurable lets the replies of that
//      batch leave at the end of the turn.
//   6. Back to 2: the open batch holds what arrived while the one before it was being synced. That
//      is group commit without a timer. A slow disk gets large batches, a quick one small batches.
//
// One commit is in flight. A second sealed batch that waits behind it would save the moment between
// the end of a sync and the end of the loop's turn. It would also cost each request one whole
// commit more: a request that comes during commit N could not join batch N + 1, which is sealed
// already. Where a sync takes milliseconds that is what counts. Where a sync takes a tenth of one,
// the loop is the slower part, and the disk may idle.
//
// Failure modes: a commit or sync that fails ends the process at once (exit code 74): memory would
// say more than the disk. A commit that is slow or hangs is logged (CommitWatch); grants wait, and
// requests that change nothing are answered as ever.
#ifndef NOWCALLS_SERVER_COMMIT_PUMP_H_
#define NOWCALLS_SERVER_COMMIT_PUMP_H_

#include <uv.h>

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
#include "server/commit_thread.h"
#include "server/commit_watch.h"
#include "server/config.h"
#include "store/store.h"
#include "web/board.h"

namespace nowcalls::server {

class CommitPump {
 public:
  // All run on the loop thread.
  struct Events {
    std::function<void()> durable;  // The batch of the last Commit that answered false.
    std::function<void()> closed;   // The last job is done.
    std::function<void(std::optional<uint64_t> free_bytes, std::optional<uint64_t> free_files)>
        disk_space;
  };

  // All of these outlive it.
  CommitPump(const ServerConfig* config, const ledger::Clock* clock, store::Store* store,
             web::Board* board, Events events)
      : config_(config), clock_(clock), store_(store), board_(board), events_(std::move(events)) {}

  // As node::Io::Commit. Before Start the batch is committed on this thread.
  bool Commit(const ledger::CommitBatch& batch, bool at_once);

  // Before Start: syncs what Commit has committed. Not ok: that has failed.
  Status SyncNow();

  // Starts the commit thread.
  void Start(uv_loop_t* loop);

  // Once a turn, before anything else: takes note of a batch that has become durable while the loop
  // was reading.
  void Collect() {
    if (thread_->busy()) thread_->Collect();
  }

  // The marks of free disk are others from now on. REQUIRES: Start was called.
  void SetLimits(const Limits& limits) { thread_->SetDiskNear(NearBytes(limits)); }

  // Logs a commit that does not end; once a commit.
  void ReportHanging(Instant now) { LogSlow(watch_.UnderWay(now)); }
  // When ReportHanging has something to log.
  Instant NextReport() const { return watch_.NextReport(); }

  // The last job: the store is synced, then `close` runs, on the commit thread. REQUIRES: no commit
  // is under way.
  void Finish(const std::function<Status()>& close);
  // Ends the thread. REQUIRES: Events::closed has been called.
  void Stop() { thread_->Stop(); }

 private:
  // With less free than this the disk is looked at more often.
  static uint64_t NearBytes(const Limits& limits) { return 2 * limits.disk_free_high(); }
  void OnDone();
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
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_COMMIT_PUMP_H_
