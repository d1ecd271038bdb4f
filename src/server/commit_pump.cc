#include "server/commit_pump.h"

#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "server/logging.h"

namespace nowcalls::server {

Status CommitPump::CommitAllNow() {
  const auto begin = [this] { return engine_->BeginCommit(clock_->Sample(), clock_->Now()); };
  while (const ledger::CommitBatch* batch = begin()) {
    NOWCALLS_RETURN_IF_ERROR(store_->Commit(*batch));
    engine_->OnCommitDone(clock_->Now());
  }
  return store_->Sync();
}

void CommitPump::Start(uv_loop_t* loop) {
  engine_->OnDiskSpace(store_->FreeBytes(), store_->FreeFiles());
  thread_.emplace(
      loop, store_, config_->durability,
      CommitThread::Events{
          .done = [this] { OnCommitDone(); },
          .fail = [](const char* what, const Status& failure) { DieOfIoError(what, failure); },
          .slow = [this](const std::string& what) { LogSlowHere(what); }},
      DiskWatch{NearBytes(config_->core.limits),
                [this](std::optional<uint64_t> bytes, std::optional<uint64_t> files) {
                  OnDiskSpace(bytes, files);
                }});
}

void CommitPump::Pump(bool may_be_inline) {
  // The batch goes first, so that the disk works while the loop sends.
  BeginCommit(may_be_inline);
  engine_->TurnEnd();
  // Another round if there is something to write still: a batch that was committed here has been
  // answered by TurnEnd, and TurnEnd may have ended sessions of peers that do not read.
  while (BeginCommit(may_be_inline)) engine_->TurnEnd();
}

// True: the batch is durable already, and its replies may leave.
bool CommitPump::BeginCommit(bool may_be_inline) {
  if (thread_->busy()) return false;
  // The time of now, not of the turn's beginning: a commit within the turn may have taken long.
  const Instant now = clock_->Now();
  const ledger::CommitBatch* batch = engine_->BeginCommit(clock_->Sample(), now);
  if (batch == nullptr) return false;
  began_ns_ = MonotonicNs();
  if (may_be_inline && thread_->CommitHere(*batch)) {
    PublishEnd();
    engine_->OnCommitDone(clock_->Now());
    return true;
  }
  watch_.Began(now);
  board_->commit_since_ms.store(BoottimeMs(), std::memory_order_relaxed);
  thread_->Commit(batch);
  return false;
}

void CommitPump::OnCommitDone() {
  if (finishing_) return;
  const Instant now = clock_->Now();
  PublishEnd();
  LogSlow(watch_.Ended(now));
  engine_->OnCommitDone(now);
}

void CommitPump::PublishEnd() {
  board_->commits.Add(static_cast<uint64_t>(MonotonicNs() - began_ns_) / 1000);
  board_->commit_since_ms.store(0, std::memory_order_relaxed);
}

void CommitPump::OnDiskSpace(std::optional<uint64_t> free_bytes,
                             std::optional<uint64_t> free_files) {
  if (!finishing_) engine_->OnDiskSpace(free_bytes, free_files);
}

void CommitPump::Finish(const std::function<Status()>& close) {
  finishing_ = true;
  thread_->Finish([store = store_, close] {
    NOWCALLS_RETURN_IF_ERROR(store->Sync());
    return close();
  });
}

void CommitPump::LogSlow(const std::optional<std::string>& what) const {
  if (!what.has_value()) return;
  LogAt(LogLevel::kWarn, *what + "; grants wait for the disk under " + config_->data_dir);
}

void CommitPump::LogSlowHere(const std::string& what) const {
  LogAt(LogLevel::kWarn,
        what +
            " on the thread that serves, which answers nobody meanwhile; look at the disk under " +
            config_->data_dir);
}

}  // namespace nowcalls::server
