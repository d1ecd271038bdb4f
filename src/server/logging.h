// The server's log: spdlog's default logger on stderr, one line a message, in the configured
// format. After SetUpLogging any thread may call LogAt, spdlog::info and its like. No thread waits
// for the reader of stderr (server/line_writer.h), so the process ends through FlushLog or ExitNow.
#ifndef NOWCALLS_SERVER_LOGGING_H_
#define NOWCALLS_SERVER_LOGGING_H_

#include <string_view>

#include "nowcalls/status.h"
#include "server/log_line.h"

namespace nowcalls::server {

// Call once, before other threads log.
void SetUpLogging(LogLevel level, LogFormat format);

// Thread: any.
void SetLogLevel(LogLevel level);

// `fields` stand beside the text in a JSON log.
void LogAt(LogLevel level, std::string_view text, const LogFields& fields = {});

// Waits until all lines are written, but for no more than a second.
void FlushLog();

// FlushLog, and the end of the process without destructors.
[[noreturn]] void ExitNow(int exit_code);

// Logs "WHAT failed: reason; exiting, a restart recovers the ledger" and ends the process with exit
// code 74, without destructors: memory may say more than the ledger, so nothing may be written or
// answered any more. kCorruption, which no restart repairs, ends it with 65; for that and for a
// ledger that was replaced (kAlreadyExists) the line does not speak of a restart.
[[noreturn]] void DieOfIoError(std::string_view what, const Status& failure);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOGGING_H_
