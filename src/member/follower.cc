#include "member/follower.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "cluster/lease.h"

namespace nowcalls::member {
namespace {

constexpr size_t kBatchesMax = 256;  // Of a call.
constexpr int kAttempts = 3;

}  // namespace

Follower::Follower(cluster::Etcd* etcd, EtcdLog* log, store::Tables* tables,
                   FollowerOptions options, std::optional<Identity> identity)
    : etcd_(etcd),
      log_(log),
      tables_(tables),
      options_(std::move(options)),
      identity_(std::move(identity)),
      standby_(log, tables),
      seal_ms_(options_.seal_ms),
      holds_off_until_ms_(options_.holds_off_until_ms) {
  log_->SetAdmit([this](const cluster::LogView& view) { return Admit(view); });
}

Follower::~Follower() { log_->SetAdmit({}); }

uint64_t Follower::lag() const {
  const uint64_t end = log_->view().end();
  return end - std::min(end, tables_->applied());
}

Result<std::optional<FreshClaim>> Follower::Step() {
  const Result<bool> more = Follow();
  if (!more.ok()) return more.status();
  if (*more || writer() || BoottimeMs() < holds_off_until_ms_) return std::optional<FreshClaim>();
  return Claim();
}

std::string Follower::WhyNobodyWrites() const {
  const cluster::LogView& seen = log_->view();
  if (!seen.lineage) return "it begins the cluster";
  if (!seen.leader) {
    return (last_writer_.empty() ? std::string("the writer") : last_writer_) + " handed over";
  }
  return "the lease of " + seen.leader->address + " in term " + std::to_string(seen.leader->term) +
         " has ended";
}

// True: the log has more.
Result<bool> Follower::Follow() {
  Result<bool> more = standby_.Follow(kBatchesMax);
  if (!more.ok()) return more;
  seal_ms_ = std::max(seal_ms_, standby_.ledger_ms());
  // A writer that lives vouches that its last batch is of now. What a dead one left may be old.
  saw_writer_ = saw_writer_ || writer();
  if (writer()) last_writer_ = writer()->address;
  // Its own claim may still be there, if etcd did not answer when it was given back.
  if (writer() && (!identity_ || writer()->member != identity_->member)) holds_off_until_ms_ = 0;
  if (saw_writer_ && seal_ms_ > 0) observed_.Saw(standby_.term(), seal_ms_, BoottimeMs());
  return more;
}

// Before a batch of the log is applied.
Status Follower::Admit(const cluster::LogView& view) {
  const Result<Part> part = DecidePart(identity_, tables_->applied(), view, options_.prefix);
  if (!part.ok()) return part.status();
  const bool is_empty = *part == Part::kEnter;
  if (*part == Part::kCopy || (is_empty && view.lineage->format != options_.format)) {
    needs_ = *part;
    return Status::FailedPrecondition("the tables of this member must be made anew");
  }
  if (*part == Part::kBegin) return {};
  return Join(view.lineage->id, /*joined=*/true);
}

Status Follower::Join(const std::string& cluster_id, bool joined) {
  if (identity_ && identity_->cluster == cluster_id && identity_->joined == joined) return {};
  Result<Identity> now = JoinCluster(options_.data_dir, cluster_id, joined);
  if (!now.ok()) return now.status();
  identity_ = *std::move(now);
  return {};
}

Result<std::optional<FreshClaim>> Follower::Claim() {
  const cluster::LogView& seen = log_->view();
  cluster::Lineage own{.base = tables_->applied(), .format = options_.format};
  if (!seen.lineage) {
    // In writing first: should the answer get lost, this member knows the cluster as its own.
    own.id = identity_ ? identity_->cluster : DrawId();
    own.secret = DrawId();
    NOWCALLS_RETURN_IF_ERROR(Join(own.id, /*joined=*/false));
  }
  const int64_t asked_ms = BoottimeMs();
  const Result<cluster::LeaseTime> lease = etcd_->Grant(cluster::Lease::kTtlMs);
  if (!lease.ok()) return lease.status();
  const cluster::Claim claim{.nonce = DrawId(),
                             .term = (seen.lineage ? seen.lineage->term : 0) + 1,
                             .member = identity_->member,
                             .address = options_.address};
  const cluster::Txn txn = log_->txns().Claim(seen, claim, own, lease->id);
  Result<cluster::TxnReply> reply = Status::Unavailable("not asked");
  for (int i = 0; i < kAttempts && !reply.ok(); ++i) reply = etcd_->Commit(txn);
  const auto held = reply.ok() ? log_->txns().ClaimOf(*reply, claim) : std::nullopt;
  if (!held) {
    // A claim that etcd may have taken must not keep others out.
    (void)etcd_->Revoke(lease->id).ok();
    if (!reply.ok()) return reply.status();
    return std::optional<FreshClaim>();
  }
  NOWCALLS_RETURN_IF_ERROR(Join(seen.lineage ? seen.lineage->id : own.id, /*joined=*/true));
  if (const Status taken = standby_.TakeOver(claim.term); !taken.ok()) {
    return Status::Corruption(taken.message() + ": etcd has lost a part of what it had");
  }
  claim_ =
      FreshClaim{.held = *held, .lease = *lease, .asked_ms = asked_ms, .why = WhyNobodyWrites()};
  return claim_;
}

Result<cluster::Fate> Follower::Settle() {
  NOWCALLS_CHECK(claim_.has_value());
  const Result<bool> more = Follow();
  if (!more.ok()) return more.status();
  if (standby_.phase() == node::Phase::kStandby) return cluster::Fate::kDeposed;
  if (*more) return cluster::Fate::kBehind;
  const uint64_t last = tables_->applied();
  const Result<cluster::TxnReply> reply = etcd_->Commit(log_->txns().Settle(claim_->held, last));
  if (!reply.ok()) return reply.status();
  Result<cluster::Fate> fate = log_->txns().SettledOf(*reply, claim_->held, last);
  if (fate.ok() && *fate == cluster::Fate::kDone) log_->Hold(claim_->held);
  return fate;
}

}  // namespace nowcalls::member
