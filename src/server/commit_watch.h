// CommitWatch: what the log says of commits that take long. Grants wait for them, and all else for
// those that the loop makes, so an operator must hear of a disk that is slow, and of one that hangs
// while it does.
//
// Thread: one at a time. Time comes in with each call.
#ifndef NOWCALLS_SERVER_COMMIT_WATCH_H_
#define NOWCALLS_SERVER_COMMIT_WATCH_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"

namespace nowcalls::server {

class CommitWatch {
 public:
  void Began(Instant now) {
    began_ = now;
    told_ = false;
  }

  // What to log of a commit that has just ended: nothing, if it was quick.
  std::optional<std::string> Ended(Instant now) {
    const int64_t took_ms = now - *began_;
    began_.reset();
    if (took_ms < kSlowMs) return std::nullopt;
    return "a commit took " + std::to_string(took_ms) + " ms";
  }

  // How long the commit that is under way has taken; 0 if there is none.
  int64_t UnderWayMs(Instant now) const { return began_ ? now - *began_ : 0; }

  // When UnderWay has something to say; kNever: not of this commit.
  Instant NextReport() const { return began_ && !told_ ? *began_ + kHangsMs : kNever; }

  // What to log of a commit that does not end; once a commit.
  std::optional<std::string> UnderWay(Instant now) {
    if (now < NextReport()) return std::nullopt;
    told_ = true;
    return "a commit has not ended for " + std::to_string(now - *began_) + " ms";
  }

 private:
  static constexpr int64_t kSlowMs = 1'000;
  static constexpr int64_t kHangsMs = 5'000;

  std::optional<Instant> began_;  // Of the commit that is under way.
  bool told_ = false;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_COMMIT_WATCH_H_
