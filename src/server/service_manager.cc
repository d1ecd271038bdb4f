#include "server/service_manager.h"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstdint>

namespace nowcalls::server {

ServiceManager::ServiceManager() {
  uint64_t watchdog_us = 0;
  if (sd_watchdog_enabled(0, &watchdog_us) <= 0) return;
  every_ms_ = std::max<int64_t>(1, static_cast<int64_t>(watchdog_us / 2000));
  next_ = Instant{0};
}

void ServiceManager::Ready() const { sd_notify(0, "READY=1"); }

void ServiceManager::Stopping() const { sd_notify(0, "STOPPING=1"); }

void ServiceManager::Alive(Instant now) {
  if (now < next_) return;
  next_ = now + every_ms_;
  sd_notify(0, "WATCHDOG=1");
}

}  // namespace nowcalls::server
