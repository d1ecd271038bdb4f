#include "sim/timeline.h"

#include <algorithm>

namespace nowcalls::sim {

void Timeline::At(int64_t at_us, std::function<void()> event) {
  events_.emplace(std::pair(std::max(at_us, now_us_), ++added_), std::move(event));
}

void Timeline::RunUntil(int64_t at_us, const std::function<bool()>& stop) {
  while (!events_.empty() && events_.begin()->first.first <= at_us) {
    if (stop()) return;
    auto first = events_.extract(events_.begin());
    now_us_ = first.key().first;
    first.mapped()();
  }
  now_us_ = std::max(now_us_, at_us);
}

}  // namespace nowcalls::sim
