#include "base/quiet_thread.h"

#include <doctest/doctest.h>
#include <pthread.h>

namespace nowcalls {
namespace {

sigset_t MaskOfThread() {
  sigset_t mask;
  sigemptyset(&mask);
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return mask;
}

TEST_CASE("a quiet thread takes faults of its own, and no signals of the program") {
  sigset_t mask;
  Result<std::thread> thread = StartQuietThread([&] { mask = MaskOfThread(); });
  REQUIRE(thread.ok());
  thread->join();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD, SIGUSR1, SIGRTMIN}) {
    CHECK(sigismember(&mask, signal) == 1);
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGPROF}) CHECK(sigismember(&mask, signal) == 0);
  mask = MaskOfThread();
  CHECK(sigismember(&mask, SIGTERM) == 0);
}

TEST_CASE("a thread that the system does not give is an error") {
  pthread_attr_t before;
  REQUIRE(pthread_getattr_default_np(&before) == 0);
  pthread_attr_t huge = before;
  REQUIRE(pthread_attr_setstacksize(&huge, size_t{1} << 47) == 0);
  REQUIRE(pthread_setattr_default_np(&huge) == 0);
  const Status status = StartQuietThread([] {}).status();
  pthread_setattr_default_np(&before);
  CHECK(status.code() == StatusCode::kUnavailable);
  CHECK(status.message().starts_with("start a thread: "));
}

}  // namespace
}  // namespace nowcalls
