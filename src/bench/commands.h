// What nowcalls-bench does, from its options to its exit code.
//
// Thread: the program's only one.
#ifndef NOWCALLS_BENCH_COMMANDS_H_
#define NOWCALLS_BENCH_COMMANDS_H_

#include <functional>
#include <string_view>

#include "bench/options.h"

namespace nowcalls::bench {

struct Streams {
  std::function<bool(std::string_view)> out;  // False: it cannot be written.
  std::function<void(std::string_view)> err;
  bool err_is_terminal = false;
};

// Returns the exit code (base/exit_codes.h).
int Run(const Options& options, const Streams& streams);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_COMMANDS_H_
