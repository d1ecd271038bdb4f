// WorkerThread: a thread beside the loop that works on one job at a time.
//
// Thread: members are called on the loop thread unless their comment says otherwise. The loop puts
// a job into a place of its own and calls Submit; `work` runs on the worker; then `done` runs on
// the loop. The place belongs to the worker between the two, so it needs no lock.
#ifndef NOWCALLS_SERVER_WORKER_THREAD_H_
#define NOWCALLS_SERVER_WORKER_THREAD_H_

#include <pthread.h>
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

  // Runs on the worker: with true for a job, with false at a wake-up for which the last call asked.
  // Returns the milliseconds until the next wake-up; kUntilSubmit: sleep until there is a job.
  using Work = std::function<int64_t(bool job)>;
  using Done = std::function<void()>;

  // `nudged` runs on the loop after `work` has called Nudge; several nudges may become one.
  // `name` shows in ps and debuggers; at most 15 characters. `first_ms`: the first wake-up, as if
  // `work` had returned it.
  WorkerThread(uv_loop_t* loop, const std::string& name, Work work, Done done,
               int64_t first_ms = kUntilSubmit, Done nudged = {});

  // REQUIRES: Stop was called and the loop ran once since.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // REQUIRES: !busy().
  void Submit();
  // From Submit until just before `done`.
  bool busy() const { return busy_; }
  // Runs `nudged` and `done` now if they are due; otherwise the loop's next poll does.
  void Collect();
  pthread_t thread() { return thread_.native_handle(); }  // The worker's. REQUIRES: not stopped.

  // Worker: makes `nudged` run on the loop.
  void Nudge();

  // Worker, in a job: runs `done` on the loop before the job has ended; the next job waits for the
  // rest of this one. At most once in a job, which does not own its place any more.
  void FinishEarly();

  // Ends the thread after the call it is in, and closes the handle; `done` is not called any more.
  void Stop();

 private:
  void Run(int64_t wait_ms);

  const Work work_;
  const Done done_;
  const Done nudged_;
  uv_async_t async_{};
  bool busy_ = false;    // Loop thread.
  bool closed_ = false;  // Loop thread.

  std::mutex mutex_;
  std::condition_variable changed_;
  bool submitted_ = false;  // A job is, and has not begun. Guarded by mutex_, as are the next five.
  bool finished_ = false;   // A job is, and the loop has not heard of it.
  bool early_ = false;      // The job that is worked on has called FinishEarly.
  bool stop_ = false;
  bool asleep_ = false;
  bool nudge_ = false;  // Nudge was called, and nudged_ has not run.

  std::thread thread_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_WORKER_THREAD_H_
