// Roster: the cluster as this member knows it: who lives, who writes.
//
// Thread: any. It puts the same on the board, for HTTP.
#ifndef NOWCALLS_SERVER_CLUSTER_ROSTER_H_
#define NOWCALLS_SERVER_CLUSTER_ROSTER_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/records.h"
#include "member/presence.h"
#include "nowcalls/status.h"
#include "web/board.h"
#include "web/health.h"
#include "wire/cluster_messages.h"

namespace nowcalls::server {

class Roster {
 public:
  // A standby that lacks more does not take over by a handover: it reads so many in one look.
  static constexpr uint64_t kHandoverLagMax = web::kReadyLagMax;
  // Nor does one that was silent for longer: members speak once a second.
  static constexpr int64_t kHandoverSilentMsMax = 3'000;

  // `board` outlives it. `own`: what this member says of itself now; none: it is of no cluster yet.
  Roster(std::string prefix, web::Board* board,
         std::function<std::optional<cluster::MemberRecord>()> own)
      : prefix_(std::move(prefix)), board_(board), own_(std::move(own)) {}

  // The live members, this one too.
  void Hear(std::vector<member::HeardMember> members);
  // `writer`: its address; empty: nobody writes.
  void SetWriter(const std::string& cluster, const std::string& writer);

  wire::ClusterReply Describe() const;
  // kResourceExhausted: no other member could take over now, and why.
  Status MayHandOver() const;

 private:
  void Publish();

  const std::string prefix_;
  web::Board* const board_;
  const std::function<std::optional<cluster::MemberRecord>()> own_;

  mutable std::mutex mutex_;
  std::string cluster_;
  std::string writer_;
  std::vector<member::HeardMember> members_;
  int64_t heard_ms_ = 0;  // BoottimeMs of members_.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_CLUSTER_ROSTER_H_
