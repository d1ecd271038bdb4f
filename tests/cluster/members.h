// Members: real servers that share the log of a real etcd.
//
// Thread: one at a time.
#ifndef NOWCALLS_CLUSTER_MEMBERS_H_
#define NOWCALLS_CLUSTER_MEMBERS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "support/etcd_process.h"
#include "support/rpc_client.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {

class Members {
 public:
  // So many, none of which runs yet. `arguments`: more of each.
  explicit Members(size_t count, const std::vector<std::string>& arguments = {});

  EtcdProcess& etcd() { return etcd_; }
  ServerProcess& member(size_t number) { return *members_[number]; }
  size_t count() const { return members_.size(); }
  std::string address(size_t number) const;  // Also of one that stands by.

  // The first is the writer when it returns.
  void StartAll();
  // The member that serves, other than `other`; waits for it. Throws std::runtime_error.
  size_t AwaitWriter(size_t other = SIZE_MAX);
  bool Serves(size_t number);
  RpcClient Connect(size_t number, const std::string& client_id);
  // What all have written.
  std::string Logs();

 private:
  TempDir dir_;
  EtcdProcess etcd_;
  std::vector<uint16_t> ports_;
  std::vector<std::unique_ptr<ServerProcess>> members_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_CLUSTER_MEMBERS_H_
