// Interruption: SIGINT, SIGTERM and SIGHUP as an exception, so that whatever was started is ended
// and whatever was made is removed by the destructors that do this anyway.
//
// Thread: the main one.
#ifndef NOWCALLS_BENCH_INTERRUPTION_H_
#define NOWCALLS_BENCH_INTERRUPTION_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>

namespace nowcalls::compare {

struct Interrupted {
  int signal = 0;
};

// From now on the signals end no process; the next Await throws Interrupted.
void CatchInterruptions();
void ThrowIfInterrupted();

// As PollUntil: asks `predicate` every few milliseconds until it holds or `timeout_ms` have passed.
bool Await(int64_t timeout_ms, const std::function<bool()>& predicate);
// Until the child `pid` has ended or `timeout_ms` have passed. Sleeps meanwhile: on few CPUs each
// look moves the threads that are measured from one to the other.
void AwaitEnd(pid_t pid, int64_t timeout_ms);
void Pause(int64_t ms);

// Ends the process as the signal would have done.
[[noreturn]] void EndBy(const Interrupted& interrupted);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_INTERRUPTION_H_
