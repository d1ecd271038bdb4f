// The guard of exec: a process between exec and its command. It ends the command and all that the
// command started when exec says that the token is lost, and when exec is killed. While exec is
// stopped, it does so by its own clock once the token's validity is over.
//
//   exec, with the connection -- guard -- command -- what the command starts
//
// Both ends are one program, so messages are structs on a SOCK_SEQPACKET. The guard blocks all
// signals, so a terminal's go past it to the command, which is in the process group of exec.
//
// Thread: the guard has one, in a child that was forked beside threads: it takes no memory.
#ifndef NOWCALLS_COMMAND_GUARD_H_
#define NOWCALLS_COMMAND_GUARD_H_

#include <signal.h>

#include <cstdint>

#include "command/arguments.h"

namespace nowcalls::command {

// From exec. When its end is closed, exec is gone.
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

// What the forked child does. Unless `on_lost` is kIgnore, nothing that the command started
// outlives it: leftovers are ended before the command's end is reported.
[[noreturn]] void RunGuard(const Guarded& guarded, int channel);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_GUARD_H_
