// The guard: a process that ends a command and its descendants when the token is lost or exec dies.
//
// Thread: one, in a child forked beside threads: it allocates nothing.
#ifndef NOWCALLS_COMMAND_GUARD_H_
#define NOWCALLS_COMMAND_GUARD_H_

#include <signal.h>

#include <cstdint>

#include "command/arguments.h"

namespace nowcalls::command {

// From exec, on a SOCK_SEQPACKET. A closed end: exec is gone.
struct GuardOrder {
  enum class Kind : uint8_t {
    kSignal,   // Send `signal` to the command, or to all that it started, too.
    kLost,     // The token is lost: do as --on-lost says.
    kValidTo,  // The token is lost at `valid_to_ms`, unless another order moves that.
  };
  Kind kind = Kind::kSignal;
  bool to_all = false;
  int signal = 0;
  int64_t valid_to_ms = INT64_MAX;  // Of CLOCK_BOOTTIME.
};

// From the guard.
struct GuardReport {
  enum class Kind : uint8_t {
    kStarted,  // `value`: 0, or the errno of what kept the command from running; then it is all.
    kStopped,  // The command was stopped by signal `value`.
    kEnded,    // The last one. `value`: as waitpid has it.
  };
  Kind kind = Kind::kStarted;
  bool was_lost = false;  // It ended since the token was lost.
  int value = 0;
};

struct Guarded {
  char* const* argv;
  char* const* environment;
  sigset_t mask;  // What the command has blocked.
  OnLost on_lost;
  int64_t valid_to_ms;  // As of an order.
};

// Runs in the forked child. Unless `on_lost` is kIgnore, all descendants end before the command's
// end is reported.
[[noreturn]] void RunGuard(const Guarded& guarded, int channel);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_GUARD_H_
