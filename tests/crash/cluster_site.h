// ClusterSite: real servers on a real etcd of three nodes, and what can happen to each of them.
//
// Thread: that of Process. Where it can, each server and each node is a host of its own, and the
// clients are another.
#ifndef NOWCALLS_CRASH_CLUSTER_SITE_H_
#define NOWCALLS_CRASH_CLUSTER_SITE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/etcd_cluster.h"
#include "support/network.h"
#include "support/server_process.h"

namespace nowcalls::crash {

class ClusterSite {
 public:
  static constexpr size_t kMembers = 3;
  static constexpr size_t kNodes = 3;

  // etcd answers when it returns, and no member runs. `member`: their program, environment and
  // arguments. Throws std::runtime_error.
  ClusterSite(const std::string& dir, const testing::ServerOptions& member);

  testing::ServerProcess& member(size_t number) { return *members_[number]; }
  std::string AddressOf(size_t member) const;
  std::string log(size_t member) const { return members_[member]->log(); }
  testing::EtcdCluster& etcd() { return etcd_; }

  bool Serves(size_t member);
  // Waits for one; nullopt: there is none.
  std::optional<size_t> AwaitWriter();
  // True: it runs, and waits for a copy of what the log has forgotten.
  bool LacksLedger(size_t member);
  // True: it follows the writer, at least after a while.
  bool AwaitFollowing(size_t member, size_t writer);
  // How often the logs of all members have `text`.
  size_t TimesLogged(const std::string& text) const;

  // What is the first batch of the log in etcd, and the last one; 0: none, or no answer.
  struct Log {
    uint64_t first = 0;
    uint64_t last = 0;
  };
  Log LookAtLog() const;
  // The clusters that the members' directories name.
  std::vector<std::string> Lineages() const;

  // False: there are no hosts, and Part does nothing.
  bool can_part() const { return network_ != nullptr; }
  void PartFromEtcd(size_t member);
  void PartFromClients(size_t member);
  // From all others.
  void PartNode(size_t node);
  // From the other nodes only.
  void SplitNode(size_t node);
  void Heal();

 private:
  static size_t HostOfNode(size_t node) { return 1 + node; }
  static size_t HostOfMember(size_t member) { return 1 + kNodes + member; }

  const std::unique_ptr<testing::Network> network_;
  testing::EtcdCluster etcd_;
  std::vector<std::unique_ptr<testing::ServerProcess>> members_;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_CLUSTER_SITE_H_
