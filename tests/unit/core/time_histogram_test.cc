// Histograms of times, and what a flow's holds and waits leave in theirs.
#include "core/tables/time_histogram.h"

#include <doctest/doctest.h>

#include <cstddef>

#include "support/core_harness.h"
#include "support/only_flow.h"
#include "unit/core/waiting_calls.h"

namespace nowcalls::core {
namespace {

using testing::CoreHarness;

const Flow& FlowWithTimes(CoreHarness* h) {
  return h->core().flows().at(OnlyFlow(h->core().flows(), 1));
}

TEST_CASE("quantiles are exact when short, at most a quarter too long otherwise, never too short") {
  TimeHistogram times;
  CHECK(times.Read().Quantile(0.5) == 0);
  for (int64_t ms = 1; ms <= 1000; ++ms) times.Add(ms);
  for (const double quantile : {0.001, 0.005, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0}) {
    CAPTURE(quantile);
    const auto exact = static_cast<double>(1000) * quantile;
    const auto told = static_cast<double>(times.Read().Quantile(quantile));
    CHECK(told >= exact);
    CHECK(told <= exact * 1.25);
  }
  CHECK(times.Read().Quantile(0.005) == 5);
  CHECK(times.longest_ms() == 1000);
  CHECK(times.Read().Quantile(1) == 1000);
  times.Add(-5);
  CHECK(times.Read().Quantile(0.0001) == 0);
  TimeHistogram extreme;
  extreme.Add(INT64_MAX);
  CHECK(extreme.Read().Quantile(0.5) == INT64_MAX);
}

TEST_CASE("times are counted exactly below the edges of buckets, and summed") {
  TimeHistogram times;
  CHECK(times.Read().CountBelow(10) == 0);
  uint64_t sum = 0;
  for (int64_t ms = 0; ms < 70'000; ms += 3) {
    times.Add(ms);
    sum += static_cast<uint64_t>(ms);
  }
  CHECK(times.sum_ms() == sum);
  const auto reading = times.Read();
  size_t edges = 0;
  for (uint64_t ms = 1; ms <= 70'000; ++ms) {
    if (!TimeHistogram::IsEdge(ms)) continue;
    ++edges;
    CAPTURE(ms);
    CHECK(reading.CountBelow(ms) == (ms + 2) / 3);
  }
  CHECK(edges == 8 + 4 * 13);
  CHECK_FALSE(TimeHistogram::IsEdge(0));
  CHECK_FALSE(TimeHistogram::IsEdge(100));
  CHECK(TimeHistogram::IsEdge(uint64_t{7} << 29));
  CHECK_FALSE(TimeHistogram::IsEdge(uint64_t{8} << 30));  // The last bucket has no end.
}

TEST_CASE("times that are too many for their bucket lose a half, of all and of the sum") {
  TimeHistogramUpTo<100> times;
  for (int i = 0; i < 50; ++i) times.Add(1);
  for (int i = 0; i < 99; ++i) times.Add(5);
  CHECK(times.Read().count() == 149);
  CHECK(times.Read().Quantile(0.3) == 1);
  CHECK(times.sum_ms() == 50 + 99 * 5);
  times.Add(5);
  CHECK(times.Read().count() == 75);
  CHECK(times.sum_ms() == (50 + 100 * 5) / 2);
  CHECK(times.Read().Quantile(0.3) == 1);
  CHECK(times.Read().Quantile(0.4) == 5);
  CHECK(times.longest_ms() == 5);
}

TEST_CASE("a flow tells how long its tokens were held") {
  CoreHarness h;
  h.Rules({{.flow = 1, .resource_timeout_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  for (const int64_t ms : {5, 5, 5, 4000}) {
    const TokenId token = h.Take(a, 1);
    h.Sleep(ms);
    h.Release(a, token);
  }
  const TimeHistogram& held = FlowWithTimes(&h).held_times;
  CHECK(held.Read().count() == 4);
  CHECK(held.Read().Quantile(0.5) == 5);
  CHECK(held.longest_ms() == 4000);
  CHECK(held.sum_ms() == 4015);
  CHECK(FlowWithTimes(&h).waited_times == nullptr);
}

TEST_CASE("a flow tells how long acquires waited that were answered, whatever the answer") {
  CoreHarness h;
  h.Rules({{.flow = 1, .count = 1, .resource_timeout_ms = 100'000}});
  const SessionSlot a = h.Hello("a");
  const TokenId token = h.Take(a, 1);
  h.Ask(a, Wait(1, 20), 1);
  h.Ask(a, Wait(1, 300), 2);
  CHECK(FlowWithTimes(&h).waited_times == nullptr);
  h.Pass(20);
  CHECK(h.LateText() == "1 BLOCKED queue_timeout");
  h.Pass(100);
  h.Release(a, token);
  CHECK(h.LateText() == "2 OK");
  const TimeHistogram& waited = *FlowWithTimes(&h).waited_times;
  CHECK(waited.Read().count() == 2);
  CHECK(waited.sum_ms() == 140);
  CHECK(waited.longest_ms() == 120);
  CHECK(waited.Read().CountBelow(96) == 1);
}

}  // namespace
}  // namespace nowcalls::core
