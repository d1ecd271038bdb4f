// The commit thread of a simulated server, and the claim of its log.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "sim/sim_process.h"
#include "sim/sim_server.h"

namespace nowcalls::sim {

bool SimServer::Commit(const ledger::CommitBatch& batch, bool at_once) {
  if (!Lives()) return false;
  Process& process = *process_;
  // Its end was reported before its time.
  if (process.commit.has_value() && Claims()) Write(*process.commit);
  process.commit.reset();
  const bool free = !process.applying && !hold_commits_;
  if (free && at_once && world_.plan->sync_every_ms == 0 && !world_.saboteur->replies_early() &&
      prng_.ChancePerMillion(world_.plan->commit_inline_chance)) {
    return CommitHere(batch);
  }
  process.commit = batch;
  if (world_.saboteur->replies_early()) {
    process.commit_reported = true;
    process.commit_done = true;
    RequestTurn(world_.timeline->now_us());
  }
  if (!process.applying) StartCommit();
  return false;
}

// As server::CommitThread::CommitHere. The process is ahead of the world by what it took.
bool SimServer::CommitHere(const ledger::CommitBatch& batch) {
  Process& process = *process_;
  process.commit = batch;
  if (!Lives()) return false;
  if (!Claims()) {
    if (world_.saboteur->answers_deposed()) return true;
    process.turn.OnDeposed();
    return false;
  }
  if (Happens(world_.plan->commit_failed_chance)) {
    Die(prng_.Below(2) == 0 ? Fault::kCommitFailed : Fault::kCommitFailedWithEffect);
    return false;
  }
  Write(batch);
  world_.trace->Add("server: batch ", batch.number(), " is durable at once, ", batch.records(),
                    " records");
  process.commit.reset();
  ahead_until_us_ = std::max(ahead_until_us_, world_.timeline->now_us()) + DrawCommitUs();
  process.busy_until_us = std::max(process.busy_until_us, ahead_until_us_);
  return Lives();
}

int64_t SimServer::DrawCommitUs() {
  int64_t duration_us = prng_.Between(1, world_.plan->commit_us_max);
  if (Happens(world_.plan->commit_slow_chance)) {
    world_.faults->Count(Fault::kCommitSlow);
    duration_us += prng_.Between(0, world_.plan->commit_slow_ms_max) * kMs;
    Hindered(duration_us / kMs);
  }
  return duration_us;
}

void SimServer::StartCommit() {
  process_->commit_held = hold_commits_;
  if (hold_commits_) return;
  world_.timeline->After(DrawCommitUs(), [this, incarnation = incarnation_] {
    if (incarnation == incarnation_) FinishCommit();
  });
}

void SimServer::FinishCommit() {
  Process& process = *process_;
  if (!process.commit.has_value()) return;  // Another took its place, reported before its time.
  if (!Claims()) return EndRefused();
  if (Happens(world_.plan->commit_failed_chance)) {
    return Die(prng_.Below(2) == 0 ? Fault::kCommitFailed : Fault::kCommitFailedWithEffect);
  }
  process.applying =
      !world_.plan->unsynced && prng_.ChancePerMillion(world_.plan->commit_tail_chance);
  if (process.applying) {
    NOWCALLS_CHECK(world_.store->Append(*process.commit).ok());
  } else {
    Write(*process.commit);
  }
  world_.trace->Add("server: batch ", process.commit->number(), " is durable, ",
                    process.commit->records(), " records");
  process.commit.reset();
  if (!std::exchange(process.commit_reported, false)) {
    process.commit_done = true;
    RequestTurn(world_.timeline->now_us());
  }
  if (!process.applying) return;
  world_.timeline->After(DrawCommitUs(), [this, incarnation = incarnation_] {
    if (incarnation != incarnation_) return;
    world_.store->ApplyAll();
    process_->applying = false;
    if (process_->commit.has_value()) StartCommit();
  });
}

bool SimServer::Claims() const { return process_->term == world_.store->log().term(); }

// The log takes nothing of this writer any more, and does not say whether it has the batch.
void SimServer::EndRefused() {
  if (world_.saboteur->answers_deposed()) {
    process_->commit.reset();
    process_->commit_done = true;
  } else {
    process_->commit_refused = true;
  }
  RequestTurn(world_.timeline->now_us());
}

void SimServer::Land() {
  const Process& process = *process_;
  if (process.commit.has_value() && !process.applying && Claims()) Append(*process.commit);
}

void SimServer::Write(const ledger::CommitBatch& batch) {
  Append(batch);
  world_.store->ApplyAll();
}

void SimServer::Append(const ledger::CommitBatch& batch) {
  constexpr uint64_t kBatchesPerSync = 16;
  NOWCALLS_CHECK(world_.store->Append(batch).ok());
  if (!world_.plan->unsynced) return;
  if (std::exchange(first_batch_, false)) return Sync();
  if (world_.plan->sync_every_ms == 0) {
    if (prng_.Below(kBatchesPerSync) == 0) Sync();
  } else if (!std::exchange(sync_planned_, true)) {
    world_.timeline->After(world_.plan->sync_every_ms * kMs, [this, incarnation = incarnation_] {
      if (incarnation != incarnation_) return;
      sync_planned_ = false;
      Sync();
    });
  }
}

void SimServer::Sync() const {
  NOWCALLS_CHECK(world_.store->Sync().ok());
  if (watch_.synced) watch_.synced();
}

}  // namespace nowcalls::sim
