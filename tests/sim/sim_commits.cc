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
  if (process.commit.has_value()) {
    if (world_.shared == nullptr) Append(*process.commit);
    Land();
    world_.store->ApplyAll(process.commit->number());
  }
  process.commit.reset();
  const bool free = !process.applying && !hold_commits_ && world_.shared == nullptr;
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
  if (world_.shared != nullptr) return Send(process_->commit->number());
  world_.timeline->After(DrawCommitUs(), [this, incarnation = incarnation_] {
    if (incarnation == incarnation_) FinishCommit();
  });
}

void SimServer::FinishCommit() {
  Process& process = *process_;
  if (!process.commit.has_value()) return;  // Another took its place, reported before its time.
  if (Happens(world_.plan->commit_failed_chance)) {
    return Die(prng_.Below(2) == 0 ? Fault::kCommitFailed : Fault::kCommitFailedWithEffect);
  }
  Append(*process.commit);
  Committed();
}

// Sends the transaction of a batch to the log of the cluster, and again when no answer comes in
// time. Whatever becomes of the process, what was sent is on its way.
void SimServer::Send(uint64_t number) {
  constexpr int64_t kAnswerUsMax = 1'000 * kMs;
  constexpr int64_t kLateMsMax = 5'000;
  const Process& process = *process_;
  const cluster::Txn txn = TxnOf(*process.commit);
  const bool request_lost = is_cut_off() || Happens(world_.plan->request_lost_chance);
  const bool answer_lost = Happens(world_.plan->answer_lost_chance);
  int64_t way_us = DrawCommitUs();
  if (Happens(world_.plan->request_late_chance)) way_us += prng_.Between(0, kLateMsMax) * kMs;
  const bool answer_late = Happens(world_.plan->answer_late_chance);
  const int64_t back_us = answer_late ? prng_.Between(0, kLateMsMax) * kMs : 0;
  if (request_lost || answer_lost || way_us + back_us > kAnswerUsMax) {
    world_.faults->Count(request_lost             ? Fault::kRequestLost
                         : answer_lost            ? Fault::kAnswerLost
                         : way_us <= kAnswerUsMax ? Fault::kAnswerLate
                                                  : Fault::kRequestLate);
    Hindered((kAnswerUsMax + world_.plan->commit_us_max) / kMs);
  }
  if (!request_lost) {
    const int losses = world_.shared->losses();
    world_.timeline->After(way_us, [=, this, incarnation = incarnation_] {
      if (world_.shared->losses() != losses) return;
      const cluster::TxnReply reply = world_.shared->Commit(txn);
      if (answer_lost) return;
      world_.timeline->After(back_us, [this, reply, number, incarnation] {
        if (incarnation == incarnation_) OnAnswered(number, reply);
      });
    });
  }
  world_.timeline->After(kAnswerUsMax, [this, number, incarnation = incarnation_] {
    if (incarnation == incarnation_ && IsSent(number)) Send(number);
  });
}

cluster::Txn SimServer::TxnOf(const ledger::CommitBatch& batch) const {
  cluster::Txn txn = world_.shared->txns().Append(*process_->claim, batch, batch.number() - 1,
                                                  world_.shared->TrimTo());
  if (!world_.saboteur->compares_claim()) {
    txn.compares = {cluster::IsAbsent(world_.shared->txns().keys().Slot(batch.number()))};
  }
  return txn;
}

bool SimServer::IsSent(uint64_t number) const {
  const Process& process = *process_;
  return process.commit && process.commit->number() == number && !process.commit_refused;
}

void SimServer::OnAnswered(uint64_t number, const cluster::TxnReply& reply) {
  if (!IsSent(number)) return;  // An earlier sending was answered.
  const Process& process = *process_;
  const cluster::Fate fate = world_.shared->txns().FateOf(reply, *process.claim, *process.commit);
  if (fate == cluster::Fate::kDone) {
    if (watch_.committed) watch_.committed(number);
    return Committed();
  }
  EndRefused();
}

