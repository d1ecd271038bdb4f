// EtcdCluster: real etcds that elect a leader, with their data in memory.
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
#include "support/network.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {

class EtcdCluster {
 public:
  // They answer when it returns. `network`: outlives it; null: all are on the loopback. Node 0 is
  // its host `first_host`. Throws std::runtime_error when they do not answer.
  explicit EtcdCluster(size_t nodes, const Network* network = nullptr, size_t first_host = 1);

  size_t count() const { return nodes_.size(); }
  std::vector<HostPort> addresses() const;
  // "HOST:PORT,HOST:PORT".
  std::string endpoints() const;
  void Kill(size_t node);
  // REQUIRES: Kill.
  void Start(size_t node);
  void Signal(size_t node, int signal) const { nodes_[node].process->Signal(signal); }
  // nullopt: there is none that says so.
  std::optional<size_t> Leader() const;
  // As if the space of its quota were used up: puts are refused until it is off. Throws
  // std::runtime_error when no node takes it.
  void SetNoSpace(bool on) const;

 private:
  struct Node {
    HostPort clients;
    HostPort peers;
    std::vector<std::string> launcher;
    std::optional<Process> process{};
  };

  std::string Ask(size_t node, const std::string& path, const std::string& json) const;

  TempDir dir_{TempDir::Place::kMemory};
  std::vector<Node> nodes_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_ETCD_CLUSTER_H_
