// Recorder: counts and latencies of a load.
//
// Thread: one at a time. Times are MonotonicNs; those of answers never go back. Rates count answers
// within the counted interval, latencies requests due within it.
#ifndef NOWCALLS_BENCH_RECORDER_H_
#define NOWCALLS_BENCH_RECORDER_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bench/histogram.h"
#include "nowcalls/types.h"

namespace nowcalls::bench {

// The last may be shorter.
struct SecondRow {
  uint64_t granted = 0;
  uint64_t released = 0;
  uint64_t refused = 0;
  uint64_t errors = 0;
  int64_t p99_ns = 0;  // Of those that were granted or released, by the time of the answer.
  int64_t max_ns = 0;
};

struct ErrorCount {
  uint64_t count = 0;
  std::string first_text;
};

class Recorder {
 public:
  // By RefusedBy; the last: limits unknown to this client.
  using Refusals = std::array<uint64_t, kRefusedByCount + 1>;
  using Errors = std::map<std::string, ErrorCount, std::less<>>;

  // Nothing counts before. EndAt may shorten the interval.
  void Count(int64_t begin_ns, int64_t end_ns);
  void EndAt(int64_t end_ns);

  // Delay of sending: `now_ns - intended_ns`.
  void Started(int64_t intended_ns, int64_t now_ns) {
    if (InInterval(intended_ns)) send_delay_.Record(now_ns - intended_ns);
  }
  void Granted(int64_t intended_ns, int64_t now_ns) {
    const Histogram::Duration latency(now_ns - intended_ns);
    if (InInterval(intended_ns)) acquire_.Record(latency);
    if (!Roll(now_ns)) return;
    ++current_.granted;
    second_.Record(latency);
  }
  void Released(int64_t intended_ns, int64_t now_ns) {
    const Histogram::Duration latency(now_ns - intended_ns);
    if (InInterval(intended_ns)) release_.Record(latency);
    if (!Roll(now_ns)) return;
    ++current_.released;
    second_.Record(latency);
  }
  void Refused(RefusedBy limit, int64_t intended_ns, int64_t now_ns);
  void Failed(std::string_view name, std::string_view text, int64_t now_ns);

  int64_t begin_ns() const { return begin_ns_; }
  int64_t end_ns() const { return end_ns_; }
  const Histogram& acquire() const { return acquire_; }
  const Histogram& release() const { return release_; }
  const Histogram& refused() const { return refused_; }
  const Histogram& send_delay() const { return send_delay_; }
  const Refusals& refusals() const { return refusals_; }
  const Errors& errors() const { return errors_; }
  // Also outside the interval.
  uint64_t errors_ever() const { return errors_ever_; }

  // The seconds until `now_ns`. Call once, at the end.
  std::vector<SecondRow> TakeSeconds(int64_t now_ns);
  // The last complete second. TakeSeconds completes the interval's last.
  const SecondRow& LastSecond(int64_t now_ns) {
    Roll(now_ns);
    return last_;
  }

 private:
  bool InInterval(int64_t ns) const { return ns >= begin_ns_ && ns < end_ns_; }
  bool Roll(int64_t now_ns) {
    if (!InInterval(now_ns)) return false;
    if (now_ns >= second_end_ns_) CloseSeconds(now_ns);
    return true;
  }
  void CloseSeconds(int64_t now_ns);
  void CloseSecond();

  int64_t begin_ns_ = INT64_MAX;
  int64_t end_ns_ = INT64_MAX;
  int64_t second_end_ns_ = INT64_MAX;
  SecondRow current_;
  SecondRow last_;
  std::vector<SecondRow> seconds_;
  Histogram acquire_;
  Histogram release_;
  Histogram refused_;
  Histogram send_delay_;
  Histogram second_;
  Refusals refusals_{};
  Errors errors_;
  uint64_t errors_ever_ = 0;
};

}  // namespace nowcalls::bench

#endif  // NOWCALLS_BENCH_RECORDER_H_
