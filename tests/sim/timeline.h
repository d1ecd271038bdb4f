// Timeline: the simulated time, and what will happen in it.
//
// Thread: one at a time. Times are microseconds since the world began. Nothing happens but events,
// one after the other, each at its moment; those of one moment in the order in which they were
// added. So a run is a function of what was added, and no event sees another one half done.
#ifndef NOWCALLS_SIM_TIMELINE_H_
#define NOWCALLS_SIM_TIMELINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

namespace nowcalls::sim {

inline constexpr int64_t kMs = 1'000;
inline constexpr int64_t kSecond = 1'000'000;

class Timeline {
 public:
  int64_t now_us() const { return now_us_; }
  int64_t now_ms() const { return now_us_ / kMs; }

  // A moment that has passed already is now.
  void At(int64_t at_us, std::function<void()> event);
  void After(int64_t delay_us, std::function<void()> event) {
    At(now_us_ + delay_us, std::move(event));
  }

  // Until that moment, which is now then. `stop` ends it early.
  void RunUntil(int64_t at_us, const std::function<bool()>& stop);

 private:
  int64_t now_us_ = 0;
  uint64_t added_ = 0;
  std::map<std::pair<int64_t, uint64_t>, std::function<void()>> events_;
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_TIMELINE_H_
