// Backups: backups that clients ask for: made, logged, answered.
//
// Thread: loop.
#ifndef NOWCALLS_SERVER_THREADS_BACKUPS_H_
#define NOWCALLS_SERVER_THREADS_BACKUPS_H_

#include <uv.h>

#include "engine/engine.h"
#include "ledger/clock.h"
#include "server/log/server_log.h"
#include "server/threads/backup_thread.h"

namespace nowcalls::server {

class Backups {
 public:
  // Pointers outlive it. `make` runs on the backup thread.
  Backups(BackupThread::Make make, engine::Engine* engine, const ledger::Clock* clock,
          ServerLog* log);

  // As engine::Driver::BeginBackup.
  Status Begin(uv_loop_t* loop, const engine::BackupJob& job) { return thread_.Begin(loop, job); }
  bool busy() const { return thread_.busy(); }

  // As BackupThread::End; one under way is answered.
  void End() { thread_.End(); }
  // REQUIRES: !busy().
  void Stop() { thread_.Stop(); }

 private:
  void OnDone(const engine::BackupJob& job, bool begun, const Result<backup::Manifest>& made);
  void LogDone(const engine::BackupJob& job, bool begun, const Result<backup::Manifest>& made);

  engine::Engine* const engine_;
  const ledger::Clock* const clock_;
  ServerLog* const log_;
  BackupThread thread_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_THREADS_BACKUPS_H_
