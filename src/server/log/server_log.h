// ServerLog: the lines of a running server, bounded by topic.
//
// Thread: loop. Peers, acts of administrators and ends of tokens (core/log_ends.h) have a bound
// each. Acts in vain count as peers. Lines of the server are always logged.
#ifndef NOWCALLS_SERVER_LOG_SERVER_LOG_H_
#define NOWCALLS_SERVER_LOG_SERVER_LOG_H_

#include <algorithm>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/log_record.h"
#include "base/time.h"
#include "server/log/log_limiter.h"
#include "server/log/logging.h"

namespace nowcalls::server {

class ServerLog {
 public:
  explicit ServerLog(const Limits& limits)
      : peer_lines_(limits.log_lines_per_second_max),
        act_lines_(limits.log_act_lines_per_second_max),
        end_lines_(limits.log_end_lines_per_second_max) {}

  void Write(Severity severity, LogTopic topic, std::string_view text, const LogFields& fields,
             Instant now) {
    LogLimiter* const bound = BoundOf(topic);
    if (bound == nullptr || bound->Admit(now)) LogAt(severity, text, fields);
  }

  // kNever: ReportSuppressed has no line.
  Instant NextReport() const {
    return std::min({peer_lines_.NextReport(), act_lines_.NextReport(), end_lines_.NextReport()});
  }

  void ReportSuppressed(Instant now) {
    Report(&peer_lines_, "peers", now);
    Report(&act_lines_, "what administrators changed", now);
    Report(&end_lines_, "ends of tokens", now);
  }

 private:
  LogLimiter* BoundOf(LogTopic topic) {
    switch (topic) {
      case LogTopic::kServer: return nullptr;
      case LogTopic::kPeer: return &peer_lines_;
      case LogTopic::kAct: return &act_lines_;
      case LogTopic::kEnd: return &end_lines_;
    }
    return nullptr;
  }

  static void Report(LogLimiter* lines, const std::string& about, Instant now) {
    if (now < lines->NextReport()) return;
    LogAt(Severity::kWarn, std::to_string(lines->TakeSuppressed()) + " log lines about " + about +
                               " were suppressed in the last second");
  }

  LogLimiter peer_lines_;
  LogLimiter act_lines_;
  LogLimiter end_lines_;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOG_SERVER_LOG_H_
