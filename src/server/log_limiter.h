// LogLimiter: bounds how many lines a second peers can make the server log, and which lines that
// concerns.
//
// What the server itself does and the guard against mass expiry, which speaks once a second at
// most, are told in any case, and nobody may hide them behind noise. What administrators change and
// rules that change have a bound of their own, so that no client's noise hides them: a hundred
// thousand drains a second are possible, and 30 MB of lines about them. What administrators ask for
// in vain (a backup that cannot be made, rules that are not valid or change nothing) costs them
// nothing and is told as what one peer did.
//
// Thread: loop. Time comes in with each call; any clock in milliseconds that does not go back will
// do. Seconds are counted from the first line of a burst.
#ifndef NOWCALLS_SERVER_LOG_LIMITER_H_
#define NOWCALLS_SERVER_LOG_LIMITER_H_

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace nowcalls::server {

// What a line is about. The engine gives all its lines through one call, and begins these with it.
enum class LogTopic : uint8_t {
  kServer,
  // One peer, whose behaviour alone caused it: a connection that did what it must not or asked in
  // vain, a client that stayed away.
  kPeer,
  // What an administrator or a set of rules has changed.
  kAct,
};

inline LogTopic TopicOf(std::string_view line) {
  if (line.starts_with("connection ") || line.starts_with("client ")) return LogTopic::kPeer;
  if (line.starts_with("administrator ") || line.starts_with("namespace ")) return LogTopic::kAct;
  return LogTopic::kServer;
}

class LogLimiter {
 public:
  explicit LogLimiter(uint32_t lines_per_second_max) : lines_max_(lines_per_second_max) {}

  // May a line be logged now? If not, it is counted.
  bool Admit(Instant now) {
    if (now - second_began_ >= kSecondMs) {
      second_began_ = now;
      lines_ = 0;
    }
    if (lines_ < lines_max_) {
      ++lines_;
      return true;
    }
    if (suppressed_++ == 0) suppressed_since_ = now;
    return false;
  }

  // When the count of suppressed lines is due to be logged, a second after the first of them,
  // however many come meanwhile; kNever: there are none.
  Instant NextReport() const { return suppressed_ == 0 ? kNever : suppressed_since_ + kSecondMs; }

  // Lines suppressed since the last call. The caller logs them at NextReport.
  uint64_t TakeSuppressed() { return std::exchange(suppressed_, 0); }

 private:
  static constexpr int64_t kSecondMs = 1000;

  uint32_t lines_max_;
  Instant second_began_{-kSecondMs};
  uint32_t lines_ = 0;
  uint64_t suppressed_ = 0;
  Instant suppressed_since_{};  // Meaningful while some are.
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOG_LIMITER_H_
