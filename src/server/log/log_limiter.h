// LogLimiter: bounds the lines of one topic in a second.
//
// Thread: loop. Times are ms of any clock that does not go back. Seconds begin with a burst's first
// line.
#ifndef NOWCALLS_SERVER_LOG_LOG_LIMITER_H_
#define NOWCALLS_SERVER_LOG_LOG_LIMITER_H_

#include <cstdint>
#include <utility>

#include "base/time.h"

namespace nowcalls::server {

class LogLimiter {
 public:
  explicit LogLimiter(uint32_t lines_per_second_max) : lines_max_(lines_per_second_max) {}

  // False: the line is counted, not logged.
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

  // A second after the first suppressed line; kNever: none is.
  Instant NextReport() const { return suppressed_ == 0 ? kNever : suppressed_since_ + kSecondMs; }

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

#endif  // NOWCALLS_SERVER_LOG_LOG_LIMITER_H_
