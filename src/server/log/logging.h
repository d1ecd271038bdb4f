// The server's log: spdlog's default logger on stderr. After SetUpLogging any thread may call all.
// No thread waits for stderr's reader, so a process ends through FlushLog or ExitNow.
#ifndef NOWCALLS_SERVER_LOG_LOGGING_H_
#define NOWCALLS_SERVER_LOG_LOGGING_H_

#include <string_view>

#include "nowcalls/status.h"
#include "server/log/log_line.h"

namespace nowcalls::server {

// Once, before other threads log.
void SetUpLogging(Severity least, LogFormat format);

void SetLogLevel(Severity least);

// JSON shows `fields` beside the text.
void LogAt(Severity severity, std::string_view text, const LogFields& fields = {});

// Waits for all lines, a second at most.
void FlushLog();

// FlushLog, then the end without destructors.
[[noreturn]] void ExitNow(int exit_code);

// Logs "WHAT failed: reason; exiting, a restart recovers the ledger" and exits with 74, without
// destructors. kCorruption exits with 65. It and kAlreadyExists (a replaced ledger) promise no
// recovery.
[[noreturn]] void DieOfIoError(std::string_view what, const Status& failure);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOG_LOGGING_H_
