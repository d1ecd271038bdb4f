// The server's log: spdlog's default logger on stderr, one line a message, in the format that the
// configuration chose. After SetUpLogging any thread may call spdlog::info and its like.
#ifndef NOWCALLS_SERVER_LOGGING_H_
#define NOWCALLS_SERVER_LOGGING_H_

#include <string_view>

#include "nowcalls/status.h"
#include "server/log_line.h"

namespace nowcalls::server {

// Call once, before other threads log.
void SetUpLogging(LogLevel level, LogFormat format);

void LogAt(LogLevel level, std::string_view text);

// Logs "WHAT failed: reason; exiting, a restart recovers the ledger" and ends the process with exit
// code 74, without destructors: memory may no longer say what the ledger says, so nothing may be
// written or answered any more.
[[noreturn]] void DieOfIoError(std::string_view what, const Status& failure);

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOGGING_H_
