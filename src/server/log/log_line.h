// One log line as text or JSON.
//
// Thread: any; pure.
#ifndef NOWCALLS_SERVER_LOG_LOG_LINE_H_
#define NOWCALLS_SERVER_LOG_LOG_LINE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/log_record.h"
#include "engine/driver.h"

namespace nowcalls::server {

using engine::Severity;

enum class LogFormat {
  kText,  // 2024-05-01T12:00:00.123Z info  serving on 127.0.0.1:18730
  // {"ts":"2024-05-01T12:00:00.123Z","level":"info","msg":"serving on 127.0.0.1:18730"}, then the
  // fields: ,"peer":"127.0.0.1:40000","reason":"..."
  kJson,
};

// "debug", "info", "warn", "error".
std::string_view SeverityName(Severity severity);

// The line with its newline. `wall_ms`: Unix time. Text has no fields. Both escape as
// base/shown_text.h; JSON has U+FFFD for bytes that are not UTF-8.
std::string FormatLogLine(LogFormat format, int64_t wall_ms, Severity severity,
                          std::string_view text, const LogFields& fields = {});

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOG_LOG_LINE_H_
