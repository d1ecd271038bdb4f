#include "bench/recorder.h"

#include <algorithm>
#include <utility>

namespace nowcalls::bench {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

}  // namespace

void Recorder::Count(int64_t begin_ns, int64_t end_ns) {
  begin_ns_ = begin_ns;
  end_ns_ = end_ns;
  second_end_ns_ = begin_ns + kSecondNs;
  // Reserved for an hour, so that no second of a usual run allocates.
  constexpr int64_t kSecondsReserved = 3600;
  seconds_.reserve(
      static_cast<size_t>(std::min((end_ns - begin_ns) / kSecondNs + 1, kSecondsReserved)));
}

void Recorder::EndAt(int64_t end_ns) { end_ns_ = std::min(end_ns_, end_ns); }

void Recorder::Refused(RefusedBy limit, int64_t intended_ns, int64_t now_ns) {
  if (InInterval(intended_ns)) refused_.Record(now_ns - intended_ns);
  if (!Roll(now_ns)) return;
  ++current_.refused;
  ++refusals_[std::min<size_t>(static_cast<size_t>(limit), kRefusedByCount)];
}

void Recorder::Failed(std::string_view name, std::string_view text, int64_t now_ns) {
  ++errors_ever_;
  if (!Roll(now_ns)) return;
  ++current_.errors;
  auto error = errors_.find(name);
  if (error == errors_.end()) {
    error = errors_.emplace(std::string(name), ErrorCount{0, std::string(text)}).first;
  }
  ++error->second.count;
}

std::vector<SecondRow> Recorder::TakeSeconds(int64_t now_ns) {
  if (begin_ns_ > now_ns) return {};
  // Seconds without answers are completed, too, up to the last of the interval, which may be short.
  const int64_t last_ns = std::min(now_ns, end_ns_ - 1);
  if (last_ns >= second_end_ns_) CloseSeconds(last_ns);
  CloseSecond();
  second_end_ns_ = INT64_MAX;
  return std::exchange(seconds_, {});
}

void Recorder::CloseSeconds(int64_t now_ns) {
  while (now_ns >= second_end_ns_) {
    CloseSecond();
    second_end_ns_ += kSecondNs;
  }
}

void Recorder::CloseSecond() {
  current_.p99_ns = second_.Quantile(990'000);
  current_.max_ns = second_.max();
  seconds_.push_back(current_);
  last_ = std::exchange(current_, {});
  second_.Clear();
}

}  // namespace nowcalls::bench
