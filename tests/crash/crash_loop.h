// The kill -9 loop: a real server under load, killed at random moments of what it may be doing
// (kill_moment.h), or from within (whitebox.h), and the outside checker.
//
// Thread: one, which starts the server's process and the client threads. A seed fixes every choice
// that the loop makes; the moment at which the kernel delivers a kill it cannot fix, so a failed
// seed is worth several runs.
#ifndef NOWCALLS_CRASH_CRASH_LOOP_H_
#define NOWCALLS_CRASH_CRASH_LOOP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "crash/checker.h"

namespace nowcalls::crash {

struct CrashLoopOptions {
  int cycles = 20;
  uint64_t seed = 1;
  bool whitebox = false;  // Kill points of the faulty server; the timer only if none is reached.
  bool keep_dir = false;  // Keep the directory of a run without violations too.
  std::function<void(const std::string&)> progress;  // One line a cycle; may be empty.
};

struct CrashLoopResult {
  int cycles = 0;
  std::map<std::string, int> moments;  // Cycles, by the moment of the kill and what it interrupted.
  std::map<std::string, int> fired;    // Cycles of whitebox, by the kill point that ended them.
  std::map<std::string, int> starts;   // Kills that were meant for recovery, or came before the
                                       // server served, by what they hit (start_log.h).
  std::map<std::string, int> durabilities;  // Cycles.
  std::map<std::string, int64_t> tally;     // Of requests that are special, how many.
  int64_t acknowledged = 0;                 // Operations with a definite answer.
  int64_t unknown = 0;                      // Operations that the kill left without one.
  int64_t adopted = 0;                      // Of these, tokens that the ledger turned out to hold.
  Violations violations;                    // The loop ends with the first cycle that has some.
  std::string dir;                          // Where the ledger and the logs are, if they were kept.
};

// Throws std::runtime_error when the loop itself cannot go on (no server binary, no disk).
CrashLoopResult RunCrashLoop(const CrashLoopOptions& options);

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_CRASH_LOOP_H_
