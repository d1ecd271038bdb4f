#include "server/commit/commit_pump.h"

#include <utility>

#include "base/clock.h"
#include "server/log/logging.h"

namespace nowcalls::server {

bool CommitPump::Commit(const ledger::CommitBatch& batch, bool at_once) {
  // Before Start there is no thread: rule files of the start are committed here.
  if (!thread_.has_value()) {
    failed_ = store_->Commit(batch);
    return failed_.ok();
  }
  began_ns_ = MonotonicNs();
  // 1. A small batch while commits are quick: to wake a thread costs more than the commit. Its
  //    replies leave in this very turn.
  if (at_once && thread_->CommitHere(batch)) {
    PublishEnd();
    return true;
  }
  // 2. Any other batch: the thread commits it, and the loop goes on deciding into the next batch.
  //
  // One commit is in flight. A second sealed batch behind it would save the time from a sync's end
  // to the turn's end. But a request that comes during commit N could not join N + 1, which is
  // sealed, and would wait one whole commit more. Milliseconds of sync outweigh an idle disk.
  watch_.Began(clock_->Now());
  board_->commit_since_ms.store(BoottimeMs(), std::memory_order_relaxed);
  thread_->Commit(&batch);
  return false;
}

Status CommitPump::SyncNow() { return failed_.ok() ? store_->Sync() : failed_; }

void CommitPump::Start(uv_loop_t* loop) {
  // The first look, so that the engine knows a full disk before its first grant.
  events_.disk_space(store_->FreeBytes(), store_->FreeFiles());
  thread_.emplace(
      loop, store_, config_->durability,
      CommitThread::Events{
          .done = [this] { OnDone(); },
          .fail = [this](const char* what, const Status& failure) { OnFailed(what, failure); },
          .slow = [this](const std::string& what) { LogSlowHere(what); }},
      DiskWatch{NearBytes(config_->core.limits),
                [this](std::optional<uint64_t> bytes, std::optional<uint64_t> files) {
                  OnDiskSpace(bytes, files);
                }});
}

// On the commit thread.
void CommitPump::OnFailed(const char* what, const Status& failure) {
  const bool other_writer = events_.deposed && failure.code() == StatusCode::kFailedPrecondition;
  // Memory says more than the disk now, so the process ends at once.
  if (!other_writer) DieOfIoError(what, failure);
  LogAt(Severity::kWarn, failure.message() + ": this server writes no more");
  deposed_ = true;
}

void CommitPump::OnDone() {
  if (deposed_) return events_.deposed();
  // The last job has no batch.
  if (finishing_) return events_.closed();
  // The batch is durable; its replies leave at the end of the turn.
  PublishEnd();
  LogSlow(watch_.Ended(clock_->Now()));
  events_.durable();
}

void CommitPump::PublishEnd() {
  board_->commits.Add(static_cast<uint64_t>(MonotonicNs() - began_ns_) / 1000);
  board_->commit_since_ms.store(0, std::memory_order_relaxed);
}

void CommitPump::OnDiskSpace(std::optional<uint64_t> free_bytes,
                             std::optional<uint64_t> free_files) {
  // At the end nothing is granted any more.
  if (!finishing_) events_.disk_space(free_bytes, free_files);
}

void CommitPump::Finish(const std::function<Status()>& close) {
  finishing_ = true;
  // With interval and none, acknowledged batches may not be synced yet.
  thread_->Finish([store = store_, close] {
    NOWCALLS_RETURN_IF_ERROR(store->Sync());
    return close();
  });
}

void CommitPump::LogSlow(const std::optional<std::string>& what) const {
  if (!what.has_value()) return;
  const std::string for_what =
      config_->cluster.on() ? "etcd" : "the disk under " + config_->data_dir;
  LogAt(Severity::kWarn, *what + "; grants wait for " + for_what);
}

void CommitPump::LogSlowHere(const std::string& what) const {
  LogAt(Severity::kWarn,
        what +
            " on the thread that serves, which answers nobody meanwhile; look at the disk under " +
            config_->data_dir);
}

}  // namespace nowcalls::server
