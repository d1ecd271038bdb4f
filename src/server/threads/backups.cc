#include "server/threads/backups.h"

#include <cstddef>
#include <string>
#include <utility>

#include "base/text.h"
#include "server/log/logging.h"
#include "wire/admin_messages.h"

namespace nowcalls::server {
namespace {

// Room for the path of the directory, which a client chose, within the reason of a failure.
constexpr size_t kFailureBytesMax = 1024;

// On the backup thread.
void LogBegun(const engine::BackupJob& job) {
  LogAt(Severity::kInfo, "administrator " + job.by + " began a backup to " + Shortened(job.to),
        {{"peer", job.by}});
}

}  // namespace

Backups::Backups(BackupThread::Make make, engine::Engine* engine, const ledger::Clock* clock,
                 ServerLog* log)
    : engine_(engine),
      clock_(clock),
      log_(log),
      thread_(std::move(make), {.begun = LogBegun,
                                .done = [this](const engine::BackupJob& job, bool begun,
                                               const Result<backup::Manifest>& made) {
                                  OnDone(job, begun, made);
                                }}) {}

void Backups::OnDone(const engine::BackupJob& job, bool begun,
                     const Result<backup::Manifest>& made) {
  LogDone(job, begun, made);
  // The asker may be gone: the engine drops the answer then.
  const Instant now = clock_->Now();
  if (!made.ok()) return engine_->OnBackupDone(job.asker, made.status(), now);
  engine_->OnBackupDone(job.asker,
                        wire::BackupReply{.batch_number = made->batch_number,
                                          .tokens = made->tokens,
                                          .now_calls = made->now_calls,
                                          .sessions = made->sessions,
                                          .rules = made->rules,
                                          .history = made->history,
                                          .files = made->files.size(),
                                          .bytes = made->bytes()},
                        now);
}

void Backups::LogDone(const engine::BackupJob& job, bool begun,
                      const Result<backup::Manifest>& made) {
  if (made.ok()) {
    return LogAt(Severity::kInfo, "backup to " + Shortened(job.to) + " done, " + made->CountsText(),
                 {{"peer", job.by}});
  }
  // A backup that has begun is an event of the server, and logged without bound.
  if (begun) {
    const std::string why = Shortened(made.status().message(), kFailureBytesMax);
    return LogAt(Severity::kWarn, "backup failed: " + why, {{"peer", job.by}, {"reason", why}});
  }
  // Refused before anything was written: a client can ask so at will, so its topic bounds the
  // lines.
  const std::string why = Shortened(made.status().message());
  log_->Write(Severity::kWarn, LogTopic::kPeer,
              "connection " + job.by + " was refused a backup: " + why,
              {{"peer", job.by}, {"reason", why}}, clock_->Now());
}

}  // namespace nowcalls::server
