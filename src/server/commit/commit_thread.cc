#include "server/commit/commit_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kCheckEveryMs = 1'000;
// While the disk is nearly full. In 100 ms a busy server writes a tenth of the least sensible low
// mark; grants go on soon after somebody made room.
constexpr int64_t kCheckNearlyFullEveryMs = 100;

}  // namespace

CommitThread::CommitThread(uv_loop_t* loop, store::Store* store, const DurabilityChoice& durability,
                           Events events, DiskWatch disk_watch)
    : store_(store),
      durability_(durability),
      events_(std::move(events)),
      disk_watch_(std::move(disk_watch)),
      near_bytes_(disk_watch_.near_bytes),
      worker_(
          loop, "nc-commit", [this](bool job) { return Work(job); }, events_.done,
          kCheckNearlyFullEveryMs, [this] { TellDiskSpace(); }) {}

void CommitThread::Commit(const ledger::CommitBatch* batch) {
  NOWCALLS_CHECK(!busy());
  batch_ = batch;
  worker_.Submit();
}

bool CommitThread::CommitHere(const ledger::CommitBatch& batch) {
  // kInterval: the thread must be awake for the sync that follows.
  if (durability_.mode == store::Durability::kInterval || worker_.busy() ||
      batch.records() > durability_.inline_records_max || !LoopTakesStore()) {
    return false;
  }
  // The loop blocks here, with all requests; LoopTakesStore allowed it for quick commits alone.
  CommitTimed(batch, {});
  LoopReturnsStore();
  return true;
}

bool CommitThread::LoopTakesStore() {
  const std::lock_guard lock(mutex_);
  // Never wait for the thread: it may be in a slow sync. Then the batch is handed over.
  if (thread_has_store_ || !pace_.quick()) return false;
  loop_has_store_ = true;
  watch_here_.Began(Instant{BoottimeMs()});
  return true;
}

void CommitThread::LoopReturnsStore() {
  std::optional<std::string> slow;
  bool awaited = false;
  {
    const std::lock_guard lock(mutex_);
    // Notify and log outside of the mutex: the thread waits for it.
    slow = watch_here_.Ended(Instant{BoottimeMs()});
    loop_has_store_ = false;
    awaited = thread_has_store_;
  }
  if (awaited) returned_.notify_one();
  TellIfSlow(slow);
}

// False: the loop kept the store for kCheckEveryMs: a hanging disk.
bool CommitThread::ThreadTakesStore() {
  std::optional<std::string> slow;
  {
    std::unique_lock lock(mutex_);
    // Claim first, then wait: from now on the loop takes no new commit.
    thread_has_store_ = true;
    const auto patience = std::chrono::milliseconds(kCheckEveryMs);
    if (returned_.wait_for(lock, patience, [this] { return !loop_has_store_; })) return true;
    // The loop itself cannot log its own hanging commit.
    slow = watch_here_.UnderWay(Instant{BoottimeMs()});
  }
  TellIfSlow(slow);
  return false;
}

void CommitThread::ThreadReturnsStore() {
  const std::lock_guard lock(mutex_);
  thread_has_store_ = false;
}

void CommitThread::Finish(std::function<Status()> close) {
  NOWCALLS_CHECK(!busy());
  batch_ = nullptr;
  close_ = std::move(close);
  worker_.Submit();
}

int64_t CommitThread::Work(bool job) {
  // With a job submitted, the loop commits nothing itself: the store is free, or soon will be.
  const bool taken = ThreadTakesStore();
  NOWCALLS_CHECK(taken || !job);
  // Come back at once: the next wait has the same patience.
  if (!taken) return 0;
  const int64_t wait_ms = WorkOnStore(job);
  ThreadReturnsStore();
  return wait_ms;
}

int64_t CommitThread::WorkOnStore(bool job) {
  // 1. A due sync comes before the job, whose commit would delay it.
  if (sync_due_ms_.has_value() && BoottimeMs() >= *sync_due_ms_) {
    Try("sync", store_->Sync());
    sync_due_ms_.reset();
  }
  // 2. The job: a batch, or the close at the end.
  if (job) Do();
  if (closed_) return WorkerThread::kUntilSubmit;
  // 3. About once a second, also without commits: a ledger that was replaced or harmed ends the
  //    server soon.
  const int64_t now_ms = BoottimeMs();
  if (now_ms >= look_due_ms_) {
    Try("check", store_->CheckPlace());
    LookAtDisk(now_ms);
  }
  // 4. Sleep until the next sync or look.
  const int64_t wake_ms = std::min(sync_due_ms_.value_or(look_due_ms_), look_due_ms_);
  return std::clamp<int64_t>(wake_ms - now_ms, 0, kCheckEveryMs);
}

void CommitThread::LookAtDisk(int64_t now_ms) {
  const uint64_t seen = store_->FreeBytes().value_or(kUntold);
  look_due_ms_ = now_ms + (seen < near_bytes_ ? kCheckNearlyFullEveryMs : kCheckEveryMs);
  const uint64_t files = store_->FreeFiles().value_or(kUntold);
  const bool other_files = free_files_.exchange(files) != files;
  // Only news wakes the loop.
  if (free_bytes_.exchange(seen) != seen || other_files) worker_.Nudge();
}

void CommitThread::TellDiskSpace() const {
  const auto told = [](uint64_t seen) {
    return seen == kUntold ? std::nullopt : std::optional(seen);
  };
  disk_watch_.told(told(free_bytes_), told(free_files_));
}

void CommitThread::Do() {
  const ledger::CommitBatch* batch = batch_;
  // The close is the last call of the store; Stop follows.
  if (batch == nullptr) {
    Try("close", close_());
    closed_ = true;
    sync_due_ms_.reset();
    return;
  }
  const bool first_unsynced =
      durability_.mode == store::Durability::kInterval && !sync_due_ms_.has_value();
  // Taken before the commit, so that the commit's own time counts.
  const int64_t due_ms = first_unsynced ? BoottimeMs() + durability_.interval_ms : 0;
  // The loop hears that the batch is durable before the store applies it to its tables.
  CommitTimed(*batch, finish_early_);
  if (first_unsynced) sync_due_ms_ = due_ms;
}

void CommitThread::CommitTimed(const ledger::CommitBatch& batch,
                               const std::function<void()>& durable) {
  const int64_t began_ns = MonotonicNs();
  Try("commit", store_->CommitTelling(batch, durable));
  pace_.Took((MonotonicNs() - began_ns) / 1'000);
}

void CommitThread::TellIfSlow(const std::optional<std::string>& what) const {
  if (what.has_value()) events_.slow(*what);
}

void CommitThread::Try(const char* what, const Status& result) {
  if (!result.ok()) events_.fail(what, result);
}

}  // namespace nowcalls::server
