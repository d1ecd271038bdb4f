// WorkerThread: a thread beside the loop that works on one job at a time.
//
// Thread: every member is called on the loop thread. The loop puts a job into a place of its own
// and calls Submit; `work` runs on the worker; then `done` runs on the loop. The place belongs to
// the worker between the two, so it needs no lock. One slot and no queue: what the loop has not
// submitted yet it can still add to.
#ifndef NOWCALLS_SERVER_WORKER_THREAD_H_
#define NOWCALLS_SERVER_WORKER_THREAD_H_

#include <uv.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace nowcalls::server {

class WorkerThread {
 public:
  static constexpr int64_t kUntilSubmit = -1;

  // Called with true for a job, and with false when the wake-up that the last call asked for has
  // come first. Returns after how many milliseconds to be called again without a job; kUntilSubmit
  // sleeps until there is one.
  using Work = std::function<int64_t(bool job)>;
  using Done = std::function<void()>;

  // `name` shows in ps and debuggers; at most 15 characters. `first_ms`: when to be called first,
  // if there is no job before, as `work` says of later calls.
  WorkerThread(uv_loop_t* loop, const std::string& name, Work work, Done done,
               int64_t first_ms = kUntilSubmit);

  // REQUIRES: Stop was called and the loop ran once since.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // REQUIRES: !busy().
  void Submit();
  // From Submit until just before `done`.
  bool busy() const { return busy_; }

  // Ends the thread after the call it is in, and closes the handle; `done` is not called any more.
  void Stop();

 private:
  void Run(int64_t wait_ms);
  void OnFinished();

  const Work work_;
  const Done done_;
  uv_async_t async_{};
  bool busy_ = false;    // Loop thread.
  bool closed_ = false;  // Loop thread.

  std::mutex mutex_;
  std::condition_variable changed_;
  bool submitted_ = false;  // Guarded by mutex_, as are the next two.
  bool finished_ = false;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_WORKER_THREAD_H_
