#include "server/threads/worker_thread.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "base/check.h"

namespace nowcalls::server {

WorkerThread::WorkerThread(uv_loop_t* loop, const std::string& name, Work work, Done done,
                           int64_t first_ms, Done nudged)
    : work_(std::move(work)), done_(std::move(done)), nudged_(std::move(nudged)) {
  async_.data = this;
  NOWCALLS_CHECK(uv_async_init(loop, &async_, [](uv_async_t* async) {
                   static_cast<WorkerThread*>(async->data)->Collect();
                 }) == 0);
  thread_ = std::thread([this, first_ms] { Run(first_ms); });
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

WorkerThread::~WorkerThread() { NOWCALLS_CHECK(closed_); }

void WorkerThread::Submit() {
  NOWCALLS_CHECK(!busy_);
  busy_ = true;
  bool asleep = false;
  {
    const std::lock_guard lock(mutex_);
    submitted_ = true;
    // A worker that is awake finds the job by itself: no system call.
    asleep = asleep_;
  }
  if (asleep) changed_.notify_one();
}

void WorkerThread::Nudge() {
  {
    const std::lock_guard lock(mutex_);
    nudge_ = true;
  }
  // Several sends before the loop's next poll become one call.
  uv_async_send(&async_);
}

void WorkerThread::FinishEarly() {
  {
    const std::lock_guard lock(mutex_);
    NOWCALLS_CHECK(!early_);
    // The rest of the job runs while the loop is told; Run must not report it again.
    early_ = true;
    finished_ = true;
  }
  uv_async_send(&async_);
}

void WorkerThread::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  // The current call ends first; a job that was not begun never begins.
  changed_.notify_one();
  thread_.join();
  uv_close(reinterpret_cast<uv_handle_t*>(&async_),
           [](uv_handle_t* handle) { static_cast<WorkerThread*>(handle->data)->closed_ = true; });
}

void WorkerThread::Run(int64_t wait_ms) {
  const auto has_news = [this] { return submitted_ || stop_; };
  std::unique_lock lock(mutex_);
  while (true) {
    // 1. Sleep until a job, the end, or the wake-up that the last call asked for.
    asleep_ = true;
    if (wait_ms == kUntilSubmit) {
      changed_.wait(lock, has_news);
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(wait_ms), has_news);
    }
    asleep_ = false;
    // The end comes before a job.
    if (stop_) return;
    const bool job = std::exchange(submitted_, false);
    // 2. Work without the mutex, so that Submit never waits.
    lock.unlock();
    wait_ms = work_(job);
    lock.lock();
    // 3. Report a job that FinishEarly has not reported.
    if (!job || std::exchange(early_, false)) continue;
    finished_ = true;
    uv_async_send(&async_);
  }
}

void WorkerThread::Collect() {
  bool finished = false;
  bool nudge = false;
  {
    const std::lock_guard lock(mutex_);
    finished = std::exchange(finished_, false);
    nudge = std::exchange(nudge_, false);
  }
  if (nudge) nudged_();
  if (!finished) return;
  // Free before `done`, which may submit the next job.
  busy_ = false;
  done_();
}

}  // namespace nowcalls::server
