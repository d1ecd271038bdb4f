// The part of the oracle that judges calls a second.
#include <algorithm>

#include "sim/oracle.h"

namespace nowcalls::sim {

// A window of Sentinel's default form: a second in ten buckets. Of calls that surely passed within
// nine buckets, the last one saw all others in its window. Milliseconds are cut off.
void Oracle::CallsPassed(int64_t flow, int64_t count, uint64_t asked, int64_t asked_ms,
                         int64_t wait_ms) {
  constexpr int64_t kSureMs = 900 - 2;
  constexpr int64_t kKeptMs = 10'000;
  const uint64_t now = Tick();
  // As in Sentinel, a call that is borrowed from the next bucket does not count before that begins:
  // meanwhile others may fill the window, which then holds both.
  if (asked <= passed_from_ || wait_ms > 0) return;
  const int64_t done_ms = timeline_->now_ms() + wait_ms;
  std::vector<Passed>& all = passed_[flow];
  all.push_back({.count = count, .asked = asked, .asked_ms = asked_ms, .done_ms = done_ms});
  std::erase_if(all, [&](const Passed& p) { return p.done_ms < done_ms - kKeptMs; });
  if (flows_[flow].shadow) return;
  for (const Passed& first : all) {
    int64_t calls = 0;
    uint64_t from = now;
    for (const Passed& p : all) {
      if (p.asked_ms < first.asked_ms || p.done_ms > first.asked_ms + kSureMs) continue;
      calls += p.count;
      from = std::min(from, p.asked);
    }
    // A rule that was gone in between begins a window anew.
    if (calls == 0 || levels_.MayBeAbsent(flow, from, now)) continue;
    const int64_t limit = levels_.Highest(flow, from, now);
    if (calls <= limit) continue;
    return Violation("S4 " + std::to_string(calls) + " calls of flow " + std::to_string(flow) +
                     " passed within a second that allows " + std::to_string(limit));
  }
}

}  // namespace nowcalls::sim
