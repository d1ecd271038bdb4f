// WorkerThread: a thread beside the loop that works on one job at a time, in the order in which
// they were submitted.
//
// Thread: every member is called on the loop thread. The loop puts a job into a place of its own
// and calls Submit; `work` runs on the worker; then `done` runs on the loop. The place belongs to
// the worker between the two, so it needs no lock; unless TakeBack says that work has not begun.
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

  // Called with true for a job, and with false when the wake-up that the last call asked for has
  // come first. Returns after how many milliseconds to be called again without a job; kUntilSubmit
  // sleeps until there is one.
  using Work = std::function<int64_t(bool job)>;
  using Done = std::function<void()>;

  // `nudged` runs on the loop after `work` has called Nudge; several nudges may become one.
  // `name` shows in ps and debuggers; at most 15 characters. `first_ms`: when to be called first,
  // if there is no job before, as `work` says of later calls.
  WorkerThread(uv_loop_t* loop, const std::string& name, Work work, Done done,
               int64_t first_ms = kUntilSubmit, Done nudged = {});

  // REQUIRES: Stop was called and the loop ran once since.
  ~WorkerThread();
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  void Submit();
  // True: the job that was submitted last has not been begun, and belongs to the loop again.
  bool TakeBack();
  // Jobs from Submit until just before `done`.
  int jobs() const { return jobs_; }
  bool busy() const { return jobs_ > 0; }
  pthread_t thread() { return thread_.native_handle(); }  // The worker's. REQUIRES: not stopped.

  // Worker: something has changed that the loop should look at.
  void Nudge();

  // Worker, in a job: it has come to what `done` tells of; what is left of it only the next job has
  // to wait for. At most once in a job, which has its place no longer.
  void FinishEarly();

  // Ends the thread after the call it is in, and closes the handle; `done` is not called any more.
  void Stop();

 private:
  void Run(int64_t wait_ms);
  void OnFinished();

  const Work work_;
  const Done done_;
  const Done nudged_;
  uv_async_t async_{};
  int jobs_ = 0;         // Loop thread.
  bool closed_ = false;  // Loop thread.

  std::mutex mutex_;
  std::condition_variable changed_;
  int submitted_ = 0;   // And not begun. Guarded by mutex_, as are the next five.
  int finished_ = 0;    // And not told to the loop.
  bool early_ = false;  // The job that is worked on is among the finished.
  bool stop_ = false;
  bool asleep_ = false;
  bool nudge_ = false;  // And nudged_ has not run.

  std::thread thread_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_WORKER_THREAD_H_
