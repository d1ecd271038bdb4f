// CommitPace: whether commits have been quick lately.
//
// Thread: Took one at a time; quick any.
#ifndef NOWCALLS_SERVER_COMMIT_COMMIT_PACE_H_
#define NOWCALLS_SERVER_COMMIT_COMMIT_PACE_H_

#include <atomic>
#include <cstdint>

namespace nowcalls::server {

class CommitPace {
 public:
  // Ten times a good fdatasync.
  static constexpr int64_t kQuickUs = 1'000;

  void Took(int64_t commit_us) {
    const double mean_us = mean_us_;
    mean_us_ = mean_us + (static_cast<double>(commit_us) - mean_us) / kLast;
  }

  // False after a start or a stall, until enough commits were quick.
  bool quick() const { return mean_us_ < kQuickUs; }

 private:
  static constexpr double kLast = 16;  // The mean forgets a commit after about so many others.

  std::atomic<double> mean_us_ = 2 * kQuickUs;
};

}  // namespace nowcalls::server

#endif  // NOWCALLS_SERVER_COMMIT_COMMIT_PACE_H_
