// Machine: the clocks of the host that a server runs on.
//
// Thread: one at a time. The boot clock begins anew with each boot, which has an id of its own; the
// wall clock may be set by anybody. What sets the boot clock back is no operator but a hypervisor.
#ifndef NOWCALLS_SIM_MACHINE_H_
#define NOWCALLS_SIM_MACHINE_H_

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "sim/timeline.h"

namespace nowcalls::sim {

class Machine {
 public:
  // When the world begins.
  struct Clocks {
    int64_t boottime_ms = 3'600'000;
    int64_t wall_ms = 1'700'000'000'000;
  };

  explicit Machine(const Timeline* timeline) : Machine(timeline, 0, Clocks()) {}
  // No two of one world have the same number.
  Machine(const Timeline* timeline, uint8_t number, const Clocks& clocks)
      : timeline_(timeline), booted_ms_(-clocks.boottime_ms), wall_ahead_ms_(clocks.wall_ms) {
    boot_id_.back() = number;
  }

  int64_t BoottimeMs() const { return timeline_->now_ms() - booted_ms_; }
  ClockSample Sample() const {
    return {.boottime_ms = BoottimeMs(),
            .wall_ms = timeline_->now_ms() + wall_ahead_ms_,
            .boot_id = boot_id_};
  }

  void Reboot() {
    booted_ms_ = timeline_->now_ms();
    boottime_max_ms_ = 0;
    ++boot_id_[0];
    if (boot_id_[0] == 0) ++boot_id_[1];
  }
  void StepWall(int64_t by_ms) {
    wall_ahead_ms_ += by_ms;
    wall_was_set_ = true;
  }
  // Within one boot. Returns for how long the boot clock will be behind what it has told.
  int64_t StepBootBack(int64_t by_ms) {
    boottime_max_ms_ = std::max(boottime_max_ms_, BoottimeMs());
    booted_ms_ += std::min(by_ms, BoottimeMs());
    return boottime_max_ms_ - BoottimeMs();
  }
  bool wall_was_set() const { return wall_was_set_; }  // Ever.

 private:
  const Timeline* const timeline_;
  int64_t booted_ms_;
  int64_t boottime_max_ms_ = 0;  // Before the last step.
  int64_t wall_ahead_ms_;
  bool wall_was_set_ = false;
  BootId boot_id_{1};
};

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_MACHINE_H_
