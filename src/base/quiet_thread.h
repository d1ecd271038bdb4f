// Threads of a library, which take no signals of its program.
//
// Thread: any.
#ifndef NOWCALLS_BASE_QUIET_THREAD_H_
#define NOWCALLS_BASE_QUIET_THREAD_H_

#include <csignal>
#include <functional>
#include <thread>

#include "nowcalls/status.h"

namespace nowcalls {

// Threads started meanwhile take only signals of their own faults and of profilers.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// kUnavailable: the system gives no thread.
Result<std::thread> StartQuietThread(std::function<void()> work);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_QUIET_THREAD_H_
