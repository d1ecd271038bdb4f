#include "sim/sim_standby.h"

#include <algorithm>

#include "base/check.h"
#include "member/identity.h"

namespace nowcalls::sim {

void SimStandby::Begin(int64_t seal_ms) {
  standby_.emplace(&log_, store_);
  seal_ms_ = seal_ms;
  saw_writer_ = false;
  observed_ = {};
  FollowSoon();
}

void SimStandby::TakeOver(uint64_t term) {
  const Status taken = standby_->TakeOver(term);
  if (!taken.ok()) return watch_.refused(Status::Corruption(taken.message()));
  FollowSoon();
}

void SimStandby::End() {
  standby_.reset();
  ++plans_;
}

// A takeover does not dawdle, but it may stand still for longer than its lease.
void SimStandby::FollowSoon() {
  int64_t most_ms = recovers() ? std::min<int64_t>(5, plan_->follow_ms_max) : plan_->follow_ms_max;
  if (recovers() && prng_.ChancePerMillion(plan_->recovering_stall_chance)) {
    faults_->Count(Fault::kRecoveringStall);
    most_ms = plan_->server_stall_ms_max;
  }
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
  if (const Status admitted = Admit(); !admitted.ok()) return watch_.refused(admitted);
  const Result<bool> more = standby_->Follow(static_cast<size_t>(prng_.Between(1, most)));
  if (!more.ok()) return watch_.refused(more.status());
  Observe();
  if (*more || stands_by()) return FollowSoon();
  watch_.caught_up();
}

Status SimStandby::Admit() const {
  const cluster::LogView view = shared_->View();
  if (!view.lineage) return {};
  const member::Identity identity{.member = "sim", .cluster = view.lineage->id, .joined = true};
  const auto part = member::DecidePart(identity, store_->applied(), view, "sim");
  if (!part.ok()) return part.status();
  if (*part == member::Part::kGoOn || *part == member::Part::kEnter) return {};
  return Status::FailedPrecondition("the tables of this member must be made anew");
}

void SimStandby::Observe() {
  seal_ms_ = std::max(seal_ms_, standby_->ledger_ms());
  saw_writer_ = saw_writer_ || shared_->View().writer;
  if (saw_writer_ && seal_ms_ > 0)
    observed_.Saw(standby_->term(), seal_ms_, machine_->BoottimeMs());
}

}  // namespace nowcalls::sim
