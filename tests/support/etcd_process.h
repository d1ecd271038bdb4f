// EtcdProcess: a real etcd of one node on the loopback, whose data is in memory.
//
// Thread: that of Process. It answers when the constructor returns.
#ifndef NOWCALLS_SUPPORT_ETCD_PROCESS_H_
#define NOWCALLS_SUPPORT_ETCD_PROCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/host_port.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {

class EtcdProcess {
 public:
  // `arguments`: more of etcd's own. `scheme`: of its clients. Throws std::runtime_error when it
  // does not start.
  explicit EtcdProcess(std::vector<std::string> arguments = {}, std::string scheme = "http");

  const HostPort& address() const { return address_; }
  std::string log() const { return ReadFileToString(dir_.Sub("log")); }

  void Kill();
  // With the data and the address of before. REQUIRES: Kill.
  void Start();
  void Signal(int signal) const { process_->Signal(signal); }
  // Stands still when it returns, until SIGCONT.
  void Stop() const { process_->Stop(); }

 private:
  TempDir dir_{TempDir::Place::kMemory};
  const std::vector<std::string> arguments_;
  const std::string scheme_;
  HostPort address_;
  HostPort peers_;
  std::optional<Process> process_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_ETCD_PROCESS_H_
