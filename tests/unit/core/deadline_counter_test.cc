#include "core/tables/deadline_counter.h"

#include <doctest/doctest.h>

#include <set>

#include "base/prng.h"

namespace nowcalls::core {
namespace {

TEST_CASE("a deadline is never below the lowest span, and due at most one span late") {
  for (const int64_t deadline_ms : {0, 1, 63, 64, 65, 1000, 1'000'000}) {
    DeadlineCounter counter;
    counter.Add(deadline_ms);
    CAPTURE(deadline_ms);
    CHECK(counter.lowest_ms() <= deadline_ms);
    CHECK(counter.lowest_due_ms() > deadline_ms);
    CHECK(counter.lowest_due_ms() - deadline_ms <= DeadlineCounter::kSpanMs);
  }
}

TEST_CASE("a span counts until its last deadline is removed") {
  DeadlineCounter counter;
  counter.Add(100);
  counter.Add(101);
  counter.Add(1000);
  counter.Remove(100);
  CHECK(counter.lowest_ms() == 64);
  counter.Remove(101);
  CHECK(counter.lowest_ms() == 960);
  CHECK_FALSE(counter.empty());
  counter.Remove(1000);
  CHECK(counter.empty());
}

TEST_CASE("the lowest span is that of the least of many random deadlines") {
  Prng prng(5);
  DeadlineCounter counter;
  std::multiset<int64_t> model;
  for (int step = 0; step < 20'000; ++step) {
    if (model.empty() || prng.Below(2) == 0) {
      const int64_t deadline_ms = prng.Between(0, 100'000);
      counter.Add(deadline_ms);
      model.insert(deadline_ms);
    } else {
      auto it = model.lower_bound(prng.Between(0, 100'000));
      if (it == model.end()) it = model.begin();
      counter.Remove(*it);
      model.erase(it);
    }
    REQUIRE(counter.empty() == model.empty());
    if (model.empty()) continue;
    REQUIRE(counter.lowest_ms() == *model.begin() / 64 * 64);
  }
}

}  // namespace
}  // namespace nowcalls::core
