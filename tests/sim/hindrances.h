// Hindrances: the spans of time in which the server could not do what was due.
//
// Thread: one at a time. Times are milliseconds of the timeline.
#ifndef NOWCALLS_SIM_HINDRANCES_H_
#define NOWCALLS_SIM_HINDRANCES_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace nowcalls::sim {

class Hindrances {
 public:
  // REQUIRES: calls come in the order of `from_ms`.
  void Add(int64_t from_ms, int64_t until_ms) {
    if (!spans_.empty() && spans_.back().second >= from_ms) {
      spans_.back().second = std::max(spans_.back().second, until_ms);
    } else {
      spans_.emplace_back(from_ms, until_ms);
    }
  }

  // How long the server was free in between. Negative if `until_ms` is before `from_ms`.
  int64_t FreeMs(int64_t from_ms, int64_t until_ms) const {
    int64_t free_ms = until_ms - from_ms;
    for (const auto& [began_ms, ended_ms] : spans_) {
      free_ms -= std::max<int64_t>(0, std::min(ended_ms, until_ms) - std::max(began_ms, from_ms));
    }
    return free_ms;
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> spans_;  // Apart from each other, the oldest first.
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_HINDRANCES_H_
