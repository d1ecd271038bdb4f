// Alarm: wakes a loop at a nanosecond, not libuv's millisecond, at most once in kApartNs.
//
// Thread: the loop's.
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

  // REQUIRES: before the destructor the loop closed all handles.
  Status Start(uv_loop_t* loop, std::function<void()> ring);
  // Rings at or after `at_ns` (MonotonicNs). After ringing set it again in the same turn, also to
  // kNever.
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
