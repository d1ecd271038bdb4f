// WorkerThread: a thread beside the loop, for one job at a time.
//
// Thread: loop, unless a comment says otherwise. From Submit to `done` the job's data is the
// worker's: no lock.
#ifndef NOWCALLS_SERVER_THREADS_WORKER_THREAD_H_
#define NOWCALLS_SERVER_THREADS_WORKER_THREAD_H_

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

  // On the worker, with true for a job, false for a wake-up. Returns ms until the next wake-up, or
  // kUntilSubmit.
  using Work = std::function<int64_t(bool job)>;
  using Done = std::function<void()>;

  // `nudged`: on the loop, after Nudge; several may become one call. `name`: at most 15 characters.
  // `first_ms`: as if `work` had returned it.
  WorkerThread(uv_loop_t* loop, const std::string& name, Work work, Done done,
               int64_t first_ms = kUntilSubmit, Done nudged = {});

  // REQUIRES: Stop was called and the loop ran since.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // REQUIRES: !busy().
  void Submit();
  // From Submit until just before `done`.
  bool busy() const { return busy_; }
  // Runs `nudged` and `done` now if due, else the next poll does.
  void Collect();
  pthread_t thread() { return thread_.native_handle(); }  // The worker's. REQUIRES: not stopped.

  // On the worker.
  void Nudge();

  // On the worker, once a job: `done` runs on the loop now and takes the data back. The next job
  // waits for this one's end.
  void FinishEarly();

  // Ends the thread after its current call, without `done`, and closes the handle.
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

#endif  // NOWCALLS_SERVER_THREADS_WORKER_THREAD_H_
