#include "sim/trace.h"

#include <algorithm>

namespace nowcalls::sim {
namespace {

std::string TimeText(int64_t at_us) {
  std::string micros = std::to_string(at_us % kMs);
  micros.insert(0, 3 - micros.size(), '0');
  std::string text = std::to_string(at_us / kMs) + "." + micros;
  text.insert(0, 11 - std::min<size_t>(11, text.size()), ' ');
  return text + " ms  ";
}

}  // namespace

void Trace::Finish() {
  constexpr uint64_t kFnvPrime = 0x100000001b3;
  auto at = static_cast<uint64_t>(timeline_->now_us());
  for (int i = 0; i < 8; ++i, at >>= 8) hash_ = (hash_ ^ (at & 0xff)) * kFnvPrime;
  for (const char c : line_) hash_ = (hash_ ^ static_cast<uint8_t>(c)) * kFnvPrime;
  if (!keeps_lines_) return;
  lines_.push_back(TimeText(timeline_->now_us()) + line_);
  texts_.push_back(line_);
}

}  // namespace nowcalls::sim
