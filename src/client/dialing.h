// Dialing: which address a session dials next, and when.
//
// Thread: the session's. After each failed row of addresses follows a random pause of at most
// min(kPauseMsMin << rows, kPauseMsMax).
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
  // When to dial; INT64_MAX: dialling or connected.
  int64_t at_ms() const { return at_ms_; }
  // ClientSession::Connected or DialFailed follows.
  void Begin() { at_ms_ = INT64_MAX; }
  // A dial's equal share of a call's timeout, doubled each row.
  int64_t share_ms(int64_t timeout_ms) const {
    const auto count = static_cast<int64_t>(addresses_.size());
    const int64_t share_ms = std::max<int64_t>(1, timeout_ms / count) << doublings();
    return std::min({share_ms, timeout_ms, kDialMsMax});
  }
  // Since the last useful connection.
  bool all_failed() const { return failures_ >= addresses_.size(); }

  // A dial failed, or its connection was of no use.
  void Failed(int64_t now_ms, Prng* prng) {
    ++index_;
    ++failures_;
    const bool within_row = failures_ % addresses_.size() != 0;
    const int64_t bound = std::min(kPauseMsMin << doublings(), kPauseMsMax);
    at_ms_ = now_ms + (within_row ? 0 : prng->Between(0, bound));
  }
  // A useful connection ended. Its address is next, within kPauseMsMin.
  void Ended(int64_t now_ms, Prng* prng) {
    failures_ = 0;
    at_ms_ = now_ms + prng->Between(0, kPauseMsMin);
  }

 private:
  size_t doublings() const { return std::min<size_t>(failures_ / addresses_.size(), 6); }

  const std::vector<std::string> addresses_;
  size_t index_ = 0;
  size_t failures_ = 0;
  int64_t at_ms_;
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_DIALING_H_
