// Identity: which cluster a data directory belongs to, and under which name.
//
// Thread: one at a time. The file DATA_DIR/cluster.json, for people to read, too.
#ifndef NOWCALLS_MEMBER_IDENTITY_H_
#define NOWCALLS_MEMBER_IDENTITY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "cluster/claimed_log.h"
#include "nowcalls/status.h"

namespace nowcalls::member {

inline constexpr char kIdentityFile[] = "cluster.json";

struct Identity {
  std::string member{};  // 8 digits of base 16, drawn once for a directory.
  std::string cluster;   // Lineage::id.
  // False: this member may have begun that cluster, or not.
  bool joined = false;

  bool operator==(const Identity&) const = default;
};

// 32 digits of base 16 that nobody else draws.
std::string DrawId();

// nullopt: the directory is of no cluster. kCorruption: the file is something else. kIoError.
Result<std::optional<Identity>> ReadIdentity(const std::string& data_dir);
// Durable on return. kIoError.
Status WriteIdentity(const std::string& data_dir, const Identity& identity);

// The directory is of that cluster from now on; a member that has a name keeps it. Returns its
// identity. Errors of both.
Result<Identity> JoinCluster(const std::string& data_dir, const std::string& cluster, bool joined);

// How a directory takes part in what etcd has.
enum class Part {
  kBegin,  // There is no cluster: this member may begin one behind its ledger.
  kGoOn,   // It is a member already.
  kEnter,  // It has no ledger that counts, and the log has all: begin with empty tables.
  kCopy,   // The same, but the log has forgotten the beginning: a copy of the ledger is needed.
};

// `applied`: the last batch of the directory's ledger; 0: none, or an empty one. kCorruption: the
// ledger is not of this cluster, or etcd has lost something; the message says how to decide.
Result<Part> DecidePart(const std::optional<Identity>& identity, uint64_t applied,
                        const cluster::LogView& view, const std::string& prefix);

}  // namespace nowcalls::member

#endif  // NOWCALLS_MEMBER_IDENTITY_H_
