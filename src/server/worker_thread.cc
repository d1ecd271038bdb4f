#include "server/worker_thread.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "base/check.h"

namespace nowcalls::server {

WorkerThread::WorkerThread(uv_loop_t* loop, const std::string& name, Work work, Done done,
                           int64_t first_ms)
    : work_(std::move(work)), done_(std::move(done)) {
  async_.data = this;
  NOWCALLS_CHECK(uv_async_init(loop, &async_, [](uv_async_t* async) {
                   static_cast<WorkerThread*>(async->data)->OnFinished();
                 }) == 0);
  thread_ = std::thread([this, first_ms] { Run(first_ms); });
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

WorkerThread::~WorkerThread() { NOWCALLS_CHECK(closed_); }

void WorkerThread::Submit() {
  NOWCALLS_CHECK(!busy_);
  busy_ = true;
  {
    const std::lock_guard lock(mutex_);
    submitted_ = true;
  }
  changed_.notify_one();
}

void WorkerThread::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
  uv_close(reinterpret_cast<uv_handle_t*>(&async_),
           [](uv_handle_t* handle) { static_cast<WorkerThread*>(handle->data)->closed_ = true; });
}

void WorkerThread::Run(int64_t wait_ms) {
  const auto has_news = [this] { return submitted_ || stop_; };
  std::unique_lock lock(mutex_);
  while (true) {
    if (wait_ms == kUntilSubmit) {
      changed_.wait(lock, has_news);
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(wait_ms), has_news);
    }
    if (stop_) return;
    const bool job = std::exchange(submitted_, false);
    lock.unlock();
    wait_ms = work_(job);
    lock.lock();
    if (!job) continue;
    finished_ = true;
    uv_async_send(&async_);
  }
}

void WorkerThread::OnFinished() {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(finished_, false)) return;
  }
  busy_ = false;
  done_();
}

}  // namespace nowcalls::server
