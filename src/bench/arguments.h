// The command line of nowcalls-bench as a struct.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_ARGUMENTS_H_
#define NOWCALLS_BENCH_ARGUMENTS_H_

#include <optional>
#include <string>

#include "bench/options.h"
#include "client/security_settings.h"

namespace nowcalls::bench {

struct ParsedArguments {
  std::optional<Options> options;  // Absent: print `out` and `err` and exit.
  int exit_code = 0;
  std::string out;  // Help or version.
  std::string err;  // What is wrong with the command line.
};

// Without --format a terminal gets a table, others JSON.
ParsedArguments ParseArguments(int argc, const char* const* argv, bool out_is_terminal,
                               const client::SecuritySettings& environment = {});

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_ARGUMENTS_H_
