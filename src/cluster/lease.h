// Lease: until when a writer may believe that its claim holds.
//
// Thread: any; pure. By its own boot clock, counted from before each renewal was sent. It bounds
// what leaves without the log: refusals and rates. Grants are safe by the log alone.
#ifndef NOWCALLS_CLUSTER_LEASE_H_
#define NOWCALLS_CLUSTER_LEASE_H_

#include <algorithm>
#include <cstdint>

namespace nowcalls::cluster {

class Lease {
 public:
  // Asked of etcd, which may give more.
  static constexpr int64_t kTtlMs = 2'000;

  // A grant or a renewal that was sent at `sent_ms` was answered with `ttl_ms`.
  void Renewed(int64_t sent_ms, int64_t ttl_ms) {
    // Two clocks run a little apart, and an answer under way takes its time to leave.
    const int64_t sure_ms = ttl_ms - ttl_ms / 5;
    sure_until_ms_ = std::max(sure_until_ms_, sent_ms + sure_ms);
    renew_at_ms_ = sent_ms + ttl_ms / 4;
  }
  // A renewal that was sent at `sent_ms` had no answer.
  void Unanswered(int64_t sent_ms, int64_t now_ms) {
    renew_at_ms_ = std::max(sent_ms + kPauseMs, now_ms);
  }

  bool over(int64_t now_ms) const { return now_ms >= sure_until_ms_; }
  int64_t sure_until_ms() const { return sure_until_ms_; }
  int64_t renew_at_ms() const { return renew_at_ms_; }

 private:
  static constexpr int64_t kPauseMs = 100;

  int64_t sure_until_ms_ = 0;
  int64_t renew_at_ms_ = 0;
};

}  // namespace nowcalls::cluster

#endif  // NOWCALLS_CLUSTER_LEASE_H_
