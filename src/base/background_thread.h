// For background threads.
//
// Thread: each call is about the calling thread.
#ifndef NOWCALLS_BASE_BACKGROUND_THREAD_H_
#define NOWCALLS_BASE_BACKGROUND_THREAD_H_

namespace nowcalls {

// Allows the main thread's CPUs, not the starting thread's. If refused, nothing changes.
void UseCpusOfProcess();

// Adds 5 to the main thread's nice. A thread with less priority keeps it.
void StepBack();

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_BACKGROUND_THREAD_H_
