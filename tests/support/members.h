// Members: real servers that share the log of a real etcd, or of several.
//
// Thread: one at a time.
#ifndef NOWCALLS_SUPPORT_MEMBERS_H_
#define NOWCALLS_SUPPORT_MEMBERS_H_

#include <cstddef>
#include <memory>
#include <optional>
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
  // On etcds of the caller, "HOST:PORT,HOST:PORT".
  Members(size_t count, const std::string& endpoints, const std::vector<std::string>& arguments);

  // REQUIRES: it has one of its own.
  EtcdProcess& etcd() { return *etcd_; }
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
  void Add(size_t count, const std::string& endpoints, const std::vector<std::string>& arguments);

  TempDir dir_;
  std::optional<EtcdProcess> etcd_;
  std::vector<uint16_t> ports_;
  std::vector<std::unique_ptr<ServerProcess>> members_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_MEMBERS_H_
