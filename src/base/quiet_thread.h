// Threads of a library, which leave the signals of the program to the program's own threads.
//
// Thread: any.
#ifndef NOWCALLS_BASE_QUIET_THREAD_H_
#define NOWCALLS_BASE_QUIET_THREAD_H_

#include <csignal>
#include <functional>
#include <thread>

#include "nowcalls/status.h"

namespace nowcalls {

// While it lives, the threads that its thread starts take no signals but those of their own faults
// and of profilers. Otherwise a signal that the program has blocked, to take it by signalfd or
// sigwait, ends the process on a thread that the program does not know.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// Starts a thread that takes no signals. kUnavailable: the system gives no thread.
Result<std::thread> StartQuietThread(std::function<void()> work);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_QUIET_THREAD_H_
