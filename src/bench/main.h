// nowcalls-bench as a function.
//
// Thread: the program's only one. Owns the standard descriptors.
#ifndef NOWCALLS_BENCH_MAIN_H_
#define NOWCALLS_BENCH_MAIN_H_

namespace nowcalls::bench {

// Returns the exit code (base/exit_codes.h).
int Main(int argc, const char* const* argv);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_MAIN_H_
