// Alarm: wakes a loop at a nanosecond instead of libuv's millisecond.
//
// Thread: the loop's. A schedule of 100,000 requests a second that is kept by millisecond is one of
// bursts of 100, and would measure its own bursts. But to set it and to wake costs some
// microseconds of a processor, which the other side may be in need of, so it does not ring twice
// within kApartNs.
#ifndef NOWCALLS_BENCH_ALARM_H_
#define NOWCALLS_BENCH_ALARM_H_

#include <uv.h>

#include <cstdint>
#include <functional>

#include "nowcalls/status.h"

namespace nowcalls::bench {

class Alarm {
 public:
  static constexpr int64_t kNever = INT64_MAX;
  static constexpr int64_t kApartNs = 500'000;

  Alarm() = default;
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // The loop must have ended with all handles closed before the alarm goes.
  Status Start(uv_loop_t* loop, std::function<void()> ring);
  // Rings at or after `at_ns` on MonotonicNs, but not within kApartNs of the last time, in place of
  // what was set before. When it has rung it must be set again in the same turn of the loop, be it
  // to kNever, or it goes on ringing: setting takes back the expiry, which saves the call that
  // would read it.
  void Set(int64_t at_ns);

 private:
  static constexpr int64_t kRung = INT64_MIN;  // Differs from whatever is set next.

  void OnExpired();

  int fd_ = -1;
  int64_t at_ns_ = kNever;
  int64_t again_at_ns_ = 1;  // Not before; 0 would not be a time for the system.
  uv_poll_t poll_{};
  std::function<void()> ring_;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_ALARM_H_
