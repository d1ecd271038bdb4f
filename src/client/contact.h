// Contact: when a connection must ping its server.
//
// Thread: the session's. Due: after 10 s of silence; with tokens also a third of the smallest
// clientOfflineTime after the last confirmation (client/validity.h).
#ifndef NOWCALLS_CLIENT_CONTACT_H_
#define NOWCALLS_CLIENT_CONTACT_H_

#include <algorithm>
#include <cstdint>

namespace nowcalls::client {

class Contact {
 public:
  void Begin(int64_t now_ms) {
    heard_ms_ = now_ms;
    pinged_ms_ = now_ms;
    probed_ms_ = 0;
  }
  // Any byte of the server counts.
  void Heard(int64_t now_ms) {
    heard_ms_ = now_ms;
    probed_ms_ = 0;
  }
  void Pinged(int64_t now_ms) {
    pinged_ms_ = now_ms;
    if (probed_ms_ == 0) probed_ms_ = now_ms;
  }

  int64_t heard_ms() const { return heard_ms_; }
  // Whether a ping is unanswered.
  bool probes() const { return probed_ms_ != 0; }
  // When an unanswered ping times out; INT64_MAX: none.
  int64_t SilentAt(int64_t timeout_ms) const {
    return probes() ? probed_ms_ + timeout_ms : INT64_MAX;
  }
  // `confirmed_ms`: when the latest answered request was sent. `absence_ms`: the smallest
  // clientOfflineTime; INT64_MAX: none.
  int64_t PingAt(int64_t confirmed_ms, int64_t absence_ms) const {
    constexpr int64_t kSilenceMs = 10'000;
    constexpr int64_t kPauseMsMin = 10;  // Whatever time a server tells.
    const int64_t at_ms = probes() ? INT64_MAX : heard_ms_ + kSilenceMs;
    if (absence_ms == INT64_MAX) return at_ms;
    const int64_t asked_ms = std::max(confirmed_ms, pinged_ms_);
    return std::min(at_ms, asked_ms + std::max(absence_ms / 3, kPauseMsMin));
  }

 private:
  int64_t heard_ms_ = 0;
  int64_t pinged_ms_ = 0;  // Or the connection began.
  int64_t probed_ms_ = 0;  // 0: no answer to a ping is awaited.
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_CONTACT_H_