// The batch is in the log.
void SimServer::Committed() {
  Process& process = *process_;
  process.applying =
      !world_.plan->unsynced && prng_.ChancePerMillion(world_.plan->commit_tail_chance);
  const uint64_t number = process.commit->number();
  if (!process.applying) world_.store->ApplyAll(number);
  world_.trace->Add("server: batch ", process.commit->number(), " is durable, ",
                    process.commit->records(), " records");
  process.commit.reset();
  if (!std::exchange(process.commit_reported, false)) {
    process.commit_done = true;
    RequestTurn(world_.timeline->now_us());
  }
  if (!process.applying) return;
  world_.timeline->After(DrawCommitUs(), [this, number, incarnation = incarnation_] {
    if (incarnation != incarnation_) return;
    world_.store->ApplyAll(number);
    process_->applying = false;
    if (process_->commit.has_value()) StartCommit();
  });
}

void SimServer::CutOff(int64_t duration_us) {
  if (world_.shared == nullptr || !runs()) return;
  world_.faults->Count(Fault::kCutOff);
  world_.trace->Add("server: does not reach etcd for ", duration_us / kMs, " ms");
  Hindered(duration_us / kMs + 2 * cluster::Lease::kTtlMs);
  cut_off_until_us_ = std::max(cut_off_until_us_, world_.timeline->now_us() + duration_us);
}

void SimServer::RenewSoon() {
  const int64_t wait_ms =
      std::max<int64_t>(1, process_->lease.renew_at_ms() - world_.machine->BoottimeMs());
  world_.timeline->After(wait_ms * kMs, [this, incarnation = incarnation_] {
    if (incarnation == incarnation_) Renew();
  });
}

// A process that stands still renews nothing. The boot clock counts from before the request.
void SimServer::Renew() {
  constexpr int64_t kAnswerUsMax = 1'000 * kMs;
  Process& process = *process_;
  const int64_t now_us = world_.timeline->now_us();
  if (process.busy_until_us - now_us > kAnswerUsMax) {
    return world_.timeline->At(process.busy_until_us, [this, incarnation = incarnation_] {
      if (incarnation == incarnation_) Renew();
    });
  }
  const int64_t sent_ms = world_.machine->BoottimeMs();
  const bool request_lost = is_cut_off() || Happens(world_.plan->request_lost_chance);
  const bool answer_lost = Happens(world_.plan->answer_lost_chance);
  const int64_t way_us = prng_.Between(1, world_.plan->commit_us_max);
  if (!request_lost) {
    world_.timeline->After(way_us, [=, this, claim = *process.claim, incarnation = incarnation_] {
      const bool renewed = world_.shared->Renew(claim);
      if (incarnation != incarnation_) return;
      if (renewed) {
        world_.network->SetLeaseEnd(world_.number,
                                    world_.timeline->now_ms() + cluster::Lease::kTtlMs);
      }
      if (!answer_lost) OnRenewed(sent_ms, renewed);
    });
  }
  if (!request_lost && !answer_lost) return;
  world_.timeline->After(kAnswerUsMax, [=, this, incarnation = incarnation_] {
    if (incarnation != incarnation_) return;
    process_->lease.Unanswered(sent_ms, world_.machine->BoottimeMs());
    RenewSoon();
  });
}

// A loop that stands still hears of it later.
void SimServer::OnRenewed(int64_t sent_ms, bool renewed) {
  if (!renewed) {
    process_->claim_lost = true;
    return RequestTurn(world_.timeline->now_us());
  }
  process_->lease.Renewed(sent_ms, cluster::Lease::kTtlMs);
  RenewSoon();
}

bool SimServer::LeaseIsOver() const {
  if (!process_->claim || !world_.saboteur->fences_itself()) return false;
  return process_->claim_lost || process_->lease.over(world_.machine->BoottimeMs() + AheadMs());
}

void SimServer::Depose() {
  process_->turn.OnDeposed();
  Retire();
}

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
  if (world_.shared == nullptr || !process_->commit.has_value()) return;
  world_.shared->Commit(TxnOf(*process_->commit));
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
