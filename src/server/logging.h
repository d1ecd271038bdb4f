// The server's log: spdlog's default logger on stderr, one line a message, in the format that the
// configuration chose. After SetUpLogging any thread may call spdlog::info and its like; none waits
// for whoever reads stderr (server/line_writer.h), and the process ends through FlushLog or
// ExitNow.
#ifndef NOWCALLS_SERVER_LOGGING_H_
#define NOWCALLS_SERVER_LOGGING_H_

#include <string_view>

#include "nowcalls/status.h"
#include "server/log_line.h"

namespace nowcalls::server {

// Call once, before other threads log.
void SetUpLogging(LogLevel level, LogFormat format);

// `fields` stand beside the text in a JSON log.
void LogAt(LogLevel level, std::string_view text, const LogFields& fields = {});

// Waits until all lines are written, but for no more than a second.
void FlushLog();

// FlushLog, and the end of the process without destructors.
[[noreturn]] void ExitNow(int exit_code);

// Logs "WHAT failed: reason; exiting, a restart recovers the ledger", without the last part where
// another has taken the ledger's place (kAlreadyExists), and ends the process with exit code 74,
// without destructors: memory may no longer say what the ledger says, so nothing may be written or
// answered any more. Of kCorruption, which no restart repairs, the code is 65.
[[noreturn]] void DieOfIoError(std::string_view what, const Status& failure);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOGGING_H_
