#include "server/commit_thread.h"

#include <algorithm>
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
                           std::function<void()> done, Fail fail, DiskWatch disk_watch)
    : store_(store),
      durability_(durability),
      fail_(std::move(fail)),
      disk_watch_(std::move(disk_watch)),
      worker_(
          loop, "nc-commit", [this](bool job) { return Work(job); }, std::move(done),
          kCheckNearlyFullEveryMs, [this] { TellDiskSpace(); }) {}

void CommitThread::Commit(const ledger::CommitBatch* batch) {
  NOWCALLS_CHECK(!full());
  batches_[submitted_++ % kBatchesMax] = batch;
  worker_.Submit();
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
  Try("commit", store_->Commit(*batch));
  if (first_unsynced) sync_due_ms_ = due_ms;
}

void CommitThread::Try(const char* what, const Status& result) {
  if (!result.ok()) fail_(what, result);
}

}  // namespace nowcalls::server
