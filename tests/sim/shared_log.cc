#include "sim/shared_log.h"

#include <utility>

#include "base/check.h"
#include "cluster/lease.h"

namespace nowcalls::sim {

using cluster::Claim;
using cluster::HeldClaim;
using cluster::Txn;
using cluster::TxnReply;

TxnReply SharedLog::Commit(const Txn& txn) {
  constexpr size_t kPastMax = 20;
  if (plan_->loses_writes) past_.push_back(etcd_);
  if (past_.size() > kPastMax) past_.pop_front();
  Result<TxnReply> reply = etcd_.Commit(txn);
  NOWCALLS_CHECK(reply.ok());
  if (!past_.empty() && past_.back().revision() == etcd_.revision()) past_.pop_back();
  return *std::move(reply);
}

Status SharedLog::Append(const ledger::SealedBatch& /*batch*/) {
  return Status::FailedPrecondition("members append by transactions");
}

Status SharedLog::Read(uint64_t from, const BatchSink& sink) {
  constexpr int64_t kSlotsMax = 5;
  for (;;) {
    const auto slots = txns_.SlotsOf(Commit(txns_.Read(from, kSlotsMax)), from);
    if (slots.trimmed) {
      return Status::FailedPrecondition("the log has forgotten batch " + std::to_string(from));
    }
    if (slots.batches.empty()) return {};
    for (const std::string& bytes : slots.batches) {
      const auto batch = ledger::SealedBatch::Parse(bytes);
      if (!batch.ok()) return batch.status();
      NOWCALLS_RETURN_IF_ERROR(sink(*batch));
      ++from;
    }
  }
}

// As member::EtcdLog.
bool SharedLog::OutlivesMachine() const {
  const cluster::LogView view = View();
  return view.lineage && view.end() > view.lineage->base;
}

uint64_t SharedLog::last() const { return View().end(); }

void SharedLog::Cut(uint64_t number) {
  Commit({.then = {cluster::DeleteRange(txns_.keys().Slot(number + 1), txns_.keys().slots_end())}});
}

bool SharedLog::claimed() {
  if (lease_ != 0 && timeline_->now_us() >= lease_until_us_) EndLease();
  return View().writer.has_value();
}

std::optional<HeldClaim> SharedLog::Claim(const std::string& member, const Asking& asking) {
  constexpr uint64_t kDigits = 16;
  if (!asking.stale) free_ = View();
  const cluster::LogView& seen = free_;
  const int64_t lease = etcd_.GrantLease();
  cluster::Claim claim{.term = (seen.lineage ? seen.lineage->term : 0) + 1,
                       .member = member,
                       .address = member + ":1"};
  while (claim.nonce.size() < 32) claim.nonce += "0123456789abcdef"[prng_.Below(kDigits)];
  const Txn txn = txns_.Claim(seen, claim, {.id = claim.nonce}, lease);
  if (asking.answer_lost) Commit(txn);
  auto held = txns_.ClaimOf(Commit(txn), claim);
  if (!held) {
    etcd_.EndLease(lease);
    return {};
  }
  lease_ = lease;
  lease_until_us_ = timeline_->now_us() + DrawLeaseUs();
  return held;
}

bool SharedLog::Renew(const HeldClaim& held) {
  if (!claimed() || View().writer != held.claim) return false;
  lease_until_us_ = timeline_->now_us() + DrawLeaseUs();
  return true;
}

void SharedLog::EndLease() { etcd_.EndLease(std::exchange(lease_, 0)); }

// Whoever had the claim then may have it again, for a whole lease.
bool SharedLog::LoseFrom(uint64_t number) {
  testing::FakeEtcd now = etcd_;
  for (; !past_.empty() && last() >= number; past_.pop_back()) etcd_ = past_.back();
  if (last() >= number) {
    etcd_ = std::move(now);
    return false;
  }
  past_.clear();
  ++losses_;
  const auto writer = etcd_.rows().find(txns_.keys().writer());
  lease_ = writer == etcd_.rows().end() ? 0 : writer->second.lease;
  lease_until_us_ = timeline_->now_us() + cluster::Lease::kTtlMs * kMs;
  return true;
}

// etcd has ended leases early (etcd#12528), and ends them late when its leader changes.
int64_t SharedLog::DrawLeaseUs() {
  constexpr int64_t kLateMsMax = 3'000;
  int64_t ms = cluster::Lease::kTtlMs;
  if (!healed_ && prng_.ChancePerMillion(plan_->lease_late_chance)) {
    ms += prng_.Between(0, kLateMsMax);
  }
  return ms * kMs;
}

cluster::LogView SharedLog::View() const {
  const Result<TxnReply> reply = etcd_.Commit(txns_.Look());
  NOWCALLS_CHECK(reply.ok());
  const Result<cluster::LogView> view = txns_.ViewOf(*reply);
  NOWCALLS_CHECK(view.ok());
  return *view;
}

}  // namespace nowcalls::sim
