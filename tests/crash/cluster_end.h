// How the time of a writer in a cluster ends.
//
// Thread: that of ClusterSite.
#ifndef NOWCALLS_CRASH_CLUSTER_END_H_
#define NOWCALLS_CRASH_CLUSTER_END_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.h"
#include "crash/cluster_site.h"

namespace nowcalls::crash {

enum class ClusterEnd {
  kKill,            // kill -9.
  kHandOver,        // SIGTERM.
  kStop,            // SIGSTOP, and SIGCONT with its clients still there, mostly behind a takeover.
  kEtcdLeader,      // kill -9 of etcd's leader, then of the writer.
  kBoth,            // At once.
  kEtcdAway,        // All of etcd stands still for longer than a lease.
  kCutFromEtcd,     // Packets between the writer and etcd are lost.
  kCutFromClients,  // Those between the writer and its clients.
  kNodeAway,        // Those of one node of etcd.
  kSplit,           // Those between etcd's leader and the other nodes.
  kNoSpace,         // etcd takes no puts.
};

std::string NameOf(ClusterEnd end);

// All in random order, but for those that the site cannot do. `only`: the name of the only one;
// empty: all.
std::vector<ClusterEnd> ShuffledEnds(const ClusterSite& site, const std::string& only, Prng* prng);

struct EndDone {
  std::optional<size_t> node_down;  // A node of etcd that was killed.
  std::string wrong;                // What must not be; empty: nothing.
};

// Does it to the writer, and heals the network. The writer may go on, if it is not killed.
EndDone DoEnd(ClusterEnd end, size_t writer, ClusterSite* site, Prng* prng);

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_CLUSTER_END_H_
