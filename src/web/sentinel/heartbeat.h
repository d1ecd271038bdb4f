// Heartbeat: tells Sentinel's dashboard of this machine, again and again, as it forgets machines
// that it has not heard of for a minute.
//
// Thread: a thread of its own, which waits for the dashboard and holds up nobody else. The
// destructor does not wait: a thread that is in the middle of a beat is left to itself, and ends
// within kBeatMsMax without a word. Form: alibaba/Sentinel 1.8, MachineRegistryController.
#ifndef NOWCALLS_WEB_SENTINEL_HEARTBEAT_H_
#define NOWCALLS_WEB_SENTINEL_HEARTBEAT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/host_port.h"
#include "nowcalls/status.h"
#include "web/log_line.h"

namespace nowcalls::web {

// What the dashboard is told.
struct SentinelMachine {
  std::string app;
  // Where the command centre listens. On a wildcard address the dashboard is told the address from
  // which it is reached.
  HostPort commands;
};

class Heartbeat {
 public:
  static constexpr int64_t kEveryMs = 10'000;
  static constexpr int64_t kBeatMsMax = 3'000;

  // `log` is called on the thread of the heartbeat, when it begins or ceases to work.
  Heartbeat(const HostPort& dashboard, const SentinelMachine& machine, LogLine log,
            int64_t every_ms = kEveryMs);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  class Beating;
  const std::shared_ptr<Beating> beating_;
};

// Where the dashboard will look for the command centre.
struct ToldAddress {
  std::string ip;
  bool reachable = true;  // False: `ip` is loopback, and the dashboard is on another machine.
};

// One beat. kUnavailable: the dashboard did not take it, and why.
Result<ToldAddress> TellDashboard(const HostPort& dashboard, const SentinelMachine& machine,
                                  int64_t deadline_ms);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SENTINEL_HEARTBEAT_H_
