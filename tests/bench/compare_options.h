// What nowcalls-compare and nowcalls-bench-report were asked to do.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_COMPARE_OPTIONS_H_
#define NOWCALLS_BENCH_COMPARE_OPTIONS_H_

#include <optional>
#include <string>
#include <vector>

#include "bench/scenario.h"

namespace nowcalls::compare {

struct CompareOptions {
  Sizes sizes;
  bool quick = false;
  bool list = false;
  bool keep_dir = false;
  std::string only;  // A regular expression for whole names. Empty: all.
  std::string json_path;
  std::string dir;  // Where the servers' directories are made.
};

struct ParsedCompareOptions {
  std::optional<CompareOptions> options;  // Absent: print `out` and `err`, end with `exit_code`.
  int exit_code = 0;
  std::string out;
  std::string err;
};

ParsedCompareOptions ParseCompareOptions(int argc, const char* const* argv);

// The scenarios whose whole name the expression matches. kInvalidArgument: there is none, or it is
// no expression.
Result<std::vector<Scenario>> Select(std::vector<Scenario> scenarios, const std::string& only);

}  // namespace nowcalls::compare

#endif  // NOWCALLS_BENCH_COMPARE_OPTIONS_H_
