// Turn: what a node does in each turn of its loop, whoever drives it: the libuv server, an embedded
// service, the simulator.
//
// Thread: that of the engine. No I/O, no thread, no clock of its own. The driver first tells the
// engine and this what happened (bytes, connections, a durable batch, a finished scan), then calls
// Run, and sleeps until Run says or something happens.
//
// Happy path of Run: input that was left over; the next scan; deadlines; the open batch to the
// disk; replies that may leave; the next wake. Failure modes: a loop that was held up first takes
// the input that came before its deadlines (CatchUp). A failed commit is never reported here: the
// driver ends the node. An end that takes longer than kEndMsMax is told by Io::EndIsLate.
#ifndef NOWCALLS_NODE_TURN_H_
#define NOWCALLS_NODE_TURN_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.h"
#include "engine/engine.h"
#include "ledger/clock.h"
#include "ledger/commit_batch.h"
#include "ledger/scan.h"
#include "node/catch_up.h"
#include "nowcalls/status.h"

namespace nowcalls::node {

enum class Phase {
  kLeading,        // Decides and commits.
  kAnswering,      // The end has begun: nothing is read any more, requests that were are answered.
  kDisconnecting,  // Connections close behind their last replies.
  kClosing,        // The store is being closed; the engine is not called any more.
  kClosed,
};

// What a turn has done by its driver. No call may call the turn back, but for CloseStore.
class Io {
 public:
  virtual ~Io() = default;

  // Commits a sealed batch, which stays as it is until it is durable. True: it is, already. False:
  // Turn::OnDurable follows. `at_once`: it may be committed within the call though that blocks.
  virtual bool Commit(const ledger::CommitBatch& batch, bool at_once) = 0;
  // Turn::OnScanned follows. REQUIRES of the turn: no scan is under way.
  virtual void Scan(const ledger::ScanRequest& request) = 0;

  // The loop knows of all that came before `now`. For work of the driver that waits for no disk.
  virtual void Polled(Instant now) = 0;
  // When the driver has work of its own; kNever: it has none.
  virtual Instant NextWork() const = 0;

  // The end. Something that the engine does not know of will still answer somebody: a backup.
  virtual bool answers_later() const = 0;
  // Requests of `connections` are left unanswered.
  virtual void LeftUnanswered(size_t connections) = 0;
  virtual void Disconnect(Instant now) = 0;  // All connections, behind their last replies.
  virtual bool connected() const = 0;        // One is still open.
  virtual void CloseStore() = 0;             // Turn::OnClosed follows, perhaps within the call.
  virtual void EndIsLate() = 0;              // After kEndMsMax. It may not return.
};

class Turn {
 public:
  // They outlive it.
  Turn(engine::Engine* engine, const ledger::Clock* clock, Io* io)
      : engine_(engine), clock_(clock), io_(io) {}

  // Events, before the Run of their turn.
  void OnDurable();
  // Not ok when the scan failed: the ledger cannot be read, and the node must end.
  Status OnScanned(const ledger::ScanResult& result);
  // The node ends from now on. The driver reads and accepts nothing any more.
  void End();
  void OnClosed();

  // Returns for how many milliseconds the driver may sleep, if nothing happens. `more_to_read`:
  // another poll may find more to read at once.
  int64_t Run(bool more_to_read);

  // Commits all that the engine has to write, before the first Run, through an Io that commits at
  // once.
  void CommitAll();

  Phase phase() const { return phase_; }
  bool ending() const { return phase_ != Phase::kLeading; }
  bool engine_runs() const { return phase_ < Phase::kClosing; }
  // REQUIRES: ending().
  Instant end_began() const { return end_began_; }

 private:
  void Work(Instant now, bool hold);
  bool BeginCommit(bool at_once);
  void ContinueEnd(Instant now);
  Instant WakeAt(Instant now, bool hold) const;

  engine::Engine* const engine_;
  const ledger::Clock* const clock_;
  Io* const io_;

  Phase phase_ = Phase::kLeading;
  Instant end_began_;
  CatchUp catch_up_;
  std::optional<Instant> commit_began_;  // Of the commit that is under way.
  bool scanning_ = false;
};

}  // namespace nowcalls::node

#endif  // NOWCALLS_NODE_TURN_H_
