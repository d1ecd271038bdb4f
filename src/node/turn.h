// Turn: what a node does in each turn of its loop.
//
// Thread: the engine's.
//
// Order: the driver tells engine and Turn what happened, calls Run, and sleeps. After a failed
// commit the driver ends the node.
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
#include "node/phase.h"
#include "nowcalls/status.h"

namespace nowcalls::node {

// The driver's part. Only Commit and CloseStore may call back, OnDeposed and OnClosed.
class Io {
 public:
  virtual ~Io() = default;

  // `batch` is unchanged until durable. True: it is. False: Turn::OnDurable or OnDeposed follows.
  // `at_once`: it may block.
  virtual bool Commit(const ledger::CommitBatch& batch, bool at_once) = 0;
  // Turn::OnScanned follows. At most one scan is under way.
  virtual void Scan(const ledger::ScanRequest& request) = 0;

  // Since the last call, more has come within reach of the next poll.
  virtual bool TakeMoreToRead() = 0;
  // Input before `now` is known.
  virtual void Polled(Instant now) = 0;
  // Next work of the driver; kNever: none.
  virtual Instant NextWork() const = 0;

  // The end. True: a backup will still answer somebody.
  virtual bool answers_later() const = 0;
  // Requests of `connections` get no answer.
  virtual void LeftUnanswered(size_t connections) = 0;
  virtual void Disconnect(Instant now) = 0;  // All connections, behind their last replies.
  virtual bool connected() const = 0;        // One is still open.
  virtual void CloseStore() = 0;             // Turn::OnClosed follows, perhaps within the call.
  virtual void EndIsLate() = 0;              // After kEndMsMax. It may not return.

  // Deposed: closes all connections without another byte. Only where the log has a claim.
  virtual void Abandon();
};

class Turn {
 public:
  // All outlive it. `gather_ms`: for so long after a commit no batch is sealed, so that requests of
  // those that were just answered are in the next one.
  Turn(engine::Engine* engine, const ledger::Clock* clock, Io* io, int64_t gather_ms = 0)
      : engine_(engine), clock_(clock), io_(io), gather_ms_(gather_ms) {}

  // Events, before the Run of their turn.
  void OnDurable();
  // Not ok: the ledger cannot be read; the node must end.
  Status OnScanned(const ledger::ScanResult& result);
  // Begins the end. The driver reads and accepts no more. REQUIRES: !ending().
  void End();
  void OnClosed();
  // Another writer has the claim: nothing that waits leaves. When this and Run have returned, the
  // driver drops core, engine and turn, and begins a Standby on the same log and tables.
  void OnDeposed();

  // The longest sleep, ms; 0 when closed or deposed.
  int64_t Run();

  // Before the first Run: commits all, through an Io that commits at once.
  void CommitAll();

  // From kLeading on.
  Phase phase() const { return phase_; }
  bool ending() const { return phase_ != Phase::kLeading; }
  bool engine_runs() const { return phase_ < Phase::kClosing; }

 private:
  void Work(Instant now, bool hold);
  bool BeginCommit(bool at_once);
  void ContinueEnd(Instant now);
  Instant WakeAt(Instant now, bool hold) const;

  engine::Engine* const engine_;
  const ledger::Clock* const clock_;
  Io* const io_;
  const int64_t gather_ms_;

  Phase phase_ = Phase::kLeading;
  Instant end_began_;
  CatchUp catch_up_;
  std::optional<Instant> commit_began_;  // Of the commit that is under way.
  Instant gathers_until_;                // No batch is sealed before.
  bool scanning_ = false;
};

}  // namespace nowcalls::node

#endif  // NOWCALLS_NODE_TURN_H_
