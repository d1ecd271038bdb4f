// DemoStage: what the demo kills: a server with its ledger, or the writer of a cluster.
//
// Thread: one at a time. Throws std::runtime_error when a server does not start.
#ifndef NOWCALLS_CRASH_DEMO_STAGE_H_
#define NOWCALLS_CRASH_DEMO_STAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/admin.h"
#include "support/etcd_cluster.h"
#include "support/members.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::crash {

class DemoStage {
 public:
  virtual ~DemoStage() = default;

  // Returns what runs where. `arguments`: of each server.
  virtual std::string Begin(const std::vector<std::string>& arguments) = 0;
  virtual std::string address() = 0;  // Of the server that serves.
  virtual bool Runs() = 0;            // That server.
  virtual void Kill() = 0;            // -9; likewise.
  // Where nowcalls-admin finds what is left.
  virtual testing::Source Left() = 0;
  // All that was there runs again. Returns how it came about.
  virtual std::string Recover() = 0;
  // By SIGTERM. Whether all exit with 0.
  virtual bool End() = 0;
  virtual std::vector<std::string> data_dirs() = 0;
};

// In the directory of the caller.
class SingleStage final : public DemoStage {
 public:
  explicit SingleStage(const std::string& dir) : server_(dir) {}
  std::string Begin(const std::vector<std::string>& arguments) override;
  std::string address() override { return server_.address(); }
  bool Runs() override { return server_.Running(); }
  void Kill() override { server_.Kill9(); }
  testing::Source Left() override { return testing::Source::Offline(server_.data_dir()); }
  std::string Recover() override;
  bool End() override { return server_.Terminate() == 0; }
  std::vector<std::string> data_dirs() override { return {server_.data_dir()}; }

 private:
  testing::ServerProcess server_;
};

// Three servers on three etcds.
class ClusterStage final : public DemoStage {
 public:
  ClusterStage() : etcd_(3) {}
  std::string Begin(const std::vector<std::string>& arguments) override;
  std::string address() override { return members_->address(writer_); }
  bool Runs() override { return members_->member(writer_).Running(); }
  void Kill() override;
  testing::Source Left() override;
  std::string Recover() override;
  bool End() override;
  std::vector<std::string> data_dirs() override;

 private:
  testing::EtcdCluster etcd_;
  std::optional<testing::Members> members_;
  size_t writer_ = 0;
  size_t killed_ = 0;
  int64_t killed_ms_ = 0;    // By the boot clock.
  int64_t takeover_ms_ = 0;  // Until the next one answered.
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_DEMO_STAGE_H_
