// A copy is verified by a process of its own: this program again, as
//
//   PROGRAM --verify-copy DIR PARENT
//
// which reads the ledger in DIR for the process with the id PARENT and does nothing else. Damage
// may fail an assertion of RocksDB or worse, and then ends that process alone; a server goes on.
//
// Thread: any. The process has the lowest priority, is the first to go when memory runs out, and
// ends when the thread that waits for it does, however that ends. It ignores what asks a service
// to end: its parent decides. Of its parent's descriptors it has none.
#ifndef NOWCALLS_BACKUP_VERIFY_PROCESS_H_
#define NOWCALLS_BACKUP_VERIFY_PROCESS_H_

#include <atomic>
#include <optional>
#include <string>

#include "backup/verify.h"
#include "nowcalls/status.h"

namespace nowcalls::backup {

// The file that this process runs, also when another one has its name by now.
inline constexpr char kThisProgram[] = "/proc/self/exe";

// As VerifyCopy, in a process that runs `program`, whose main calls RunAsVerifier. kCorruption also
// when that process crashes or ends without a report; kIoError when it cannot be started, or is
// killed. Of the summary only the counts and the seal come back. REQUIRES: SIGCHLD is not ignored.
Result<VerifySummary> VerifyInProcess(const std::string& program, const std::string& data_dir,
                                      const std::atomic<bool>& stop);

// For main, before anything else but its last words: if the arguments ask for a verification, does
// that and returns the exit code.
std::optional<int> RunAsVerifier(int argc, const char* const* argv);

}  // namespace nowcalls::backup

#endif  // NOWCALLS_BACKUP_VERIFY_PROCESS_H_
