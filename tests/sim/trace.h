// Trace: what happened in a run, line by line, as a hash and, if wanted, as text.
//
// Thread: one at a time. Two runs of one seed have the same hash, or something in the product
// depends on more than what it was told (addresses, hash order, a clock).
#ifndef NOWCALLS_SIM_TRACE_H_
#define NOWCALLS_SIM_TRACE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/timeline.h"

namespace nowcalls::sim {

class Trace {
 public:
  Trace(const Timeline* timeline, bool keeps_lines)
      : timeline_(timeline), keeps_lines_(keeps_lines) {}

  // One line: the parts one behind the other, numbers in decimal.
  template <typename... Parts>
  void Add(const Parts&... parts) {
    line_.clear();
    (Append(parts), ...);
    Finish();
  }

  uint64_t hash() const { return hash_; }
  // "     12.345 ms  client-1: acquire flow 1 count 1". Without the time: TakeTexts.
  const std::vector<std::string>& lines() const { return lines_; }
  std::vector<std::string> TakeTexts() { return std::exchange(texts_, {}); }

 private:
  template <typename Part>
  void Append(const Part& part) {
    if constexpr (std::is_arithmetic_v<Part>) {
      line_ += std::to_string(part);
    } else {
      line_ += part;
    }
  }
  void Finish();

  const Timeline* const timeline_;
  const bool keeps_lines_;
  std::string line_;
  uint64_t hash_ = 0xcbf29ce484222325;
  std::vector<std::string> lines_;
  std::vector<std::string> texts_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_TRACE_H_
