// Front: a session for the threads of a program. A derived class moves its bytes.
//
// Thread: any, for all public members. One, the loop, runs callbacks. User closures are called and
// destroyed without the mutex. In a forked child all members return at once.
#ifndef NOWCALLS_LIBRARY_FRONT_H_
#define NOWCALLS_LIBRARY_FRONT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/session.h"
#include "library/fork_count.h"
#include "nowcalls/client.h"
#include "nowcalls/token_service.h"

namespace nowcalls::library {

class Front : public std::enable_shared_from_this<Front> {
 public:
  explicit Front(const ClientOptions& options);
  virtual ~Front() = default;
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  void Acquire(FlowId flow, const AcquireOptions& options, std::function<void(Acquired)> done);
  void AcquireAll(const std::vector<FlowDemand>& demands, const AcquireOptions& options,
                  std::function<void(AllAcquired)> done);
  void Request(FlowId flow, const RequestOptions& options, std::function<void(Passed)> done);
  void RequestParam(FlowId flow, const std::vector<Value>& values, const RequestOptions& options,
                    std::function<void(Passed)> done);
  Permit Adopt(TokenId token, FlowId flow, KeepMode keep);
  bool OnLoopThread() const { return loop_id_.load() == std::this_thread::get_id(); }
  // This process is a fork of the front's.
  bool inherited() const { return ForkCount() != forks_; }
  Status WaitConnected(Milliseconds timeout);
  ClientStats stats() const;
  Status Close(Milliseconds timeout);
  // For a destructor on the loop's thread.
  void EndBehindCallback();

  // The same, waiting for the answer. On the loop's thread: kBadRequest.
  Acquired AcquireAndWait(FlowId flow, const AcquireOptions& options);
  AllAcquired AcquireAllAndWait(const std::vector<FlowDemand>& demands,
                                const AcquireOptions& options);
  Passed RequestAndWait(FlowId flow, const RequestOptions& options);
  Passed RequestParamAndWait(FlowId flow, const std::vector<Value>& values,
                             const RequestOptions& options);
  Released ReleaseAndWait(const client::HeldPtr& held, CallOutcome outcome);
  Kept KeepAndWait(const client::HeldPtr& held);

  void Release(const client::HeldPtr& held, CallOutcome outcome,
               std::function<void(Released)> done);
  void Keep(const client::HeldPtr& held, std::function<void(Kept)> done);

 protected:
  using Lock = std::unique_lock<std::mutex>;
  struct Waiter {
    std::condition_variable changed;
    bool told = false;
    bool patient = false;  // It has waited for long enough to wait in its sleep.
  };

  // Starts a thread, the loop, for RunLoop until stopping(). kUnavailable: no thread.
  Status StartLoop();
  virtual void RunLoop() = 0;
  // Without blocking. Any thread, with the mutex, as the next. `waits`: WaitFor follows.
  virtual void Flush(bool waits) = 0;
  // Ends the loop's sleep.
  virtual void Wake() = 0;

  // Waits for a while or for waiter->changed. The mutex is free meanwhile.
  virtual void WaitFor(Waiter* waiter, Lock* lock) { waiter->changed.wait(*lock); }

  // The rest is for the loop, with the mutex.
  client::ClientSession* session() { return &session_; }
  bool stopping() const { return stopping_; }
  // Runs callbacks without the mutex. False: none.
  bool Deliver(Lock* lock);
  // Awake follows the sleep.
  int64_t SleepUntil(int64_t now_ms);
  void Awake() { sleeping_ = false; }
  // After Received: wakes waiting threads, and the loop if it would oversleep.
  void TellChange() {
    changed_.notify_all();
    if (sleeping_ && session_.Wakeup() < sleeps_until_ms_) Wake();
  }

  mutable std::mutex mutex_;

 private:
  // ask(done) asks a blocking call.
  template <typename T, typename Ask>
  T Await(Ask&& ask);
  std::shared_ptr<client::AcquireCall> NewAcquire(FlowId flow, const AcquireOptions& options,
                                                  std::function<void(Acquired)> done);
  std::shared_ptr<client::AcquireCall> NewAcquireAll(const std::vector<FlowDemand>& demands,
                                                     const AcquireOptions& options,
                                                     std::function<void(AllAcquired)> done);
  // `waits` as of Flush.
  void Asked(Lock* lock, bool waits = false);
  void EndLoop();
  void DeliverLast(Lock* lock);
  Permit PermitOf(const client::HeldPtr& held);
  void Run(client::ClientSession::Events events);
  // Logs exceptions.
  template <typename Callback>
  void RunCallback(const char* name, Callback&& callback);
  void Log(LogLevel level, const std::string& line) const;

  const uint32_t forks_ = ForkCount();
  const ClientOptions options_;
  client::ClientSession session_;
  std::condition_variable changed_;
  std::thread thread_;
  std::atomic<std::thread::id> loop_id_{};
  uint32_t asked_since_flush_ = 0;  // By callbacks.
  bool stopping_ = false;
  bool stopped_ = false;     // There is no loop any more.
  bool delivering_ = false;  // A thread is in DeliverLast.
  bool sleeping_ = false;
  int64_t sleeps_until_ms_ = 0;
};

}  // namespace nowcalls::library

#endif  // NOWCALLS_LIBRARY_FRONT_H_
