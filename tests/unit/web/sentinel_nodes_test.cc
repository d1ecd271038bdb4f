#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/web_snapshots.h"
#include "web/sentinel/nodes.h"

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;
using testing::kNowS;
using testing::LookAt;
using testing::LookAtValues;
using testing::SnapshotAt;

MetricQuery Seconds(int64_t from, int64_t to) {
  return {.from_ms = (kNowS + from) * 1000, .to_ms = (kNowS + to) * 1000};
}

TEST_CASE("a metric line has ten fields, and bars in names are replaced") {
  Series series;
  const Snapshot look = SnapshotAt(0, {LookAt(7, "default", "GET:/a|b", {5, 2, 3, 3'100, 4})});
  series.Add(look);
  CHECK(MetricLines(look, series, Seconds(0, 0)) == "1700000000000|GET:/a_b|5|2|3|0|1033|0|4|0\n");
}

TEST_CASE("metric lines come in the order of time, and both ends of the window belong to it") {
  Series series;
  Snapshot last;
  for (int64_t s = 0; s < 6; ++s) {
    last = SnapshotAt(s, {LookAt(1, "default", "first", {1, 0, 0, 0, 0}),
                          LookAt(2, "default", "second", {0, 1, 0, 0, 0})});
    series.Add(last);
  }
  CHECK(MetricLines(last, series, Seconds(2, 3)) ==
        "1700000002000|first|1|0|0|0|0|0|0|0\n"
        "1700000002000|second|0|1|0|0|0|0|0|0\n"
        "1700000003000|first|1|0|0|0|0|0|0|0\n"
        "1700000003000|second|0|1|0|0|0|0|0|0\n");
  MetricQuery late = Seconds(2, 3);
  late.from_ms += 1;
  late.to_ms += 999;
  CHECK(MetricLines(last, series, late) ==
        "1700000003000|first|1|0|0|0|0|0|0|0\n"
        "1700000003000|second|0|1|0|0|0|0|0|0\n");
  MetricQuery one = Seconds(5, 9);
  one.resource = "second";
  CHECK(MetricLines(last, series, one) == "1700000005000|second|0|1|0|0|0|0|0|0\n");
  CHECK(MetricLines(last, series, Seconds(6, 9)).empty());
}

TEST_CASE("a second without calls has a line only while tokens are held") {
  Series series;
  series.Add(SnapshotAt(0, {LookAt(1, "default", "held", {1, 0, 0, 0, 1}),
                            LookAt(2, "default", "idle", {1, 0, 0, 0, 0})}));
  const Snapshot next = SnapshotAt(
      1, {LookAt(1, "default", "held", {0, 0, 0, 0, 1}), LookAt(2, "default", "idle", {})});
  series.Add(next);
  CHECK(MetricLines(next, series, Seconds(1, 1)) == "1700000001000|held|0|0|0|0|0|0|1|0\n");
}

TEST_CASE("beyond 6000 metric lines those with the fewest calls are left out") {
  Series series;
  Snapshot last;
  constexpr int64_t kFlows = 1'000;
  for (int64_t s = 0; s < 7; ++s) {
    std::vector<FlowLook> flows;
    for (int64_t id = 1; id <= kFlows; ++id) {
      const auto calls = static_cast<uint64_t>(id);
      flows.push_back(LookAt(id, "default", "r" + std::to_string(id), {calls, 0, 0, 0, 0}));
    }
    last = SnapshotAt(s, std::move(flows));
    series.Add(last);
  }
  const std::string lines = MetricLines(last, series, Seconds(0, 6));
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 6'000);
  CHECK(lines.find("|r1|") == std::string::npos);
  CHECK(lines.find("1700000000000|r1000|1000|") != std::string::npos);
  CHECK(lines.find("1700000006000|r1000|1000|") != std::string::npos);
  CHECK(lines.starts_with("1700000000000|"));
}

TEST_CASE("a node has the fields of Sentinel's NodeVo, and its threads are nowCalls") {
  Series series;
  series.Add(SnapshotAt(0, {LookAt(7, "default", "pay", {5, 2, 4, 400, 5})}));
  const Snapshot look = SnapshotAt(1, {LookAt(7, "default", "pay", {3, 1, 2, 500, 6})});
  series.Add(look);
  CHECK(ClusterNodes(look, series, true) ==
        R"([{"resource":"pay","threadNum":6,"passQps":3,"blockQps":1,"totalQps":4,)"
        R"("averageRt":250,"successQps":2,"exceptionQps":0,"oneMinutePass":8,"oneMinuteBlock":3,)"
        R"("oneMinuteException":0,"oneMinuteTotal":11,"timestamp":1700000001007}])");
}

TEST_CASE("calls that failed or timed out are exceptions") {
  Series series;
  FlowLook flow = LookAt(7, "default", "pay", {5, 2, 4, 400, 5});
  flow.came.exceptions = 3;
  series.Add(SnapshotAt(0, {flow}));
  flow.came.exceptions = 1;
  const Snapshot look = SnapshotAt(1, {flow});
  series.Add(look);
  const std::string nodes = ClusterNodes(look, series, true);
  CHECK(nodes.find(R"("exceptionQps":1,)") != std::string::npos);
  CHECK(nodes.find(R"("oneMinuteException":4,)") != std::string::npos);
  CHECK(MetricLines(look, series, Seconds(0, 0)) == "1700000000000|pay|5|2|4|3|100|0|5|0\n");
}

TEST_CASE("a minute has sixty seconds") {
  Series series;
  Snapshot last;
  for (int64_t s = 0; s < 100; ++s) {
    last = SnapshotAt(s, {LookAt(7, "default", "pay", {1, 2, 0, 0, 0})});
    series.Add(last);
  }
  const ordered_json node = ordered_json::parse(ClusterNodes(last, series, true))[0];
  CHECK(node["oneMinutePass"] == 60);
  CHECK(node["oneMinuteBlock"] == 120);
}

// A look of `span_ms` that ends `at_ms` behind kNowS, in which so many calls passed.
Snapshot LookOfSpan(int64_t at_ms, int64_t span_ms, uint64_t granted) {
  FlowLook flow = LookAt(7, "default", "pay", {granted, 0, 0, 0, 0});
  flow.granted_per_s = static_cast<double>(granted) * 1000 / static_cast<double>(span_ms);
  Snapshot look = SnapshotAt(0, {flow});
  look.unix_ms = kNowS * 1000 + at_ms;
  look.span_ms = span_ms;
  return look;
}

TEST_CASE("a call in a short look is one call, in its second and in its minute") {
  Series series;
  Snapshot look;
  for (const int64_t at_ms : {1'003, 1'203, 1'403, 2'003, 3'003}) {
    const int64_t span_ms = at_ms % 1000 == 3 ? 600 : 200;
    look = LookOfSpan(at_ms, span_ms, at_ms == 1'203 ? 1 : 0);
    series.Add(look);
    const ordered_json node = ordered_json::parse(ClusterNodes(look, series, true))[0];
    CAPTURE(at_ms);
    CHECK(node["oneMinutePass"] == (at_ms < 1'203 ? 0 : 1));
    CHECK(node["passQps"] == (at_ms == 2'003 ? 1 : 0));
    const ordered_json metrics = ordered_json::parse(ClusterMetrics(look, series, "default"));
    CHECK(metrics["pay"][0]["passQps"] == (at_ms == 2'003 ? 1 : 0));
  }
}

TEST_CASE("looks within a second and at its end are that second, and no more") {
  Series series;
  Snapshot look;
  int64_t before_ms = 3;
  for (const int64_t at_ms : {403, 1'003, 1'603, 2'003, 3'003}) {
    look = LookOfSpan(at_ms, at_ms - before_ms, static_cast<uint64_t>(at_ms - before_ms));
    series.Add(look);
    before_ms = at_ms;
  }
  CHECK(MetricLines(look, series, Seconds(0, 9)) ==
        "1700000000000|pay|1000|0|0|0|0|0|0|0\n"
        "1700000001000|pay|1000|0|0|0|0|0|0|0\n"
        "1700000002000|pay|1000|0|0|0|0|0|0|0\n");
}

TEST_CASE("beyond 6000 nodes those with the fewest calls are left out, and the sums have all") {
  std::vector<FlowLook> flows;
  constexpr int64_t kFlows = kNodesMax + 500;
  for (int64_t id = 1; id <= kFlows; ++id) {
    flows.push_back(LookAt(id, "default", "r" + std::to_string(id), {id > 500 ? 2U : 1U}));
  }
  const Series series;
  const Snapshot look = SnapshotAt(0, std::move(flows));
  const ordered_json nodes = ordered_json::parse(ClusterNodes(look, series, true));
  REQUIRE(nodes.size() == kNodesMax);
  CHECK(nodes.front()["resource"] == "r501");
  const ordered_json tree = ordered_json::parse(NodeTree(look, series));
  CHECK(tree.size() == kNodesMax + 2);
  CHECK(tree[0]["passQps"] == 500 + 2 * kNodesMax);
}

TEST_CASE("idle resources are left out when asked so, those with tokens are not") {
  Series series;
  const Snapshot look =
      SnapshotAt(0, {LookAt(1, "default", "held", {0, 0, 0, 0, 1}),
                     LookAt(2, "default", "idle", {}), LookAt(3, "default", "", {0, 1, 0, 0, 0})});
  series.Add(look);
  CHECK(ordered_json::parse(ClusterNodes(look, series, true)).size() == 3);
  const ordered_json busy = ordered_json::parse(ClusterNodes(look, series, false));
  REQUIRE(busy.size() == 2);
  CHECK(busy[0]["resource"] == "held");
  CHECK(busy[1]["resource"] == "3");  // A rule that names no resource.
}

TEST_CASE("threads beyond Java's int are shown as its largest") {
  const Series series;
  const Snapshot look = SnapshotAt(0, {LookAt(1, "default", "r", {0, 0, 0, 0, 5'000'000'000})});
  CHECK(ordered_json::parse(ClusterNodes(look, series, true))[0]["threadNum"] == 2'147'483'647);
}

TEST_CASE("the tree has the machine, then each namespace and its flows, with sums") {
  Series series;
  const Snapshot look = SnapshotAt(0, {LookAt(1, "orders", "pay", {1, 0, 1, 10, 1}),
                                       LookAt(2, "default", "read", {2, 3, 0, 0, 2}),
                                       LookAt(3, "orders", "ship", {4, 0, 1, 30, 0})});
  series.Add(look);
  const ordered_json nodes = ordered_json::parse(NodeTree(look, series));
  std::string tree;
  for (const ordered_json& node : nodes) {
    tree += node["id"].dump() + " " + node["parentId"].dump() + " " + node["resource"].dump() +
            " " + node["passQps"].dump() + " " + node["averageRt"].dump() + "\n";
  }
  CHECK(tree == R"("machine-root" null "machine-root" 7 20)"
                "\n"
                R"("namespace-default" "machine-root" "default" 2 0)"
                "\n"
                R"("flow-2" "namespace-default" "read" 2 0)"
                "\n"
                R"("namespace-orders" "machine-root" "orders" 5 20)"
                "\n"
                R"("flow-1" "namespace-orders" "pay" 1 10)"
                "\n"
                R"("flow-3" "namespace-orders" "ship" 4 30)"
                "\n");
  CHECK(ordered_json::parse(NodeTree(SnapshotAt(0, {}), series)).size() == 1);
}

TEST_CASE("two rules of one flow id are two nodes with ids and minutes of their own") {
  Series series;
  const Snapshot look = SnapshotAt(0, {LookAt(1, "orders", "pay", {1, 0, 1, 10, 1}),
                                       LookAtValues(1, "orders", "pay", {5, 2, 0, 0, 2})});
  series.Add(look);
  const ordered_json tree = ordered_json::parse(NodeTree(look, series));
  REQUIRE(tree.size() == 4);
  CHECK(tree[2]["id"] == "flow-1");
  CHECK(tree[2]["oneMinutePass"] == 1);
  CHECK(tree[3]["id"] == "flow-1-value");
  CHECK(tree[3]["oneMinutePass"] == 5);
  CHECK(MetricLines(look, series, Seconds(0, 0)) ==
        "1700000000000|pay|1|0|1|0|10|0|1|0\n"
        "1700000000000|pay|5|2|0|0|0|0|2|0\n");
}

TEST_CASE("metrics of a namespace are listed by resource") {
  const Series series;
  const Snapshot look = SnapshotAt(
      0, {LookAt(1, "orders", "pay", {1, 0, 0, 0, 0}), LookAt(2, "default", "pay", {2, 0, 0, 0, 0}),
          LookAt(3, "orders", "pay", {3, 4, 0, 0, 0})});
  CHECK(ClusterMetrics(look, series, "orders") ==
        R"({"pay":[{"timestamp":1700000000007,"resourceName":"pay","flowId":1,"passQps":1.0,)"
        R"("blockQps":0.0,"rt":0},{"timestamp":1700000000007,"resourceName":"pay","flowId":3,)"
        R"("passQps":3.0,"blockQps":4.0,"rt":0}]})");
  CHECK(ClusterMetrics(look, series, "nobody") == "{}");
}

}  // namespace
}  // namespace nowcalls::web
