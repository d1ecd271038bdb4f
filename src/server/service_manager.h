// ServiceManager: tells systemd that the server serves, lives and ends (sd_notify).
//
// Thread: loop. Without systemd, or a unit that is not Type=notify, nothing is told.
#ifndef NOWCALLS_SERVER_SERVICE_MANAGER_H_
#define NOWCALLS_SERVER_SERVICE_MANAGER_H_

#include "base/time.h"

namespace nowcalls::server {

class ServiceManager {
 public:
  ServiceManager();

  void Ready() const;
  void Stopping() const;
  // Once a turn. A unit with WatchdogSec= is told at twice that pace that the loop turns; one that
  // stands still is ended by systemd, and started anew.
  void Alive(Instant now);
  // When Alive has something to tell; kNever: there is no watchdog.
  Instant NextAlive() const { return next_; }

 private:
  int64_t every_ms_ = 0;  // 0: there is no watchdog.
  Instant next_ = kNever;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SERVICE_MANAGER_H_
