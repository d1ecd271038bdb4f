// What nowcalls-bench does, from its options to its exit code.
//
// Thread: the program's only one.
#ifndef NOWCALLS_BENCH_COMMANDS_H_
#define NOWCALLS_BENCH_COMMANDS_H_

#include <functional>
#include <string_view>

#include "bench/driver.h"
#include "bench/options.h"
#include "nowcalls/status.h"

namespace nowcalls::bench {

struct Streams {
  std::function<int(std::string_view)> out;  // 0, or the errno of why it cannot be written.
  std::function<void(std::string_view)> err;
  bool err_is_terminal = false;
};

// Returns the exit code (base/exit_codes.h).
int Run(const Options& options, const Streams& streams);

// Whether a run whose figures have been shown did what was asked for. Refusals are what a level is
// for, but fill needs all its tokens, and a load at least one.
Status Judge(const Options& options, const DriverResult& result);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_COMMANDS_H_
