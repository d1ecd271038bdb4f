// Records of a cluster in etcd, but for the batches: who writes, and which ledger it is.
//
// Thread: any. JSON, so that a person reads them with etcdctl.
#ifndef NOWCALLS_CLUSTER_RECORDS_H_
#define NOWCALLS_CLUSTER_RECORDS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::cluster {

// Of the key `writer`. Two claims never have the same value.
struct Claim {
  std::string nonce{};  // 32 digits, drawn for each claim.
  uint64_t term = 0;    // From 1; grows with each claim.
  std::string member;
  std::string address{};  // HOST:PORT at which clients reach the member.

  std::string ToJson() const;
  // kCorruption: `json` is no claim.
  static Result<Claim> FromJson(std::string_view json);

  bool operator==(const Claim&) const = default;
};

// Of the keys below `members/`: what a member says of itself, about once a second.
struct MemberRecord {
  std::string member;
  std::string address{};  // As in Claim.
  std::string version{};  // Of its program.
  bool leads = false;
  uint64_t applied = 0;  // The last batch in its tables,
  uint64_t synced = 0;   // and the last that a power cut there does not take.
  uint64_t lag = 0;      // Batches that the log had, as of its last look, and its tables lack.

  std::string ToJson() const;
  // kCorruption: `json` is no such record.
  static Result<MemberRecord> FromJson(std::string_view json);

  bool operator==(const MemberRecord&) const = default;
};

// Of the key `cluster`.
struct Lineage {
  std::string id{};      // 32 digits: of the cluster, and of the ledger of each member.
  uint64_t base = 0;     // The batch before the first slot that ever was.
  uint64_t term = 0;     // Of the last claim.
  std::string format{};  // The format record of each member's ledger, in digits of base 16.
  std::string secret{};  // By which members show each other who they are.

  std::string ToJson() const;
  // kCorruption: `json` is no lineage.
  static Result<Lineage> FromJson(std::string_view json);

  bool operator==(const Lineage&) const = default;
};

}  // namespace nowcalls::cluster

#endif  // NOWCALLS_CLUSTER_RECORDS_H_
