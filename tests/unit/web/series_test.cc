// The last minutes of flows.
#include "web/series.h"

#include <doctest/doctest.h>

#include "support/web_snapshots.h"

namespace nowcalls::web {
namespace {

// A look at one flow.
Snapshot LookAt(int64_t unix_s, int64_t flow_id, uint64_t now_calls, uint64_t granted) {
  Snapshot snapshot;
  snapshot.unix_ms = unix_s * 1000;
  FlowLook look;
  look.row.flow_id = flow_id;
  look.row.now_calls = now_calls;
  look.came.granted = granted;
  snapshot.flows.push_back(look);
  return snapshot;
}

}  // namespace

TEST_CASE("points are kept for five minutes, and read in their order") {
  Series series;
  for (int64_t second = 1; second <= 400; ++second) {
    series.Add(LookAt(second, 7, static_cast<uint64_t>(second), 1));
  }
  const std::vector<Point> all = series.PointsOf(OfFlow(7));
  REQUIRE(all.size() == Series::kPoints);
  CHECK(all.front().unix_s == 101);
  CHECK(all.back().unix_s == 400);
  CHECK(all.back().now_calls == 400);
  CHECK(series.PointsOf(OfFlow(7), 399).size() == 2);
  CHECK(series.PointsOf(OfFlow(8)).empty());
  CHECK(series.PointsOf({}).back().granted == 1);
  const auto window = series.All(390, 394);
  REQUIRE(window.size() == 1);
  CHECK(window.at(OfFlow(7)).size() == 5);
}

TEST_CASE("a flow that is idle is not remembered, and one that became idle is forgotten") {
  Series series;
  series.Add(LookAt(1, 7, 0, 0));
  CHECK(series.PointsOf(OfFlow(7)).empty());
  series.Add(LookAt(2, 7, 1, 1));
  for (int64_t second = 3; second <= 302; ++second) series.Add(LookAt(second, 7, 0, 0));
  CHECK(!series.PointsOf(OfFlow(7)).empty());
  series.Add(LookAt(303, 7, 0, 0));
  CHECK(series.PointsOf(OfFlow(7)).empty());
}

TEST_CASE("two looks within a second are one point, also once the oldest points are replaced") {
  for (const int64_t before : {1, 700}) {
    Series series;
    for (int64_t second = 1; second <= before; ++second) series.Add(LookAt(second, 7, 1, 1));
    const size_t points = series.PointsOf(OfFlow(7)).size();
    series.Add(LookAt(before, 7, 5, 2));
    REQUIRE(series.PointsOf(OfFlow(7)).size() == points);
    CHECK(series.PointsOf(OfFlow(7)).back().unix_s == before);
    CHECK(series.PointsOf(OfFlow(7)).back().now_calls == 5);
    CHECK(series.PointsOf(OfFlow(7)).back().granted == 3);
    CHECK(series.PointsOf({}).back().granted == 3);
  }
}

TEST_CASE("of too many flows the one that was idle for longest makes room") {
  Series series;
  const auto most = static_cast<int64_t>(Series::kFlowsMax);
  for (int64_t flow = 1; flow <= most; ++flow) series.Add(LookAt(flow == 7 ? 1 : 2, flow, 1, 1));
  series.Add(LookAt(3, most + 1, 1, 1));
  CHECK(series.PointsOf(OfFlow(7)).empty());
  CHECK(!series.PointsOf(OfFlow(most + 1)).empty());
  CHECK(series.All(0, INT64_MAX).size() == Series::kFlowsMax);
}

TEST_CASE("a flow finds no room while all others are in use") {
  Series series;
  const auto most = static_cast<int64_t>(Series::kFlowsMax);
  for (int64_t flow = 1; flow <= most; ++flow) series.Add(LookAt(1, flow, 1, 1));
  series.Add(LookAt(1, most + 1, 1, 1));
  CHECK(series.PointsOf(OfFlow(most + 1)).empty());
  CHECK(!series.PointsOf(OfFlow(1)).empty());
}

}  // namespace nowcalls::web
