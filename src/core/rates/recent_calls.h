// RecentCalls: calls passed and blocked in about the last interval of a rule.
//
// Thread: loop; a plain value. Shows the present half of the interval and the one before. Counts
// stop at 2^32-1.
#ifndef NOWCALLS_CORE_RATES_RECENT_CALLS_H_
#define NOWCALLS_CORE_RATES_RECENT_CALLS_H_

#include <algorithm>
#include <cstdint>

namespace nowcalls::core {

class RecentCalls {
 public:
  static constexpr int64_t kMinuteMs = 60'000;

  struct Counts {
    uint32_t passed = 0;
    uint32_t blocked = 0;

    bool operator==(const Counts&) const = default;
  };

  // REQUIRES: `interval_ms` is at least 1, `calls` at least 0.
  void Pass(int64_t now_ms, int64_t interval_ms, int64_t calls) {
    Advance(now_ms, interval_ms);
    Add(calls, &present_.passed);
  }
  void Block(int64_t now_ms, int64_t interval_ms, int64_t calls) {
    Advance(now_ms, interval_ms);
    Add(calls, &present_.blocked);
  }

  Counts At(int64_t now_ms, int64_t interval_ms) const {
    RecentCalls then = *this;
    then.Advance(now_ms, interval_ms);
    Counts both = then.before_;
    Add(then.present_.passed, &both.passed);
    Add(then.present_.blocked, &both.blocked);
    return both;
  }

 private:
  static void Add(int64_t calls, uint32_t* count) {
    *count = static_cast<uint32_t>(std::min<int64_t>(*count + calls, UINT32_MAX));
  }

  void Advance(int64_t now_ms, int64_t interval_ms) {
    const int64_t half_ms = std::max<int64_t>(interval_ms / 2, 1);
    if (now_ms < begin_ms_ + half_ms) return;
    before_ = now_ms < begin_ms_ + 2 * half_ms ? present_ : Counts{};
    present_ = {};
    begin_ms_ = now_ms - now_ms % half_ms;
  }

  int64_t begin_ms_ = 0;  // Of the present half.
  Counts present_;
  Counts before_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_RECENT_CALLS_H_
