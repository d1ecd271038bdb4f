// LoadSetup: what the connections of a run ask a nowcalls server.
//
// Thread: one at a time.
#ifndef NOWCALLS_BENCH_LOAD_SETUP_H_
#define NOWCALLS_BENCH_LOAD_SETUP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "bench/dialect.h"
#include "bench/options.h"
#include "nowcalls/param.h"

namespace nowcalls::bench {

struct LoadSetup {
  std::vector<Flow> flows;
  std::string name_space;
  Operation operation = Operation::kAcquire;
  // Of the rules' parameter; empty: none.
  std::vector<std::string> values{};
  size_t next_value = 0;

  // In turn. REQUIRES: some.
  Param NextValue() {
    const Param value{ParamType::kString, values[next_value]};
    if (++next_value == values.size()) next_value = 0;
    return value;
  }
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_LOAD_SETUP_H_
