// Shutdown: the orderly end of a server, from the first signal to the closed store.
//
// Thread: loop. Each phase waits for what the one before it has begun:
//
//   kAnswering      nothing is read or accepted any more; requests that were read are answered
//   kDisconnecting  connections close behind their last replies
//   kClosingStore   the store is synced and closed, on the commit thread
//   kClosed         only the loop's own handles are left
//
// Failure modes: what takes longer than kShutdownMsMax (loop_limits.h) in all, such as a disk that
// hangs, ends the process with exit code 74. Requests that are not answered after
// kShutdownWorkMsMax are left unanswered.
#ifndef NOWCALLS_SERVER_SHUTDOWN_H_
#define NOWCALLS_SERVER_SHUTDOWN_H_

#include <functional>

#include "base/time.h"
#include "engine/engine.h"
#include "nowcalls/status.h"
#include "server/backups.h"
#include "server/commit_pump.h"
#include "server/configured_rules.h"
#include "server/loop_limits.h"
#include "server/peers.h"
#include "server/scan_thread.h"

namespace nowcalls::server {

class Shutdown {
 public:
  // The parts of the server that come to their end. They outlive it.
  struct Parts {
    engine::Engine* engine;
    Peers* peers;
    CommitPump* commits;
    ScanThread* scans;
    Backups* backups;
    ConfiguredRules* rules;
    std::function<Status()> close_store;  // On the commit thread.
  };

  // Begins it.
  Shutdown(Parts parts, Instant now);

  // Once a turn, when the loop knows of everything that has come.
  void Continue(Instant now);

  // The engine may still be called: it is finished before its store is.
  bool engine_runs() const { return phase_ < Phase::kClosingStore; }
  bool closed() const { return phase_ == Phase::kClosed; }
  Instant began() const { return began_; }
  Instant deadline() const { return began_ + kShutdownMsMax; }

 private:
  enum class Phase { kAnswering, kDisconnecting, kClosingStore, kClosed };

  void LeaveWorkUndone() const;

  const Parts parts_;
  const Instant began_;
  Phase phase_ = Phase::kAnswering;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_SHUTDOWN_H_
