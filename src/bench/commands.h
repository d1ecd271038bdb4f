// nowcalls-bench from options to exit code.
//
// Thread: the program's only one.
#ifndef NOWCALLS_BENCH_COMMANDS_H_
#define NOWCALLS_BENCH_COMMANDS_H_

#include <functional>
#include <string_view>

#include "bench/load_loop.h"
#include "bench/options.h"
#include "nowcalls/status.h"

namespace nowcalls::bench {

struct Streams {
  std::function<int(std::string_view)> out;  // 0, or the errno of why it cannot be written.
  std::function<void(std::string_view)> err;
  bool err_is_terminal = false;
};

// Returns the exit code (base/exit_codes.h).
int Run(const Options& asked, const Streams& streams);

// Fill needs all its tokens, a load at least one grant.
Status Judge(const Options& options, const LoadResult& result);

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_COMMANDS_H_
