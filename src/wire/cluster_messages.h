// Answers of `cluster`: the members, as the writer has heard of them.
//
// Thread: any. Conventions of wire/rows.h. A request for it, and one for a handover, has no
// parameters.
#ifndef NOWCALLS_WIRE_CLUSTER_MESSAGES_H_
#define NOWCALLS_WIRE_CLUSTER_MESSAGES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/status.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire {

// As the member said of itself, about once a second.
struct ClusterMember {
  std::string member;
  std::string address;     // HOST:PORT for clients.
  std::string version{};   // Of its program.
  bool leads = false;      // It is the writer.
  uint64_t applied = 0;    // The last batch in its tables,
  uint64_t synced = 0;     // and the last that a power cut there does not take.
  uint64_t lag = 0;        // Batches that the log had and its tables lacked.
  uint64_t silent_ms = 0;  // Since it was heard last.

  bool operator==(const ClusterMember&) const = default;
};

struct ClusterReply {
  std::string cluster;  // Its id.
  std::string prefix;   // Of its keys in etcd.
  uint64_t term = 0;
  std::string writer;       // HOST:PORT; empty: nobody writes.
  uint64_t last_batch = 0;  // In the tables of the member that answers.
  uint64_t log_bytes = 0;   // Of the log in etcd, roughly.
  uint64_t log_bytes_max = 0;
  std::vector<ClusterMember> members{};  // Those that live, by name.

  bool operator==(const ClusterReply&) const = default;
};

void EncodeCluster(uint32_t msgid, const ClusterReply& reply, OutputBuffer* out);
// kCorruption: not such an answer.
Result<ClusterReply> DecodeClusterReply(std::string_view result);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_CLUSTER_MESSAGES_H_
