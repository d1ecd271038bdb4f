// LineQuota: which of many log lines that others cause are written.
//
// Thread: loop. Remembers no more origins than lines of a window.
#ifndef NOWCALLS_ENGINE_LINE_QUOTA_H_
#define NOWCALLS_ENGINE_LINE_QUOTA_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/time.h"

namespace nowcalls::engine {

class LineQuota {
 public:
  // Lines in each window of ten seconds.
  LineQuota(uint32_t of_origin, uint32_t of_all) : of_origin_(of_origin), of_all_(of_all) {}

  // `origin`: net::OriginOf.
  bool Take(const std::string& origin, Instant now) {
    if (now - began_ >= kWindowMs) {
      began_ = now;
      lines_ = 0;
      by_origin_.clear();
    }
    // A new origin gets its entry only with its first line.
    if (lines_ == of_all_) return false;
    uint32_t& its = by_origin_[origin];
    if (its == of_origin_) return false;
    ++its;
    ++lines_;
    return true;
  }

 private:
  static constexpr int64_t kWindowMs = 10'000;

  const uint32_t of_origin_;
  const uint32_t of_all_;
  Instant began_{};
  uint32_t lines_ = 0;
  absl::flat_hash_map<std::string, uint32_t> by_origin_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_LINE_QUOTA_H_
