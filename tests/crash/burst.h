// Burst: one client that takes many tokens at once, which then expire at about the same time.
//
// Thread: one at a time. It writes a log like other clients (history.h) and keeps its connection,
// so that its session is online while they expire.
#ifndef NOWCALLS_CRASH_BURST_H_
#define NOWCALLS_CRASH_BURST_H_

#include <cstdint>
#include <string>

#include "support/rpc_client.h"

namespace nowcalls::crash {

class Burst {
 public:
  static constexpr char kClientId[] = "burst";

  // Takes `tokens` of the flow. It ends early when the connection is lost.
  void Run(const std::string& address, const std::string& log_path, int64_t flow_id, int tokens);

  int64_t first_deadline_us() const { return first_deadline_us_; }
  int64_t last_deadline_us() const { return last_deadline_us_; }
  int64_t granted() const { return granted_; }

 private:
  testing::RpcClient rpc_;
  int64_t first_deadline_us_ = 0;
  int64_t last_deadline_us_ = 0;
  int64_t granted_ = 0;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_BURST_H_
