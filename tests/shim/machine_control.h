// MachineControl: what a test tells machine_shim.cc inside a server, and hears from it, through a
// file that both map.
//
// Thread: any, in either process: every member stands by itself. All zeros: nothing is changed.
#ifndef NOWCALLS_SHIM_MACHINE_CONTROL_H_
#define NOWCALLS_SHIM_MACHINE_CONTROL_H_

#include <atomic>
#include <cstdint>

namespace nowcalls::testing {

// Names the file in the environment of the server; not NOWCALLS_..., which are settings.
inline constexpr char kMachineControlVariable[] = "MACHINE_SHIM_CONTROL";

struct MachineControl {
  std::atomic<int64_t> wall_offset_ms;  // Added to CLOCK_REALTIME.
  std::atomic<int64_t> boot_offset_ms;  // Added to CLOCK_BOOTTIME.
  std::atomic<int64_t> boot;            // Above 0: which boot of the machine this is.
  std::atomic<int64_t> sync_takes_ms;  // What each sync of a file takes besides, also of those that
                                       // have begun.
  std::atomic<int64_t> sync_is_free;   // Above 0: nothing is synced really.
  std::atomic<int64_t> syncs;          // How many have ended.
  std::atomic<int64_t> loop_syncs;     // And how many of them on the process's first thread.
  std::atomic<int64_t> syncs_begun;    // How many have begun,
  std::atomic<int64_t> loop_syncs_begun;  // and how many of them on that thread, counted before.
  std::atomic<int64_t> tcp_hurry;         // Above 0: TCP's times by which dead peers are found are
                                          // divided by it.
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SHIM_MACHINE_CONTROL_H_
