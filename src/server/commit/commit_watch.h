// CommitWatch: finds slow and hanging commits, for the log.
//
// Thread: one at a time. Time comes in with each call.
#ifndef NOWCALLS_SERVER_COMMIT_COMMIT_WATCH_H_
#define NOWCALLS_SERVER_COMMIT_COMMIT_WATCH_H_

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

  // The text to log; nothing if the commit was quick.
  std::optional<std::string> Ended(Instant now) {
    const int64_t took_ms = now - *began_;
    began_.reset();
    if (took_ms < kSlowMs) return std::nullopt;
    return "a commit took " + std::to_string(took_ms) + " ms";
  }

  // 0: none.
  int64_t UnderWayMs(Instant now) const { return began_ ? now - *began_ : 0; }

  // kNever: UnderWay has no text for this commit.
  Instant NextReport() const { return began_ && !told_ ? *began_ + kHangsMs : kNever; }

  // The text about a commit that hangs; once a commit.
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

#endif  // NOWCALLS_SERVER_COMMIT_COMMIT_WATCH_H_
