// DeadlineCounter: live tokens by span of their deadlines.
//
// Thread: loop. Uncommitted tokens count, too.
#ifndef NOWCALLS_CORE_TABLES_DEADLINE_COUNTER_H_
#define NOWCALLS_CORE_TABLES_DEADLINE_COUNTER_H_

#include <cstdint>

#include "absl/container/btree_map.h"
#include "base/check.h"

namespace nowcalls::core {

class DeadlineCounter {
 public:
  // A token is seen as due at most this long after its deadline.
  static constexpr int64_t kSpanMs = 64;

  // REQUIRES: deadline_ms >= 0.
  void Add(int64_t deadline_ms) { ++spans_[deadline_ms / kSpanMs]; }

  void Remove(int64_t deadline_ms) {
    auto it = spans_.find(deadline_ms / kSpanMs);
    NOWCALLS_CHECK(it != spans_.end());
    if (--it->second == 0) spans_.erase(it);
  }

  bool empty() const { return spans_.empty(); }
  // No deadline is below it. REQUIRES: !empty().
  int64_t lowest_ms() const { return spans_.begin()->first * kSpanMs; }
  // The lowest span has passed. REQUIRES: !empty().
  int64_t lowest_due_ms() const { return lowest_ms() + kSpanMs; }

 private:
  absl::btree_map<int64_t, uint32_t> spans_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_DEADLINE_COUNTER_H_
