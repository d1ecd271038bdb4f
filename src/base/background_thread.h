// What a thread does at its beginning that works beside those that serve.
//
// Thread: the one that it is about.
#ifndef NOWCALLS_BASE_BACKGROUND_THREAD_H_
#define NOWCALLS_BASE_BACKGROUND_THREAD_H_

namespace nowcalls {

// The calling thread may use the CPUs that the main thread may, and not those of the thread that
// started it, which may have been kept off some. Where the system refuses, nothing changes.
void UseCpusOfProcess();

// The calling thread gets a lower priority than the main thread has, by 5 of nice: beside a thread
// like that on the same CPU a quarter of the time, and it lets that run as soon as it wakes. What
// has a lower one already keeps it.
void StepBack();

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_BACKGROUND_THREAD_H_
