#include "sim/sim_standby.h"

#include <algorithm>

#include "base/check.h"

namespace nowcalls::sim {

void SimStandby::Begin() {
  standby_.emplace(&log_, store_);
  FollowSoon();
}

void SimStandby::TakeOver(uint64_t term) {
  NOWCALLS_CHECK(standby_->TakeOver(term).ok());
  FollowSoon();
}

void SimStandby::End() {
  standby_.reset();
  ++plans_;
}

// A takeover does not dawdle.
void SimStandby::FollowSoon() {
  const int64_t most_ms =
      recovers() ? std::min<int64_t>(5, plan_->follow_ms_max) : plan_->follow_ms_max;
  timeline_->After(prng_.Between(1, most_ms * kMs), [this, plan = ++plans_] {
    if (plan == plans_) Follow();
  });
}

void SimStandby::Follow() {
  constexpr int64_t kBatchesMax = 8;
  constexpr int64_t kBatchesToRecoverMax = 500;
  const uint64_t last = store_->last();
  uint64_t hidden = recovers() && misses_last_ ? 1 : 0;
  if (prng_.ChancePerMillion(plan_->stale_read_chance)) {
    faults_->Count(Fault::kStaleRead);
    hidden = static_cast<uint64_t>(prng_.Between(1, 4));
  }
  log_.Hide(hidden == 0 ? UINT64_MAX : last - std::min(last, hidden));
  const int64_t most = recovers() ? kBatchesToRecoverMax : kBatchesMax;
  const Result<bool> more = standby_->Follow(static_cast<size_t>(prng_.Between(1, most)));
  if (!more.ok()) return watch_.refused(more.status());
  if (*more || stands_by()) return FollowSoon();
  watch_.caught_up();
}

}  // namespace nowcalls::sim
