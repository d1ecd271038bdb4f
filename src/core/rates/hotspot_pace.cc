#include "core/rates/hotspot_pace.h"

#include <algorithm>
#include <cmath>

namespace nowcalls::core {

int64_t TokenBucket::TokensAt(int64_t now_ms, const Pace& pace) const {
  const int64_t most = pace.limit + pace.burst;
  if (!used_) return most;
  if (!IsRefillDue(now_ms, pace)) return std::min(tokens_, most);  // The rule may have got less.
  // In doubles: after a long pause time x limit does not fit an i64.
  const double fresh =
      std::floor(static_cast<double>(now_ms - filled_ms_) * static_cast<double>(pace.limit) /
                 static_cast<double>(pace.duration_ms));
  if (fresh >= static_cast<double>(most - tokens_)) return most;
  return tokens_ + static_cast<int64_t>(fresh);
}

PaceAnswer TokenBucket::Ask(int64_t now_ms, const Pace& pace, int64_t count) const {
  if (pace.limit <= 0) return {};
  const int64_t left = TokensAt(now_ms, pace) - count;
  return {.passes = left >= 0, .remaining = left};
}

void TokenBucket::Take(int64_t now_ms, const Pace& pace, int64_t count) {
  tokens_ = TokensAt(now_ms, pace) - count;
  if (IsRefillDue(now_ms, pace)) filled_ms_ = now_ms;
  used_ = true;
}

int64_t TokenBucket::IdleAfterMs(const Pace& pace) {
  if (pace.limit <= 0) return pace.duration_ms;
  // An empty bucket is full after 1 + burst / limit durations, rounded up, and not before one has
  // passed. The bound keeps the product within an i64.
  const int64_t durations = 3 + pace.burst / pace.limit;
  constexpr int64_t kLongMs = int64_t{1} << 40;
  return durations > kLongMs / pace.duration_ms ? kLongMs : durations * pace.duration_ms;
}

double LeakyBucket::DelayOf(int64_t now_ms, const Pace& pace, int64_t count) const {
  const auto duration_ms = static_cast<double>(pace.duration_ms);
  // The moment of the last call. A pause counts as one duration at most, so it saves up at most
  // `limit` calls.
  const double last =
      used_ ? std::max(static_cast<double>(taken_ms_ - now_ms) + ahead_ms_, -duration_ms)
            : -duration_ms;
  return last + static_cast<double>(count) * duration_ms / pace.exact_limit;
}

PaceAnswer LeakyBucket::Ask(int64_t now_ms, const Pace& pace, int64_t count) const {
  if (pace.exact_limit <= 0) return {};
  const double delay = DelayOf(now_ms, pace, count);
  // The clock has milliseconds: a moment within the present one has come. sentinel-golang rounds
  // moments; here only the wait that is answered is rounded, down.
  if (delay < 1) return {.passes = true};
  if (delay >= static_cast<double>(pace.queueing_ms)) return {};
  return {.passes = true, .wait_ms = static_cast<int64_t>(delay)};
}

void LeakyBucket::Take(int64_t now_ms, const Pace& pace, int64_t count) {
  // Fractions of a millisecond are kept, so spaces do not drift.
  ahead_ms_ = std::max(DelayOf(now_ms, pace, count), 0.0);
  taken_ms_ = now_ms;
  used_ = true;
}

}  // namespace nowcalls::core
