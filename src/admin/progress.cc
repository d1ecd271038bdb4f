#include "admin/progress.h"

#include <algorithm>
#include <utility>

namespace nowcalls::admin {
namespace {

constexpr int64_t kIntervalMs = 200;
// Back to the first column, and erase to the end of the line.
constexpr std::string_view kEraseLine = "\r\x1b[K";

}  // namespace

Progress::Progress(bool enabled, std::string what, std::function<void(std::string_view)> write,
                   std::function<int64_t()> clock_ms)
    : enabled_(enabled),
      what_(std::move(what)),
      write_(std::move(write)),
      clock_ms_(std::move(clock_ms)),
      started_ms_(clock_ms_()),
      shown_ms_(started_ms_) {}

void Progress::Update() {
  // The interval has passed since the beginning at least once, so no division by 0 below.
  const int64_t now_ms = clock_ms_();
  if (now_ms - shown_ms_ < kIntervalMs) return;
  shown_ms_ = now_ms;
  std::string line(kEraseLine);
  line += std::to_string(count_);
  // The total may be too low: a server grants while its rows are counted.
  if (total_ > 0) line += " of " + std::to_string(std::max(total_, count_));
  line += " " + what_ + ", ";
  const auto elapsed_ms = static_cast<uint64_t>(now_ms - started_ms_);
  line += std::to_string(count_ * 1000 / elapsed_ms) + " a second";
  write_(line);
  visible_ = true;
}

void Progress::Erase() {
  if (visible_) write_(kEraseLine);
  visible_ = false;
}

}  // namespace nowcalls::admin
