// The options of nowcalls-bench.
//
// Thread: any.
#ifndef NOWCALLS_BENCH_OPTIONS_H_
#define NOWCALLS_BENCH_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/host_port.h"
#include "bench/flow_picker.h"
#include "client/dial.h"
#include "nowcalls/status.h"

namespace nowcalls::bench {

enum class Command : uint8_t { kLoad, kFill, kIdle };
enum class TargetKind : uint8_t { kNowcalls, kRedis };
enum class Language : uint8_t { kMessagePackRpc, kSentinel };
// Acquires and releases, or calls a second of a rule, or of a value of its parameter.
enum class Operation : uint8_t { kAcquire, kRequest, kRequestParam };
enum class Format : uint8_t { kTable, kJson };

struct TargetAddress {
  TargetKind kind = TargetKind::kNowcalls;
  HostPort peer{"127.0.0.1", 18730};
  std::vector<HostPort> others{};  // Members of a cluster, of which one serves.

  // "redis://127.0.0.1:6379", of the peer alone.
  std::string ToString() const;
  // All of them, as net::ParseServers takes it.
  std::string Servers() const;
};

// nowcalls://HOST:PORT,HOST:PORT or redis://HOST:PORT, ports above 0; else kInvalidArgument.
Result<TargetAddress> ParseTarget(std::string_view text);

// As on the command line.
std::string_view LanguageName(Language language);
std::string_view OperationName(Operation operation);

struct Options {
  Command command = Command::kLoad;
  TargetAddress target;
  client::Security security;  // Of the connections; a secret is shown to nowcalls alone.
  Language language = Language::kMessagePackRpc;
  Operation operation = Operation::kAcquire;
  uint32_t values = 1000;  // Of the parameter of kRequestParam.
  uint32_t keys = 0;       // Of the parameter of kAcquire; 0: it has none.
  std::string name_space = "bench";
  uint32_t connections = 16;
  uint32_t in_flight = 16;  // Requests of a connection, see bench/workload.h.
  double rate = 0;          // Operations a second in total; 0: closed loop.
  uint32_t flows = 1;
  FlowDistribution flow_distribution = FlowDistribution::kRoundRobin;
  uint64_t seed = 1;
  int64_t first_flow = 1'000'001;
  int64_t level = INT32_MAX;
  int64_t hold_ms = 0;  // Of fill: how long its tokens live.
  int64_t duration_ms = 10'000;
  int64_t warm_up_ms = 1'000;
  int64_t behind_ms_max = 10'000;
  uint32_t expire_rate = 0;
  int64_t expire_after_ms = 2'000;
  uint64_t tokens = 0;            // Of fill.
  int64_t client_offline_ms = 0;  // Of fill; 0: as hold_ms.
  bool keep_rules = false;
  uint32_t replicas = 0;    // Of Redis: WAIT for so many after each command.
  bool request_ids = true;  // Of a nowcalls server's acquires.
  Format format = Format::kTable;
  int64_t server_pid = 0;  // 0: none.
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_OPTIONS_H_
