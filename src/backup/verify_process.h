// Verifies a copy in a process of its own (README, decision 2): `PROGRAM --verify-copy DIR PARENT`
// reads the ledger in DIR for the process PARENT.
//
// Thread: any. The process dies with the waiting thread, and inherits no descriptors.
#ifndef NOWCALLS_BACKUP_VERIFY_PROCESS_H_
#define NOWCALLS_BACKUP_VERIFY_PROCESS_H_

#include <atomic>
#include <optional>
#include <string>

#include "backup/verify.h"
#include "nowcalls/status.h"

namespace nowcalls::backup {

// The running program, even if its file was replaced.
inline constexpr char kThisProgram[] = "/proc/self/exe";

// VerifyCopy in a process of `program`, whose main calls RunAsVerifier. kCorruption also: it
// crashed or left no report. kIoError: it did not start or was killed. Returns counts and seal
// only. REQUIRES: SIGCHLD is not ignored.
Result<VerifySummary> VerifyInProcess(const std::string& program, const std::string& data_dir,
                                      const std::atomic<bool>& stop);

// For main, behind its last words: the exit code, if a verification is asked for.
std::optional<int> RunAsVerifier(int argc, const char* const* argv);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_VERIFY_PROCESS_H_
