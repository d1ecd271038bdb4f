// CommitThread: the only writer of the store.
//
// Thread: members are called on the loop thread; Commit, Sync and the last job run on the commit
// thread. One batch is in flight while the loop fills the next (group commit as in leveldb's
// DBImpl::Write, but without waiting writers: their replies wait instead). The next is submitted
// whenever the loop pauses and taken back when it goes on, so that the disk never waits for it.
#ifndef NOWCALLS_SERVER_COMMIT_THREAD_H_
#define NOWCALLS_SERVER_COMMIT_THREAD_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "ledger/commit_batch.h"
#include "nowcalls/status.h"
#include "server/config.h"
#include "server/worker_thread.h"
#include "store/store.h"

namespace nowcalls::server {

// Who hears what the ledger's disk has left: `told`, on the loop thread, whenever a look sees
// something else than the one before. With less than `near_bytes` looks come ten times as often.
struct DiskWatch {
  uint64_t near_bytes = 0;
  std::function<void(std::optional<uint64_t> free_bytes)> told;
};

class CommitThread {
 public:
  // Called on the commit thread with what failed ("commit", "sync", "check", "close"). The server's
  // does not return.
  using Fail = std::function<void(const char* what, const Status& failure)>;

  // With kInterval everything committed is synced after at most `durability.interval_ms`. Once a
  // second the thread looks whether the store is still where it was opened, so that a server whose
  // ledger was replaced ends soon, also when it has nothing to commit; and how much space its disk
  // has left, also when it is busy.
  CommitThread(uv_loop_t* loop, store::Store* store, const DurabilityChoice& durability,
               std::function<void()> done, Fail fail, DiskWatch disk_watch);

  static constexpr int kBatchesMax = 2;

  // REQUIRES: !full(). `batch` is sealed and stays as it is until `done`, or until it is taken
  // back.
  void Commit(const ledger::CommitBatch* batch);
  // True: the batch that came last is not committed unless it comes again.
  bool TakeBack();
  bool full() const { return worker_.jobs() == kBatchesMax; }

  // The last job: `close` runs on the thread, so that the loop can still keep its deadlines.
  // REQUIRES: !busy(), and nothing is submitted afterwards.
  void Finish(std::function<Status()> close);

  bool busy() const { return worker_.busy(); }
  void Stop() { worker_.Stop(); }

 private:
  int64_t Work(bool job);
  void Do();
  void LookAtDisk(int64_t now_ms);
  void TellDiskSpace() const;
  void Try(const char* what, const Status& result);

  store::Store* const store_;
  const DurabilityChoice durability_;
  const Fail fail_;
  const DiskWatch disk_watch_;

  // The jobs: a ring of batches; nullptr means close_.
  std::array<const ledger::CommitBatch*, kBatchesMax> batches_{};
  size_t submitted_ = 0;  // Loop thread: how many have been.
  size_t begun_ = 0;      // Commit thread.
  std::function<Status()> close_;

  // Commit thread: when what is not synced yet has to be, on the boot clock.
  std::optional<int64_t> sync_due_ms_;
  bool closed_ = false;
  int64_t look_due_ms_ = 0;

  static constexpr uint64_t kUntold = UINT64_MAX;
  std::atomic<uint64_t> free_bytes_ = kUntold;  // As seen at the last look.

  WorkerThread worker_;  // Last, since its thread uses all of the above.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_COMMIT_THREAD_H_
