// ServiceManager: tells systemd that the server serves, lives and ends.
//
// Thread: loop. Without systemd, or Type=notify, nothing is told.
#ifndef NOWCALLS_SERVER_SERVICE_MANAGER_H_
#define NOWCALLS_SERVER_SERVICE_MANAGER_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

#include "base/time.h"

namespace nowcalls::server {

class ServiceManager {
 public:
  ServiceManager();

  void Ready() const;
  void Stopping() const;
  // Once a turn. With WatchdogSec= systemd hears twice in that time.
  void Alive(Instant now);
  // kNever: no watchdog.
  Instant NextAlive() const { return next_; }

 private:
  int64_t every_ms_ = 0;  // 0: there is no watchdog.
  Instant next_ = kNever;
};

// While it lives, systemd does not take a long start for stuck (TimeoutStartSec=).
class LongStart {
 public:
  static constexpr int64_t kEveryMs = 5'000;

  explicit LongStart(int64_t every_ms = kEveryMs);
  ~LongStart();
  LongStart(const LongStart&) = delete;
  LongStart& operator=(const LongStart&) = delete;

 private:
  void Run(int64_t every_ms);

  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_over_ = false;  // Guarded by mutex_.
  std::thread thread_;    // None without a service manager.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SERVICE_MANAGER_H_
