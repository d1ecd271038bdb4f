// Dialing: which address a session dials next, and when.
//
// Thread: the session's. Addresses are tried in rows. Between rows, and after a connection that was
// of no use, comes a random pause. Its bound doubles up to kPauseMsMax. So clients that lose a
// server do not come back in step.
#ifndef NOWCALLS_CLIENT_DIALING_H_
#define NOWCALLS_CLIENT_DIALING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"

namespace nowcalls::client {

inline constexpr int64_t kPauseMsMin = 50;
inline constexpr int64_t kPauseMsMax = 2000;
inline constexpr int64_t kDialMsMax = 2000;  // Of one address.

class Dialing {
 public:
  // REQUIRES: addresses is not empty.
  Dialing(std::vector<std::string> addresses, int64_t now_ms)
      : addresses_(std::move(addresses)), at_ms_(now_ms) {}

  const std::string& address() const { return addresses_[index_ % addresses_.size()]; }
  // When to dial; INT64_MAX: the owner does.
  int64_t at_ms() const { return at_ms_; }
  // The owner dials. The session's Connected or DialFailed follows.
  void Begin() { at_ms_ = INT64_MAX; }
  // What dialling this address may take, of what a call may: a dead address leaves the others their
  // share. Each row doubles it, since a distant one needs time.
  int64_t share_ms(int64_t timeout_ms) const {
    const auto count = static_cast<int64_t>(addresses_.size());
    const int64_t share_ms = std::max<int64_t>(1, timeout_ms / count) << doublings();
    return std::min({share_ms, timeout_ms, kDialMsMax});
  }
  // All addresses have failed since the last useful connection.
  bool all_failed() const { return failures_ >= addresses_.size(); }

  // A connection failed, or ended before it was of use.
  void Failed(int64_t now_ms, Prng* prng) {
    ++index_;
    ++failures_;
    const bool within_row = failures_ % addresses_.size() != 0;
    const int64_t bound = std::min(kPauseMsMin << doublings(), kPauseMsMax);
    at_ms_ = now_ms + (within_row ? 0 : prng->Between(0, bound));
  }
  // A useful connection ended: its address comes first again, after a short pause.
  void Ended(int64_t now_ms, Prng* prng) {
    failures_ = 0;
    at_ms_ = now_ms + prng->Between(0, kPauseMsMin);
  }

 private:
  // Grows with each row of failures.
  size_t doublings() const { return std::min<size_t>(failures_ / addresses_.size(), 6); }

  const std::vector<std::string> addresses_;
  size_t index_ = 0;
  size_t failures_ = 0;
  int64_t at_ms_;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_DIALING_H_
