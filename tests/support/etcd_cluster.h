// EtcdCluster: real etcds on the loopback that elect a leader, with their data in memory.
//
// Thread: that of Process.
#ifndef NOWCALLS_SUPPORT_ETCD_CLUSTER_H_
#define NOWCALLS_SUPPORT_ETCD_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {

class EtcdCluster {
 public:
  // They answer when it returns. Throws std::runtime_error when they do not.
  explicit EtcdCluster(size_t nodes);

  size_t count() const { return nodes_.size(); }
  // "HOST:PORT,HOST:PORT".
  std::string endpoints() const;
  void Kill(size_t node);
  // REQUIRES: Kill.
  void Start(size_t node);
  void Signal(size_t node, int signal) const { nodes_[node].process->Signal(signal); }
  // nullopt: there is none that says so.
  std::optional<size_t> Leader() const;

 private:
  struct Node {
    HostPort clients;
    HostPort peers;
    std::optional<Process> process{};
  };

  TempDir dir_{TempDir::Place::kMemory};
  std::vector<Node> nodes_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_ETCD_CLUSTER_H_
