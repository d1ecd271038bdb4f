// BackupThread: makes backups beside everything else, one at a time.
//
// Thread: members are called on the loop thread; the copying and verifying runs on the backup
// thread, which is started with the first backup.
#ifndef NOWCALLS_SERVER_BACKUP_THREAD_H_
#define NOWCALLS_SERVER_BACKUP_THREAD_H_

#include <uv.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "backup/manifest.h"
#include "engine/driver.h"
#include "nowcalls/status.h"
#include "server/worker_thread.h"

namespace nowcalls::server {

class BackupThread {
 public:
  // Makes a backup in the directory `to`; ends soon, with kUnavailable, when `stop` is set.
  using Make =
      std::function<Result<backup::Manifest>(const std::string& to, const std::atomic<bool>& stop)>;
  using Done = std::function<void(engine::ConnectionId asker, const std::string& to,
                                  const Result<backup::Manifest>& made)>;

  BackupThread(Make make, Done done) : make_(std::move(make)), done_(std::move(done)) {}

  // kResourceExhausted: one is being made, or End was called.
  Status Begin(uv_loop_t* loop, engine::ConnectionId asker, std::string_view to) {
    if (ends_) return Status::ResourceExhausted("the server ends");
    if (busy()) return Status::ResourceExhausted("a backup to " + to_ + " is being made already");
    if (!worker_.has_value()) {
      worker_.emplace(
          loop, "nc-backup", [this](bool) { return Work(); },
          [this] { done_(asker_, to_, made_); });
    }
    asker_ = asker;
    to_ = to;
    worker_->Submit();
    return {};
  }

  bool busy() const { return worker_.has_value() && worker_->busy(); }

  // None is begun any more, and one that is being made ends soon.
  void End() { ends_ = true; }

  // REQUIRES: !busy().
  void Stop() {
    if (worker_.has_value()) worker_->Stop();
  }

 private:
  int64_t Work() {
    made_ = make_(to_, ends_);
    return WorkerThread::kUntilSubmit;
  }

  const Make make_;
  const Done done_;
  std::atomic<bool> ends_{false};

  // The job.
  engine::ConnectionId asker_ = 0;
  std::string to_;
  Result<backup::Manifest> made_ = backup::Manifest{};

  std::optional<WorkerThread> worker_;  // Last, since its thread uses all of the above.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_BACKUP_THREAD_H_
