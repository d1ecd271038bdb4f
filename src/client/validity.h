// Validity: until when a token is surely its holder's own.
//
//   hold_end    = send time of the grant or last confirmed keep + Sure(hold)
//   contact_end = send time of the session's latest answered request + Sure(clientOfflineTime)
//   until       = min(hold_end, contact_end)
//   Sure(span)  = span - 1 % - 2 ms, for clocks that differ
//
// An unknown span bounds nothing.
//
// Thread: the session's writes, any reads. Times are BoottimeMs values.
#ifndef NOWCALLS_CLIENT_VALIDITY_H_
#define NOWCALLS_CLIENT_VALIDITY_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace nowcalls::client {

class Validity {
 public:
  // `contact_ms`: that send time, shared by a session. Null: a local token.
  void Watch(std::shared_ptr<const std::atomic<int64_t>> contact_ms) {
    contact_ms_ = std::move(contact_ms);
  }
  void HoldFrom(int64_t sent_ms, int64_t hold_ms) { hold_end_ms_ = sent_ms + Sure(hold_ms); }
  void AbsenceMax(int64_t offline_ms) { absence_ms_ = Sure(offline_ms); }

  int64_t hold_end_ms() const { return hold_end_ms_; }
  int64_t contact_end_ms() const {
    const int64_t absence_ms = absence_ms_;
    return absence_ms == INT64_MAX || contact_ms_ == nullptr ? INT64_MAX
                                                             : *contact_ms_ + absence_ms;
  }
  // INT64_MAX: no end.
  int64_t until_ms() const { return std::min(hold_end_ms(), contact_end_ms()); }
  const char* reason() const {
    return hold_end_ms() <= contact_end_ms() ? "resource_timeout" : "client_offline";
  }

  static int64_t Sure(int64_t span_ms) {
    constexpr int64_t kMarginMs = 2;
    return span_ms - span_ms / 100 - kMarginMs;
  }

 private:
  std::atomic<int64_t> hold_end_ms_{INT64_MAX};
  std::atomic<int64_t> absence_ms_{INT64_MAX};
  std::shared_ptr<const std::atomic<int64_t>> contact_ms_{};
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_VALIDITY_H_
