// LogLimiter: bounds how many lines a second peers can make the server log, and which lines that
// concerns.
//
// What administrators change, rules that change and the guard against mass expiry are told in any
// case, and nobody may hide them behind noise. Such lines are few, since they cost whoever causes
// them: a record in the ledger each, or a directory that is made for a backup. What administrators
// ask for in vain (a backup that cannot be made, rules that are not valid or change nothing) costs
// them nothing and is told as what one peer did.
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

// Whether a line is about one peer, whose behaviour alone caused it. The engine gives all its lines
// through one call, and begins these with what they are about: a connection that did what it must
// not or asked in vain, a client that stayed away.
inline bool IsAboutPeer(std::string_view line) {
  return line.starts_with("connection ") || line.starts_with("client ");
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
    ++suppressed_;
    return false;
  }

  // When the count of suppressed lines is due to be logged; kNever: there are none.
  Instant NextReport() const { return suppressed_ == 0 ? kNever : second_began_ + kSecondMs; }

  // Lines suppressed since the last call. The caller logs them at NextReport.
  uint64_t TakeSuppressed() { return std::exchange(suppressed_, 0); }

 private:
  static constexpr int64_t kSecondMs = 1000;

  uint32_t lines_max_;
  Instant second_began_{-kSecondMs};
  uint32_t lines_ = 0;
  uint64_t suppressed_ = 0;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_LOG_LIMITER_H_
