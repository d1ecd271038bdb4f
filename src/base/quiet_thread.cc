#include "base/quiet_thread.h"

#include <string>
#include <system_error>
#include <utility>

namespace nowcalls {

SignalsBlocked::SignalsBlocked() {
  sigset_t blocked;
  sigfillset(&blocked);
  // A signal that the program blocks for signalfd or sigwait would end the process on a thread that
  // it does not know. A thread's own faults must end the process where they happen; SIGPROF is a
  // profiler's.
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
    sigdelset(&blocked, own);
  }
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

Result<std::thread> StartQuietThread(std::function<void()> work) {
  // A thread inherits the mask of the thread that starts it.
  const SignalsBlocked blocked;
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& error) {
    return Status::Unavailable(std::string("start a thread: ") + error.what());
  }
}

}  // namespace nowcalls
