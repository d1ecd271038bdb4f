#include "server/commit_thread.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/clock.h"

namespace nowcalls::server {
namespace {

constexpr int64_t kCheckEveryMs = 1'000;
// While the disk is nearly full: a busy server writes a tenth of the least low watermark that makes
// sense in this time, and grants go on soon after somebody has made room.
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
  // What is synced later needs the thread awake.
  if (durability_.mode == store::Durability::kInterval || worker_.busy() ||
      batch.records() > durability_.inline_records_max || !LoopTakesStore()) {
    return false;
  }
  CommitTimed(batch, {});
  LoopReturnsStore();
  return true;
}

bool CommitThread::LoopTakesStore() {
  const std::lock_guard lock(mutex_);
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
    slow = watch_here_.Ended(Instant{BoottimeMs()});
    loop_has_store_ = false;
    awaited = thread_has_store_;
  }
  if (awaited) returned_.notify_one();
  TellIfSlow(slow);
}

// False: the loop has not returned it for a while.
bool CommitThread::ThreadTakesStore() {
  std::optional<std::string> slow;
  {
    std::unique_lock lock(mutex_);
    thread_has_store_ = true;
    const auto patience = std::chrono::milliseconds(kCheckEveryMs);
    if (returned_.wait_for(lock, patience, [this] { return !loop_has_store_; })) return true;
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
  // While there is a job the loop commits nothing itself, so one never comes in vain.
  const bool taken = ThreadTakesStore();
  NOWCALLS_CHECK(taken || !job);
  if (!taken) return 0;
  const int64_t wait_ms = WorkOnStore(job);
  ThreadReturnsStore();
  return wait_ms;
}

int64_t CommitThread::WorkOnStore(bool job) {
  if (sync_due_ms_.has_value() && BoottimeMs() >= *sync_due_ms_) {
    Try("sync", store_->Sync());
    sync_due_ms_.reset();
  }
  if (job) Do();
  if (closed_) return WorkerThread::kUntilSubmit;
  const int64_t now_ms = BoottimeMs();
  if (now_ms >= look_due_ms_) {
    Try("check", store_->CheckPlace());
    LookAtDisk(now_ms);
  }
  const int64_t wake_ms = std::min(sync_due_ms_.value_or(look_due_ms_), look_due_ms_);
  return std::clamp<int64_t>(wake_ms - now_ms, 0, kCheckEveryMs);
}

void CommitThread::LookAtDisk(int64_t now_ms) {
  const uint64_t seen = store_->FreeBytes().value_or(kUntold);
  look_due_ms_ = now_ms + (seen < near_bytes_ ? kCheckNearlyFullEveryMs : kCheckEveryMs);
  const uint64_t files = store_->FreeFiles().value_or(kUntold);
  const bool other_files = free_files_.exchange(files) != files;
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
  if (batch == nullptr) {
    Try("close", close_());
    closed_ = true;
    sync_due_ms_.reset();
    return;
  }
  const bool first_unsynced =
      durability_.mode == store::Durability::kInterval && !sync_due_ms_.has_value();
  // Before the commit, so that its own time counts.
  const int64_t due_ms = first_unsynced ? BoottimeMs() + durability_.interval_ms : 0;
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
