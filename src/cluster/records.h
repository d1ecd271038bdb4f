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
  std::string address;  // HOST:PORT at which clients reach the member.

  std::string ToJson() const;
  // kCorruption: `json` is no claim.
  static Result<Claim> FromJson(std::string_view json);

  bool operator==(const Claim&) const = default;
};

// Of the key `cluster`.
struct Lineage {
  std::string id;     // 32 digits: of the cluster, and of the ledger of each member.
  uint64_t base = 0;  // The batch before the first slot that ever was.
  uint64_t term = 0;  // Of the last claim.

  std::string ToJson() const;
  // kCorruption: `json` is no lineage.
  static Result<Lineage> FromJson(std::string_view json);

  bool operator==(const Lineage&) const = default;
};

}  // namespace nowcalls::cluster

#endif  // NOWCALLS_CLUSTER_RECORDS_H_
