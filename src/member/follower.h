// Follower: a member that does not write: follows the log, and claims it when nobody writes.
//
// Thread: that of the tables. Each call asks etcd a few times and returns.
#ifndef NOWCALLS_MEMBER_FOLLOWER_H_
#define NOWCALLS_MEMBER_FOLLOWER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/claimed_log.h"
#include "cluster/etcd.h"
#include "cluster/records.h"
#include "ledger/clock.h"
#include "member/etcd_log.h"
#include "member/identity.h"
#include "node/standby.h"
#include "nowcalls/status.h"
#include "store/tables.h"

namespace nowcalls::member {

struct FollowerOptions {
  std::string data_dir;  // Of the identity.
  std::string prefix;    // For messages.
  std::string address;   // Claim::address.
  std::string format;    // Lineage::format, if this member begins the cluster.
  int64_t seal_ms = 0;   // Ledger time of the tables' last batch; 0: none.
  // BoottimeMs until which others go first: this member has handed over. No longer than until
  // another has written.
  int64_t holds_off_until_ms = 0;
};

// A claim, with its lease.
struct FreshClaim {
  cluster::HeldClaim held;
  cluster::LeaseTime lease;
  int64_t asked_ms = 0;  // BoottimeMs before the lease was asked for.
  std::string why{};     // Nobody had the claim, for the log.
};

class Follower {
 public:
  // Pointers outlive it. `identity`: nullopt until the directory is of a cluster.
  Follower(cluster::Etcd* etcd, EtcdLog* log, store::Tables* tables, FollowerOptions options,
           std::optional<Identity> identity);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // Reads what the log has, a bounded part; claims if nobody writes and there is no more.
  // kCorruption: as DecidePart. kFailedPrecondition: the log has forgotten what the tables lack, or
  // they must be made anew (needs()). Others than these two and kIoError: etcd's; try again.
  Result<std::optional<FreshClaim>> Step();

  // Behind a claim: reads on. kDone: this member leads, and Recover follows. kBehind: call again.
  // kDeposed: another has the claim. Errors as of Step.
  Result<cluster::Fate> Settle();

  // Why kFailedPrecondition: kEnter or kCopy.
  Part needs() const { return needs_; }

  const std::optional<Identity>& identity() const { return identity_; }
  const ledger::ObservedTime& observed() const { return observed_; }
  // nullopt: nobody writes, as of the last Step.
  const std::optional<cluster::Claim>& writer() const { return log_->view().writer; }
  // Slots that the log has and the tables lack, as of the last Step.
  uint64_t lag() const;

 private:
  Result<bool> Follow();
  Status Admit(const cluster::LogView& view);
  Status Join(const std::string& cluster_id, bool joined);
  std::string WhyNobodyWrites() const;
  Result<std::optional<FreshClaim>> Claim();

  cluster::Etcd* const etcd_;
  EtcdLog* const log_;
  store::Tables* const tables_;
  const FollowerOptions options_;
  std::optional<Identity> identity_;
  node::Standby standby_;
  Part needs_ = Part::kGoOn;
  int64_t seal_ms_;  // Ledger time of the tables' last batch.
  bool saw_writer_ = false;
  std::string last_writer_{};  // Its address, as of the last one that was seen; empty: none was.
  int64_t holds_off_until_ms_;
  ledger::ObservedTime observed_;
  std::optional<FreshClaim> claim_;  // While it settles.
};

}  // namespace nowcalls::member

#endif  // NOWCALLS_MEMBER_FOLLOWER_H_
