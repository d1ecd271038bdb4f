#include "node/turn.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "node/limits.h"

namespace nowcalls::node {

void Io::Abandon() { NOWCALLS_CHECK(false); }  // A log without a claim deposes nobody.

void Turn::OnDurable() {
  if (!engine_runs()) return;
  commit_began_.reset();
  const Instant now = clock_->Now();
  gathers_until_ = now + gather_ms_;
  engine_->OnCommitDone(now);
}

Status Turn::OnScanned(const ledger::ScanResult& result) {
  scanning_ = false;
  if (!engine_runs()) return {};
  return engine_->OnScanDone(result, clock_->Now());
}

void Turn::End() {
  NOWCALLS_CHECK(!ending());
  phase_ = Phase::kAnswering;
  end_began_ = clock_->Now();
  engine_->BeginShutdown(end_began_);
}

void Turn::OnClosed() { phase_ = Phase::kClosed; }

// The batch under way is never told durable, so its replies stay in the engine. Those that wait for
// nothing stay, too: an answer of a node that does not lead helps nobody.
void Turn::OnDeposed() {
  if (!engine_runs()) return;
  phase_ = Phase::kDeposed;
  io_->Abandon();
}

int64_t Turn::Run() {
  if (phase_ >= Phase::kClosed) return 0;
  Instant now = clock_->Now();
  // Input left over by earlier turns comes first.
  if (engine_runs()) engine_->ResumeInput(now);

  // Deadlines wait for input that came before them (CatchUp). While a commit is under way the wait
  // costs nothing: a decision could not be recorded before the commit's end.
  const bool poll_at_once = io_->TakeMoreToRead() || engine_->input_waits();
  const bool stalled =
      engine_->input_held() && commit_began_.has_value() && now - *commit_began_ > CatchUp::kLateMs;
  const bool hold = catch_up_.Holds(now, poll_at_once || engine_->input_held(), stalled);
  if (catch_up_.polled()) io_->Polled(now);
  if (engine_runs()) Work(now, hold);
  if (phase_ == Phase::kDeposed) return 0;

  // Read the clock again: a commit within the turn may have taken long.
  const Instant began = std::exchange(now, clock_->Now());
  // An end reads nothing, so it waits for no input. Nor for a commit: a disk that hangs must not
  // hold up the limit of an end.
  if (ending() && catch_up_.polled()) ContinueEnd(now);

  // Bytes that came while a commit of this turn stalled are read before deadlines count. So poll at
  // once, and let CatchUp measure from the turn's beginning.
  const bool stalled_here = now - began > CatchUp::kLateMs;
  const Instant wake = stalled_here ? now : std::max(WakeAt(now, hold), now);
  catch_up_.BeforePoll(stalled_here ? began : wake);
  return wake - now;
}

void Turn::Work(Instant now, bool hold) {
  // The scan first: it goes on beside the rest of the turn.
  if (!hold && !scanning_) {
    if (const auto request = engine_->BeginScan(now)) {
      scanning_ = true;
      io_->Scan(*request);
    }
  }
  if (hold && catch_up_.polled()) engine_->CloseTooSlow(now);
  if (!hold && engine_->NextDeadline() <= now) engine_->OnTime(now);

  // The commit before the replies: the disk works while they are sent. A loop that catches up must
  // not be held up again, and an end has a limit, so neither blocks in a commit.
  const bool at_once = !hold && !ending();
  BeginCommit(at_once);
  if (!engine_runs()) return;  // The commit found another writer's claim.
  engine_->TurnEnd();
  // Repeat while there is something to write. TurnEnd has answered a batch that was committed at
  // once, and may have ended sessions of peers that do not read.
  while (BeginCommit(at_once)) engine_->TurnEnd();
}

void Turn::CommitAll() {
  while (BeginCommit(/*at_once=*/true)) {
  }
}

// True: the batch is durable already, and its replies may leave.
bool Turn::BeginCommit(bool at_once) {
  if (commit_began_.has_value()) return false;
  // The clock of now: an earlier commit of this turn may have taken long.
  const Instant now = clock_->Now();
  if (now < gathers_until_ && !ending()) return false;
  const ledger::CommitBatch* batch = engine_->BeginCommit(clock_->Sample(), now);
  if (batch == nullptr) return false;
  commit_began_ = now;
  if (!io_->Commit(*batch, at_once)) return false;
  commit_began_.reset();
  engine_->OnCommitDone(clock_->Now());
  return true;
}

// Each phase waits for what the one before it has begun.
void Turn::ContinueEnd(Instant now) {
  if (now >= end_began_ + kEndMsMax) io_->EndIsLate();
  if (phase_ == Phase::kAnswering && now >= end_began_ + kEndWorkMsMax) {
    // A dozen kilobytes of requests can ask for seconds of listings.
    const size_t left = engine_->DropWaitingInput();
    if (left > 0) io_->LeftUnanswered(left);
  }
  if (phase_ == Phase::kAnswering && engine_->idle() && !io_->answers_later()) {
    phase_ = Phase::kDisconnecting;
    io_->Disconnect(now);
  }
  const bool quiet = !io_->connected() && !commit_began_.has_value() && !scanning_;
  if (phase_ == Phase::kDisconnecting && quiet && engine_->idle()) {
    phase_ = Phase::kClosing;
    io_->CloseStore();
  }
}

Instant Turn::WakeAt(Instant now, bool hold) const {
  // While deadlines wait for input, their moments have passed and say nothing. Input that waits for
  // a commit alone is looked at every kHeldPollMs; the end of the commit wakes the loop, too.
  if (hold)
    return engine_runs() && engine_->input_held() && !engine_->input_waits() ? now + kHeldPollMs
                                                                             : now;
  Instant wake = std::min(now + kSleepMsMax, io_->NextWork());
  if (now < gathers_until_) wake = std::min(wake, gathers_until_);
  if (ending()) wake = std::min(wake, end_began_ + kEndMsMax);
  if (engine_runs()) wake = std::min(wake, engine_->NextDeadline());
  return wake;
}

}  // namespace nowcalls::node
