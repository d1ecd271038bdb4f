// CommandCenter: answers Sentinel's dashboard.
//
// Thread: one at a time, that of its HttpServer. It never blocks.
//
// Source: alibaba/Sentinel 1.8, SentinelApiClient and MetricFetcher of its dashboard. Setters are
// 400 with advice, unknown commands 400 in Sentinel's words.
#ifndef NOWCALLS_WEB_SENTINEL_COMMAND_CENTER_H_
#define NOWCALLS_WEB_SENTINEL_COMMAND_CENTER_H_

#include <atomic>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "web/http.h"
#include "web/sentinel/options.h"
#include "web/snapshot.h"
#include "web/snapshot_source.h"

namespace nowcalls::web {

class CommandCenter {
 public:
  // `source` outlives it.
  CommandCenter(const SentinelDashboardOptions& options, SnapshotSource* source);

  // The token server's port. Any thread, before the first snapshot.
  void SetTokenPort(uint16_t port) { token_port_ = port; }
  Response Handle(const Request& request) const;

 private:
  struct Command;
  struct Asked {
    const Request& request;
    const Snapshot& snapshot;
  };

  static std::span<const Command> Commands();
  bool Admits(const std::string& peer) const;

  Response Metric(const Asked& asked) const;
  Response ClusterNode(const Asked& asked) const;
  Response JsonTree(const Asked& asked) const;
  Response GetRules(const Asked& asked) const;
  Response GetParamFlowRules(const Asked& asked) const;
  Response GetClusterMode(const Asked& asked) const;
  Response ServerInfo(const Asked& asked) const;
  Response ServerMetrics(const Asked& asked) const;
  Response ServerFlowRules(const Asked& asked) const;
  Response ServerParamRules(const Asked& asked) const;
  Response ServerConfig(const Asked& asked) const;
  Response Version(const Asked& asked) const;
  Response BasicInfo(const Asked& asked) const;
  Response Api(const Asked& asked) const;

  nlohmann::ordered_json Transport() const;

  const SentinelDashboardOptions options_;
  SnapshotSource* const source_;
  const int64_t began_unix_ms_;
  std::atomic<uint16_t> token_port_{0};
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_COMMAND_CENTER_H_
