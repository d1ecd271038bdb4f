// The CPUs of a thread that is started late.
//
// Thread: the one that is to have them.
#ifndef NOWCALLS_BASE_PROCESS_CPUS_H_
#define NOWCALLS_BASE_PROCESS_CPUS_H_

namespace nowcalls {

// The calling thread may use the CPUs that the main thread may, and not those of the thread that
// started it, which may have been kept off some. Where the system refuses, nothing changes.
void UseCpusOfProcess();

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_PROCESS_CPUS_H_
