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
      worker_(
          loop, "nc-commit", [this](bool job) { return Work(job); }, events_.done,
          kCheckNearlyFullEveryMs, [this] { TellDiskSpace(); }) {}

void CommitThread::Commit(const ledger::CommitBatch* batch) {
  NOWCALLS_CHECK(!full());
  batches_[submitted_++ % kBatchesMax] = batch;
  worker_.Submit();
}

bool CommitThread::CommitHere(const ledger::CommitBatch& batch) {
  // What is synced later needs the thread awake.
  if (durability_.mode == store::Durability::kInterval || worker_.busy() || wants_store_ ||
      batch.records() > durability_.inline_records_max) {
    return false;
  }
  const std::unique_lock store_lock(store_mutex_, std::try_to_lock);
  if (!store_lock.owns_lock() || !pace_.quick()) return false;
  {
    const std::lock_guard lock(watch_mutex_);
    watch_here_.Began(Instant{BoottimeMs()});
  }
  CommitTimed(batch);
  std::optional<std::string> slow;
  {
    const std::lock_guard lock(watch_mutex_);
    slow = watch_here_.Ended(Instant{BoottimeMs()});
  }
  TellIfSlow(slow);
  return true;
}

bool CommitThread::TakeBack() {
  if (!worker_.TakeBack()) return false;
  --submitted_;
  return true;
}

void CommitThread::Finish(std::function<Status()> close) {
  NOWCALLS_CHECK(!busy());
  batches_[submitted_++ % kBatchesMax] = nullptr;
  close_ = std::move(close);
  worker_.Submit();
}

int64_t CommitThread::Work(bool job) {
  std::unique_lock store_lock(store_mutex_, std::defer_lock);
  if (job) {
    store_lock.lock();
  } else {
    wants_store_ = true;
    const bool locked = store_lock.try_lock_for(std::chrono::milliseconds(kCheckEveryMs));
    if (!locked) {
      TellIfHung();
      return 0;
    }
    wants_store_ = false;
  }
  if (sync_due_ms_.has_value() && BoottimeMs() >= *sync_due_ms_) {
    Try("sync", store_->Sync());
    sync_due_ms_.reset();
  }
  if (job) Do();
  if (closed_) return WorkerThread::kUntilSubmit;
  if (!job) Try("check", store_->CheckPlace());
  const int64_t now_ms = BoottimeMs();
  if (now_ms >= look_due_ms_) LookAtDisk(now_ms);
  const int64_t wake_ms = std::min(sync_due_ms_.value_or(look_due_ms_), look_due_ms_);
  return std::clamp<int64_t>(wake_ms - now_ms, 0, kCheckEveryMs);
}

void CommitThread::LookAtDisk(int64_t now_ms) {
  const uint64_t seen = store_->FreeBytes().value_or(kUntold);
  look_due_ms_ = now_ms + (seen < disk_watch_.near_bytes ? kCheckNearlyFullEveryMs : kCheckEveryMs);
  if (free_bytes_.exchange(seen) != seen) worker_.Nudge();
}

void CommitThread::TellDiskSpace() const {
  const uint64_t seen = free_bytes_;
  disk_watch_.told(seen == kUntold ? std::nullopt : std::optional(seen));
}

void CommitThread::Do() {
  const ledger::CommitBatch* batch = batches_[begun_++ % kBatchesMax];
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
  CommitTimed(*batch);
  if (first_unsynced) sync_due_ms_ = due_ms;
}

void CommitThread::CommitTimed(const ledger::CommitBatch& batch) {
  const int64_t began_ns = MonotonicNs();
  Try("commit", store_->Commit(batch));
  pace_.Took((MonotonicNs() - began_ns) / 1'000);
}

void CommitThread::TellIfHung() {
  std::optional<std::string> hung;
  {
    const std::lock_guard lock(watch_mutex_);
    hung = watch_here_.UnderWay(Instant{BoottimeMs()});
  }
  TellIfSlow(hung);
}

void CommitThread::TellIfSlow(const std::optional<std::string>& what) const {
  if (what.has_value()) events_.slow(*what);
}

void CommitThread::Try(const char* what, const Status& result) {
  if (!result.ok()) events_.fail(what, result);
}

}  // namespace nowcalls::server
