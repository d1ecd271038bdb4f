// The topic of a log line, and its fields in a JSON log.
//
// Thread: any; plain values.
#ifndef NOWCALLS_BASE_LOG_RECORD_H_
#define NOWCALLS_BASE_LOG_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

namespace nowcalls {

// Each topic has its rate (server/log/log_limiter.h).
enum class LogTopic : uint8_t {
  // What the server itself does. Not limited by the log: peers' lines come here with a quota of
  // their own.
  kServer,
  kPeer,  // What one peer's behaviour alone caused.
  kAct,   // What an administrator or a set of rules has changed, or was refused.
  kEnd,   // The end of a token whose flow or namespace was chosen for the log.
};

// Such as {"flow", "1001", true}.
struct LogField {
  const char* name;  // A literal: client, flow, namespace, peer, principal, reason, token, ...
  std::string value;
  bool number = false;  // The value is printed without quotes. Token ids are strings.
};
using LogFields = std::vector<LogField>;

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_LOG_RECORD_H_
