#include "server/service_manager.h"

#include <pthread.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

namespace nowcalls::server {

ServiceManager::ServiceManager() {
  uint64_t watchdog_us = 0;
  if (sd_watchdog_enabled(0, &watchdog_us) <= 0) return;
  // Half of the watchdog's time, as sd_watchdog_enabled(3) recommends.
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

LongStart::LongStart(int64_t every_ms) {
  // Without a service manager there is nobody to tell, and no thread.
  if (std::getenv("NOTIFY_SOCKET") == nullptr) return;
  thread_ = std::thread([this, every_ms] { Run(every_ms); });
  pthread_setname_np(thread_.native_handle(), "nc-start");
}

LongStart::~LongStart() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LongStart::Run(int64_t every_ms) {
  // Each message grants systemd's patience for six more pauses.
  constexpr int64_t kPauses = 6;
  const std::string more = "EXTEND_TIMEOUT_USEC=" + std::to_string(kPauses * every_ms * 1000);
  std::unique_lock lock(mutex_);
  // Again and again, without an end: a ledger of many tokens on a slow disk takes what it takes.
  do {
    sd_notify(0, more.c_str());
  } while (
      !ended_.wait_for(lock, std::chrono::milliseconds(every_ms), [this] { return is_over_; }));
}

}  // namespace nowcalls::server
