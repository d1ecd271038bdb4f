// BackupThread: makes backups, one at a time.
//
// Thread: loop; copying and verifying run on the backup thread.
#ifndef NOWCALLS_SERVER_THREADS_BACKUP_THREAD_H_
#define NOWCALLS_SERVER_THREADS_BACKUP_THREAD_H_

#include <uv.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "backup/manifest.h"
#include "engine/driver.h"
#include "nowcalls/status.h"
#include "server/threads/worker_thread.h"

namespace nowcalls::server {

class BackupThread {
 public:
  // Makes a backup in the directory `to`; calls `begun` once that exists. kUnavailable soon after
  // `stop` is set.
  using Make = std::function<Result<backup::Manifest>(
      const std::string& to, const std::atomic<bool>& stop, const std::function<void()>& begun)>;
  struct Events {
    // On the backup thread.
    std::function<void(const engine::BackupJob& job)> begun;
    // On the loop thread, for each job that Begin took.
    std::function<void(const engine::BackupJob& job, bool begun,
                       const Result<backup::Manifest>& made)>
        done;
  };

  BackupThread(Make make, Events events) : make_(std::move(make)), events_(std::move(events)) {}

  // kResourceExhausted: a backup is under way, or End was called.
  Status Begin(uv_loop_t* loop, const engine::BackupJob& job) {
    if (ends_) return Status::ResourceExhausted("the server ends");
    if (busy())
      return Status::ResourceExhausted("a backup to " + job_.to + " is being made already");
    if (!worker_.has_value()) {
      worker_.emplace(
          loop, "nc-backup", [this](bool) { return Work(); },
          [this] { events_.done(job_, begun_, made_); });
    }
    job_ = job;
    begun_ = false;
    worker_->Submit();
    return {};
  }

  bool busy() const { return worker_.has_value() && worker_->busy(); }

  // No backup begins any more; one under way ends soon.
  void End() { ends_ = true; }

  // REQUIRES: !busy().
  void Stop() {
    if (worker_.has_value()) worker_->Stop();
  }

 private:
  int64_t Work() {
    made_ = make_(job_.to, ends_, [this] {
      begun_ = true;
      events_.begun(job_);
    });
    return WorkerThread::kUntilSubmit;
  }

  const Make make_;
  const Events events_;
  std::atomic<bool> ends_{false};

  engine::BackupJob job_;
  bool begun_ = false;
  Result<backup::Manifest> made_ = backup::Manifest{};

  std::optional<WorkerThread> worker_;  // Last, since its thread uses all of the above.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_THREADS_BACKUP_THREAD_H_
