// CommitThread: the only writer of the store.
//
// Thread: loop; Commit, Sync and the last job run on the commit thread. Order of a batch: log,
// `done`, tables.
#ifndef NOWCALLS_SERVER_COMMIT_COMMIT_THREAD_H_
#define NOWCALLS_SERVER_COMMIT_COMMIT_THREAD_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "ledger/commit_batch.h"
#include "nowcalls/status.h"
#include "server/commit/commit_pace.h"
#include "server/commit/commit_watch.h"
#include "server/config/config.h"
#include "server/threads/worker_thread.h"
#include "store/store.h"

namespace nowcalls::server {

// `told`: on the loop thread, when free bytes or inodes change. Below `near_bytes` looks come ten
// times as often.
struct DiskWatch {
  uint64_t near_bytes = 0;
  std::function<void(std::optional<uint64_t> free_bytes, std::optional<uint64_t> free_files)> told;
};

class CommitThread {
 public:
  struct Events {
    std::function<void()> done;  // On the loop thread, for each Commit.
    // On the thread of the failure. `what`: "commit", "sync", "check" or "close". The server's
    // handler does not return.
    std::function<void(const char* what, const Status& failure)> fail;
    // On either thread: CommitWatch's text about a commit on the loop thread.
    std::function<void(const std::string& what)> slow;
  };

  // kInterval: syncs at most `durability.interval_ms` after a commit. Checks the ledger's place and
  // the free disk each second.
  CommitThread(uv_loop_t* loop, store::Store* store, const DurabilityChoice& durability,
               Events events, DiskWatch disk_watch);

  // Commits on the loop thread, if that will be quick. False: call Commit.
  bool CommitHere(const ledger::CommitBatch& batch);

  // REQUIRES: !busy(); `batch` is sealed and unchanged until `done`.
  void Commit(const ledger::CommitBatch* batch);

  // The last job, on the thread. REQUIRES: !busy(); nothing is submitted afterwards.
  void Finish(std::function<Status()> close);

  // Thread: any. Sets DiskWatch::near_bytes.
  void SetDiskNear(uint64_t bytes) { near_bytes_ = bytes; }

  // From Commit or Finish until just before `done`.
  bool busy() const { return worker_.busy(); }
  // As WorkerThread::Collect.
  void Collect() { worker_.Collect(); }
  void Stop() { worker_.Stop(); }

 private:
  bool LoopTakesStore();
  void LoopReturnsStore();
  bool ThreadTakesStore();
  void ThreadReturnsStore();
  int64_t Work(bool job);
  int64_t WorkOnStore(bool job);
  void Do();
  // `durable` as of Store::CommitTelling, or empty.
  void CommitTimed(const ledger::CommitBatch& batch, const std::function<void()>& durable);
  void TellIfSlow(const std::optional<std::string>& what) const;
  void LookAtDisk(int64_t now_ms);
  void TellDiskSpace() const;
  void Try(const char* what, const Status& result);

  store::Store* const store_;
  const DurabilityChoice durability_;
  const Events events_;
  const DiskWatch disk_watch_;
  std::atomic<uint64_t> near_bytes_;  // Of disk_watch_ at first.

  const ledger::CommitBatch* batch_ = nullptr;  // The job; nullptr means close_.
  std::function<Status()> close_;

  // One thread at a time has the store.
  std::mutex mutex_;
  std::condition_variable returned_;
  bool loop_has_store_ = false;    // Guarded by mutex_, as are the next two.
  bool thread_has_store_ = false;  // Or waits for it.
  CommitWatch watch_here_;         // Of the commit on the loop thread.
  CommitPace pace_;

  // Commit thread: the due sync, boot clock.
  std::optional<int64_t> sync_due_ms_;
  bool closed_ = false;
  int64_t look_due_ms_ = 0;

  static constexpr uint64_t kUntold = UINT64_MAX;
  std::atomic<uint64_t> free_bytes_ = kUntold;  // As seen at the last look.
  std::atomic<uint64_t> free_files_ = kUntold;

  const std::function<void()> finish_early_ = [this] { worker_.FinishEarly(); };
  WorkerThread worker_;  // After all that its thread uses.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_COMMIT_COMMIT_THREAD_H_
