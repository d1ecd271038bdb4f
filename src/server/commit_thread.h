// CommitThread: the only writer of the store.
//
// Thread: members are called on the loop thread; the store's Commit, Sync and the last job run on
// the commit thread. One batch is in flight while the loop fills the next (group commit as in
// leveldb's DBImpl::Write, but without waiting writers: their replies wait instead). `done` comes
// as soon as a batch is on the disk. The thread applies the batch to the store's tables after that,
// while the loop makes the next one. A small batch is committed on the loop thread (CommitHere): to
// hand it over would take longer than its commit.
#ifndef NOWCALLS_SERVER_COMMIT_THREAD_H_
#define NOWCALLS_SERVER_COMMIT_THREAD_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "ledger/commit_batch.h"
#include "nowcalls/status.h"
#include "server/commit_pace.h"
#include "server/commit_watch.h"
#include "server/config.h"
#include "server/worker_thread.h"
#include "store/store.h"

namespace nowcalls::server {

// Hears how many bytes and inodes the ledger's disk has free: `told` runs on the loop thread
// whenever a look finds another number than the look before. Below `near_bytes` looks come ten
// times as often.
struct DiskWatch {
  uint64_t near_bytes = 0;
  std::function<void(std::optional<uint64_t> free_bytes, std::optional<uint64_t> free_files)> told;
};

class CommitThread {
 public:
  struct Events {
    std::function<void()> done;  // On the loop thread, for each Commit.
    // On the thread of the failure. `what` is "commit", "sync", "check" or "close". The server's
    // handler does not return.
    std::function<void(const char* what, const Status& failure)> fail;
    // On either thread, with the text of CommitWatch about a commit on the loop thread.
    std::function<void(const std::string& what)> slow;
  };

  // With kInterval every commit is synced after at most `durability.interval_ms`. Once a second,
  // with commits and without, the thread checks that the store is still what it was opened as, so
  // that a server whose ledger was replaced or harmed ends soon. It also looks at the free space of
  // the disk.
  CommitThread(uv_loop_t* loop, store::Store* store, const DurabilityChoice& durability,
               Events events, DiskWatch disk_watch);

  // Commits a sealed batch before it returns, on the loop thread, if it is small
  // (DurabilityChoice::inline_records_max), nothing is submitted and commits have been quick
  // lately. False: Commit has to be called.
  bool CommitHere(const ledger::CommitBatch& batch);

  // REQUIRES: !busy(). `batch` is sealed and stays as it is until `done`.
  void Commit(const ledger::CommitBatch* batch);

  // The last job: `close` runs on the thread, so that the loop can still keep its deadlines.
  // REQUIRES: !busy(), and nothing is submitted afterwards.
  void Finish(std::function<Status()> close);

  // Thread: any. DiskWatch::near_bytes from now on.
  void SetDiskNear(uint64_t bytes) { near_bytes_ = bytes; }

  // From Commit or Finish until just before `done`.
  bool busy() const { return worker_.busy(); }
  // Runs `done` now if it is due; otherwise the loop's next poll does.
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

  // One thread at a time has the store. The commit thread waits for it. The loop commits nothing
  // itself while the commit thread has the store or waits for it.
  std::mutex mutex_;
  std::condition_variable returned_;
  bool loop_has_store_ = false;    // Guarded by mutex_, as are the next two.
  bool thread_has_store_ = false;  // Or waits for it.
  CommitWatch watch_here_;         // Of the commit on the loop thread.
  CommitPace pace_;

  // Commit thread: when the commits that are not synced have to be, on the boot clock.
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

#endif  // NOWCALLS_SERVER_COMMIT_THREAD_H_
