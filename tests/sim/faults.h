// What goes wrong in a run, how often, and how often it did.
//
// Thread: one at a time. Each seed draws its own plan; each kind of fault is absent from a part of
// the seeds, so that none hides what only happens without it.
#ifndef NOWCALLS_SIM_FAULTS_H_
#define NOWCALLS_SIM_FAULTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/prng.h"

namespace nowcalls::sim {

enum class Fault : uint8_t {
  kCrash,                   // kill -9 between any two calls of the engine.
  kReboot,                  // The same with the whole machine.
  kTerminate,               // SIGTERM.
  kCommitSlow,              // For up to seconds.
  kCommitFailed,            // The process ends; of the batch nothing is on disk.
  kCommitFailedWithEffect,  // The process ends; the batch is on disk.
  kScanFailed,              // The process ends.
  kServerStall,             // The loop is held up (SIGSTOP, no processor).
  kClockStep,               // Somebody sets the wall clock.
  kReset,                   // A connection breaks, in the middle of a message, it may be.
  kVanish,                  // A client's host is gone; the server hears of it a minute later.
  kNetworkStall,            // One direction of a connection stands still for up to seconds.
  kSplit,                   // Bytes arrive in pieces.
  kSlowReader,              // A socket takes little at a time.
  kClientPause,             // A client does nothing, past its deadlines.
  kClientEnds,              // A client closes its connection, politely or not.
  kBatchesLost,             // A reboot takes batches that were not synced.
  kBootStep,                // The boot clock is set back within one boot.
  kDeposed,                 // Another node has taken the claim; the last batch may be in the log.
  kStandbyCrash,            // kill -9 of a node that stands by,
  kRecoveringCrash,         // or that takes over.
  kRecoveringStall,         // A node that takes over stands still, also for longer than its lease.
  kRequestLost,             // A request to etcd, of a member that appends,
  kRequestLate,             // which comes after it was sent again, it may be long after,
  kAnswerLost,              // or whose answer is lost: also to a claim.
  kStaleRead,               // A standby does not see the last batches of the log.
  kCutOff,                  // A writer does not reach etcd, for up to seconds.
  kLeaseEndsEarly,          // A standby takes the claim of a writer that is well.
  kAnswerLate,              // Of etcd, to a member that appends.
  kStaleClaim,              // A standby asks for a claim by what was before another took it.
  kOldWriter,               // A node begins to lead beside one that does not know it yet.
  kWritesLost,              // etcd goes back to what it was a few batches ago.
};
inline constexpr size_t kFaultCount = 32;

std::string_view FaultName(Fault fault);

struct FaultCounts {
  std::array<uint64_t, kFaultCount> counts{};

  void Count(Fault fault) { ++counts[static_cast<size_t>(fault)]; }
  void Add(const FaultCounts& other);
};

// Mean times between two of a kind are milliseconds, 0: never. Chances are parts of a million.
struct FaultPlan {
  int64_t process_every_ms = 0;  // Crash, reboot or SIGTERM.
  uint32_t reboot_chance = 0;    // That it is a reboot.
  uint32_t terminate_chance = 0;
  int64_t down_ms_max = 100;  // How long until the server is started again.
  uint32_t commit_slow_chance = 0;
  int64_t commit_slow_ms_max = 0;
  uint32_t commit_failed_chance = 0;
  uint32_t scan_failed_chance = 0;
  int64_t server_stall_every_ms = 0;
  int64_t server_stall_ms_max = 0;
  int64_t clock_step_every_ms = 0;
  int64_t boot_step_every_ms = 0;
  int64_t reset_every_ms = 0;
  uint32_t vanish_chance = 0;  // That a reset is a vanished host.
  uint32_t network_stall_chance = 0;
  int64_t network_stall_ms_max = 0;
  uint32_t split_chance = 0;
  uint32_t slow_reader_chance = 0;  // Of a connection.
  uint32_t client_pause_chance = 0;
  int64_t client_pause_ms_max = 0;
  uint32_t client_ends_chance = 0;
  // The durability: batches are synced one by one, or now and then: every so many milliseconds, or,
  // with 0, when the system likes to.
  bool unsynced = false;
  int64_t sync_every_ms = 0;
  // Of a cluster.
  int64_t claim_every_ms = 0;       // A lease ends early.
  uint32_t other_crash_chance = 0;  // That the process that ends is of a node that does not lead.
  uint32_t recovering_crash_chance = 0;  // Of a takeover.
  uint32_t recovering_stall_chance = 0;  // Of each of its steps.
  uint32_t request_lost_chance = 0;
  uint32_t request_late_chance = 0;
  uint32_t answer_lost_chance = 0;
  uint32_t answer_late_chance = 0;
  uint32_t stale_read_chance = 0;
  uint32_t lease_late_chance = 0;  // Of a renewal: that it gives too much.
  int64_t cut_off_every_ms = 0;
  int64_t cut_off_ms_max = 0;
  bool loses_writes = false;  // At the end of the world with faults, which is its end then.

  // How long things take when nothing is wrong.
  int64_t network_delay_us_max = 1'000;
  int64_t commit_us_max = 1'000;
  uint32_t commit_inline_chance = 0;  // That the loop commits a batch itself.
  uint32_t commit_tail_chance = 0;    // That a batch is done before it is applied.
  int64_t turn_us_max = 100;
  int64_t follow_ms_max = 1;  // Between two looks of a standby at the log.
};

FaultPlan DrawFaultPlan(Prng* prng);

}  // namespace nowcalls::sim

#endif  // NOWCALLS_SIM_FAULTS_H_
