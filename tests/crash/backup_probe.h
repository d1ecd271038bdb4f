// BackupProbe: a backup that is being made of a server when that is killed, and what is left of it.
//
// Thread: one at a time. The moment of the kill is the caller's.
#ifndef NOWCALLS_CRASH_BACKUP_PROBE_H_
#define NOWCALLS_CRASH_BACKUP_PROBE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "crash/checker.h"
#include "support/process.h"

namespace nowcalls::crash {

class BackupProbe {
 public:
  enum class State { kNotBegun, kUnfinished, kFinished };

  // Uses DIR/backup and DIR/restored, which Judge removes unless something is wrong with them.
  explicit BackupProbe(const std::string& dir)
      : backup_(dir + "/backup"), restored_(dir + "/restored") {}

  // `nowcalls-admin backup` asks the server at `address`; returns at once.
  void Begin(const std::string& address);
  // The server has made the directory of the backup.
  bool HasBegun() const;
  // The file is there that makes it one. It may not have been acknowledged yet.
  bool IsFinished() const;

  // After the server is gone: what became of the backup. One that is not finished must be refused
  // by `nowcalls-admin restore`; what is restored from one that is must verify, pass `check_rules`
  // (of a data directory), and is returned for the checker.
  std::optional<LedgerCopy> Judge(const std::function<Violations(const std::string&)>& check_rules,
                                  Violations* violations);

  State state() const { return state_; }  // Of the one that was judged last.

 private:
  std::string backup_;
  std::string restored_;
  int64_t asked_us_ = 0;
  std::optional<testing::Process> tool_;
  State state_ = State::kNotBegun;
};

}  // namespace nowcalls::crash

#endif  // NOWCALLS_CRASH_BACKUP_PROBE_H_
