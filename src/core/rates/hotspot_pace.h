// TokenBucket and LeakyBucket: calls a second of one value under sentinel-golang's hotspot rules.
//
// Thread: loop; plain values. Semantics: its rejectTrafficShapingController and
// throttlingTrafficShapingController. Unused for IdleAfterMs, a bucket is as new.
#ifndef NOWCALLS_CORE_RATES_HOTSPOT_PACE_H_
#define NOWCALLS_CORE_RATES_HOTSPOT_PACE_H_

#include <cstdint>

namespace nowcalls::core {

struct PaceAnswer {
  bool passes = false;
  int64_t wait_ms = 0;    // They pass, but only after this.
  int64_t remaining = 0;  // They pass at once: how many more would.
};

struct Pace {
  int64_t limit = 0;  // Whole calls in `duration_ms`.
  double exact_limit = 0;
  int64_t duration_ms = 1000;  // At least 1.
  int64_t burst = 0;           // Token bucket.
  int64_t queueing_ms = 0;     // Leaky bucket: waits are shorter than this.
};

// Holds up to limit + burst tokens, full at first. Refills `limit` a duration, at the first request
// more than a duration after the last refill.
class TokenBucket {
 public:
  PaceAnswer Ask(int64_t now_ms, const Pace& pace, int64_t count) const;
  // REQUIRES: Ask lets `count` pass at `now_ms`.
  void Take(int64_t now_ms, const Pace& pace, int64_t count);
  static int64_t IdleAfterMs(const Pace& pace);

 private:
  // After the refill due at `now_ms`.
  int64_t TokensAt(int64_t now_ms, const Pace& pace) const;
  bool IsRefillDue(int64_t now_ms, const Pace& pace) const {
    return !used_ || now_ms - filled_ms_ > pace.duration_ms;
  }

  bool used_ = false;
  int64_t filled_ms_ = 0;
  int64_t tokens_ = 0;
};

// Passes a call every duration / limit. An earlier call waits for its moment, or is refused from
// queueing_ms on. After a pause one request of up to `limit` calls passes at once.
class LeakyBucket {
 public:
  PaceAnswer Ask(int64_t now_ms, const Pace& pace, int64_t count) const;
  // REQUIRES: Ask lets `count` pass at `now_ms`, at once or later.
  void Take(int64_t now_ms, const Pace& pace, int64_t count);
  static int64_t IdleAfterMs(const Pace& pace) { return pace.duration_ms + pace.queueing_ms + 1; }

 private:
  // Milliseconds to the moment of the last of `count` calls; negative: past.
  double DelayOf(int64_t now_ms, const Pace& pace, int64_t count) const;

  bool used_ = false;
  int64_t taken_ms_ = 0;
  double ahead_ms_ = 0;  // The moment of the last call, after taken_ms_.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_HOTSPOT_PACE_H_
