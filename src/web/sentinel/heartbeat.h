// Heartbeat: registers this machine at Sentinel's dashboard.
//
// Thread: its own. The destructor does not wait: a beat under way ends unlogged within kBeatMsMax.
// Form: alibaba/Sentinel 1.8, MachineRegistryController.
#ifndef NOWCALLS_WEB_SENTINEL_HEARTBEAT_H_
#define NOWCALLS_WEB_SENTINEL_HEARTBEAT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/host_port.h"
#include "nowcalls/status.h"
#include "web/log_line.h"

namespace nowcalls::web {

struct SentinelMachine {
  std::string app;
  // Of the command centre. For a wildcard address the beat's local address is told.
  HostPort commands;
};

class Heartbeat {
 public:
  static constexpr int64_t kEveryMs = 10'000;
  static constexpr int64_t kBeatMsMax = 3'000;

  // `log` runs on this thread, when beats begin or cease to succeed.
  Heartbeat(const HostPort& dashboard, const SentinelMachine& machine, LogLine log,
            int64_t every_ms = kEveryMs);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  class Beating;
  const std::shared_ptr<Beating> beating_;
};

struct ToldAddress {
  std::string ip;
  bool reachable = true;  // False: `ip` is loopback, and the dashboard is on another machine.
};

// kUnavailable: the dashboard did not take the beat, and why.
Result<ToldAddress> TellDashboard(const HostPort& dashboard, const SentinelMachine& machine,
                                  int64_t deadline_ms);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_HEARTBEAT_H_
