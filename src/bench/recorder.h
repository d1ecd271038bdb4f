// Recorder: what is counted of a load, and when.
//
// Thread: one at a time. Times are MonotonicNs values, and those of answers never go back. An
// operation counts towards the rates when its answer comes within the counted interval, and its
// latency is recorded when it should have begun within it; so no request is left out because its
// answer took longer than the interval. A latency runs from the intended start to the answer.
// Nothing is allocated per operation, but once for each name of an error.
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

// One second of the counted interval; the last one may be shorter.
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
  // By RefusedBy; the last counts limits that this client does not know.
  using Refusals = std::array<uint64_t, kRefusedByCount + 1>;
  using Errors = std::map<std::string, ErrorCount, std::less<>>;

  // Nothing counts before. The interval may be shortened while it lasts.
  void Count(int64_t begin_ns, int64_t end_ns);
  void EndAt(int64_t end_ns);

  // A request is handed over for sending, `now_ns - intended_ns` later than it should have been.
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

  // The interval's seconds until `now_ns`, once and at the end.
  std::vector<SecondRow> TakeSeconds(int64_t now_ns);
  // The second that was completed last before `now_ns`, also one without answers: for showing
  // progress. That with which the interval ends only TakeSeconds completes.
  const SecondRow& LastSecond(int64_t now_ns) {
    Roll(now_ns);
    return last_;
  }

 private:
  bool InInterval(int64_t ns) const { return ns >= begin_ns_ && ns < end_ns_; }
  // True: an answer at `now_ns` counts, in current_.
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
