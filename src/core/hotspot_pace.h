// TokenBucket and LeakyBucket: calls a second of one value under sentinel-golang's hotspot rules.
//
// Thread: loop; plain values. The semantics are those of its rejectTrafficShapingController and
// throttlingTrafficShapingController. Both say first what a number of calls would get, and take
// them in a second call. A bucket that has been idle for long is as good as a new one: see
// IdleAfterMs.
#ifndef NOWCALLS_CORE_HOTSPOT_PACE_H_
#define NOWCALLS_CORE_HOTSPOT_PACE_H_

#include <cstdint>

namespace nowcalls::core {

// What asking for some calls would get.
struct PaceAnswer {
  bool passes = false;
  int64_t wait_ms = 0;    // They pass, but only after this.
  int64_t remaining = 0;  // They pass at once: how many more would.
};

// What a rule allows to the value.
struct Pace {
  int64_t limit = 0;  // Whole calls in `duration_ms`.
  double exact_limit = 0;
  int64_t duration_ms = 1000;  // At least 1.
  int64_t burst = 0;           // Token bucket.
  int64_t queueing_ms = 0;     // Leaky bucket: waits are shorter than this.
};

// Holds at most limit + burst tokens. It is full at first, and gets `limit` tokens a duration;
// these are added when a request finds that more than a duration has passed since the last time.
class TokenBucket {
 public:
  PaceAnswer Ask(int64_t now_ms, const Pace& pace, int64_t count) const;
  // REQUIRES: Ask has said that `count` pass at `now_ms`.
  void Take(int64_t now_ms, const Pace& pace, int64_t count);
  // When it is full again.
  static int64_t IdleAfterMs(const Pace& pace);

 private:
  // Tokens after the refill that is due at `now_ms`.
  int64_t TokensAt(int64_t now_ms, const Pace& pace) const;
  bool IsRefillDue(int64_t now_ms, const Pace& pace) const {
    return !used_ || now_ms - filled_ms_ > pace.duration_ms;
  }

  bool used_ = false;
  int64_t filled_ms_ = 0;
  int64_t tokens_ = 0;
};

// Lets a call pass every duration / limit. Calls that come earlier wait for their moment, or are
// refused if that is too far away. After a pause one request for up to `limit` calls passes at
// once.
class LeakyBucket {
 public:
  PaceAnswer Ask(int64_t now_ms, const Pace& pace, int64_t count) const;
  // REQUIRES: Ask has said that `count` pass at `now_ms`, at once or later.
  void Take(int64_t now_ms, const Pace& pace, int64_t count);
  static int64_t IdleAfterMs(const Pace& pace) { return pace.duration_ms + pace.queueing_ms + 1; }

 private:
  // Milliseconds from `now_ms` to the moment of the last of `count` calls; negative if it is past.
  double DelayOf(int64_t now_ms, const Pace& pace, int64_t count) const;

  bool used_ = false;
  int64_t taken_ms_ = 0;
  double ahead_ms_ = 0;  // The moment of the last call, after taken_ms_.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_HOTSPOT_PACE_H_
