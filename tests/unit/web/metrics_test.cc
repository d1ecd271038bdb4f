// /metrics from snapshots made by hand.
#include "web/metrics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/web_snapshots.h"
#include "web/flow_metrics.h"

namespace nowcalls::web {
namespace {

using testing::Contains;

FlowLook FlowOf(int64_t flow_id, uint64_t now_calls) {
  FlowLook look;
  look.row.flow_id = flow_id;
  look.row.name_space = flow_id < 10 ? "shop" : "batch";
  look.row.resource = "say \"hi\"\\\n";
  look.row.level = 20;
  look.row.now_calls = now_calls;
  look.row.oldest_issued_ms = 1'000;
  look.row.counters.emplace();
  look.row.counters->granted = 7;
  look.row.counters->refused[static_cast<size_t>(RefusedBy::kLevel)] = 3;
  return look;
}

Snapshot ThreeFlows() {
  Snapshot snapshot;
  snapshot.ledger_ms = 3'500;
  snapshot.info = std::make_shared<const nlohmann::ordered_json>(nlohmann::ordered_json{
      {"version", "1.2.3"},
      {"counts", {{"tokens", 5}}},
      {"limits", {{"sentinel_wait_ms_max", 15}}},
      {"totals", {{"refused", {{"level", 3}, {"rate", 0}}}}},
      {"ledger", {{"disk_low", true}, {"disk_free_bytes", nullptr}}},
  });
  snapshot.flows = {FlowOf(1, 2), FlowOf(2, 9), FlowOf(11, 5)};
  return snapshot;
}

std::vector<wire::FigureInfo> Figures() {
  using enum wire::FigureKind;
  return {{"version", kText, "", "version", ""},
          {"counts.tokens", kGauge, "", "live tokens", ""},
          {"limits.sentinel_wait_ms_max", kSetting, "ms", "longest wait", ""},
          {"totals.refused", kCounter, "", "refusals", "reason"},
          {"ledger.disk_low", kFlag, "", "low", ""},
          {"ledger.disk_free_bytes", kGauge, "bytes", "free", ""}};
}

std::string Metrics(const std::map<std::string, std::string>& query, const std::string& accept = "",
                    const Snapshot& snapshot = ThreeFlows()) {
  static const Board board;
  const auto figures = Figures();
  return testing::WholeBody(AnswerMetrics({.path = "/metrics", .query = query, .accept = accept},
                                          std::make_shared<Snapshot>(snapshot), board, figures, 0));
}

}  // namespace

TEST_CASE("figures become metrics by their table: groups, seconds, labels") {
  const std::string text = Metrics({});
  CHECK(Contains(text,
                 "# HELP nowcalls_tokens live tokens\n# TYPE nowcalls_tokens gauge\n"
                 "nowcalls_tokens 5\n"));
  CHECK(Contains(text, "nowcalls_limit_sentinel_wait_max_seconds 0.015\n"));
  CHECK(Contains(text,
                 "# TYPE nowcalls_refused_total counter\n"
                 "nowcalls_refused_total{reason=\"level\"} 3\n"
                 "nowcalls_refused_total{reason=\"rate\"} 0\n"));
  CHECK(Contains(text, "nowcalls_ledger_disk_low 1\n"));
  CHECK(Contains(text, "nowcalls_server_info{version=\"1.2.3\"} 1\n"));
  CHECK(!Contains(text, "disk_free"));  // The server does not know it.
}

TEST_CASE("flows have their labels, and names keep their bytes") {
  const std::string text = Metrics({{"flow", "1"}});
  const std::string labels = "{flow_id=\"1\",namespace=\"shop\",resource=\"say \\\"hi\\\"\\\\\\n\"";
  CHECK(Contains(text, "nowcalls_flow_now_calls" + labels + "} 2\n"));
  CHECK(Contains(text, "nowcalls_flow_oldest_token_seconds" + labels + "} 2.5\n"));
  CHECK(Contains(text, "nowcalls_flow_grants_total" + labels + "} 7\n"));
  CHECK(Contains(text, "nowcalls_flow_refusals_total" + labels + ",reason=\"level\"} 3\n"));
  CHECK(!Contains(text, "flow_id=\"2\""));
}

TEST_CASE("how the rules of a namespace were loaded is told with their source") {
  Snapshot snapshot = ThreeFlows();
  snapshot.namespaces.resize(3);
  wire::NamespaceRow& sound = snapshot.namespaces[0];
  sound.name_space = "shop";
  sound.source = "rpc";
  sound.loaded_ms = 1'500;
  sound.warnings = 0;
  wire::NamespaceRow& refused = snapshot.namespaces[1];
  refused.name_space = "api";
  refused.source = "file:/a.json";
  refused.warnings = 2;
  refused.refused_ms = 3'000;
  refused.refusal = "rule 1";
  snapshot.namespaces[2].name_space = "unused";
  static const Board board;
  const auto figures = Figures();
  const std::string text =
      testing::WholeBody(AnswerMetrics({.path = "/metrics", .query = {}, .accept = ""},
                                       std::make_shared<Snapshot>(snapshot), board, figures, 0));
  CHECK(Contains(text, "nowcalls_rules_refused{namespace=\"shop\",source=\"rpc\"} 0\n"));
  CHECK(Contains(text, "nowcalls_rules_refused{namespace=\"api\",source=\"file:/a.json\"} 1\n"));
  CHECK(Contains(text, "nowcalls_rules_warnings{namespace=\"api\",source=\"file:/a.json\"} 2\n"));
  CHECK(Contains(text, "nowcalls_rules_loaded_age_seconds{namespace=\"shop\",source=\"rpc\"} 2\n"));
  CHECK(Contains(
      text, "nowcalls_rules_refused_age_seconds{namespace=\"api\",source=\"file:/a.json\"} 0.5\n"));
  CHECK_FALSE(Contains(text, "unused"));
}

TEST_CASE("a member of a cluster tells its place, and on standby no figures of before") {
  Board board;
  const auto figures = Figures();
  const auto metrics = [&] {
    return testing::WholeBody(AnswerMetrics(
        {.path = "/metrics"}, std::make_shared<Snapshot>(ThreeFlows()), board, figures, 0));
  };
  CHECK_FALSE(Contains(metrics(), "nowcalls_cluster_"));
  board.phase = Board::Phase::kServing;
  board.cluster_term = 4;
  board.cluster_members = 3;
  board.cluster_log_bytes = 5'000;
  board.cluster_log_bytes_max = 6'000;
  board.cluster_etcd_failures = 7;
  const std::string of_writer = metrics();
  for (const char* const line :
       {"nowcalls_cluster_writer 1\n", "nowcalls_cluster_term 4\n", "nowcalls_cluster_members 3\n",
        "nowcalls_cluster_log_bytes 5000\n", "nowcalls_cluster_log_bytes_max 6000\n",
        "# TYPE nowcalls_cluster_etcd_failures_total counter\n",
        "nowcalls_cluster_etcd_failures_total 7\n", "nowcalls_tokens 5\n",
        "nowcalls_flow_level{"}) {
    CHECK_MESSAGE(Contains(of_writer, line), line);
  }
  board.phase = Board::Phase::kStandby;
  const std::string of_standby = metrics();
  CHECK(Contains(of_standby, "nowcalls_cluster_writer 0\n"));
  CHECK_FALSE(Contains(of_standby, "nowcalls_tokens"));
  CHECK_FALSE(Contains(of_standby, "nowcalls_flow"));
}

TEST_CASE("the fullest flows are listed, and the rest is counted") {
  const std::string text = Metrics({{"limit", "2"}});
  CHECK(Contains(text, "flow_id=\"2\""));
  CHECK(Contains(text, "flow_id=\"11\""));
  CHECK(!Contains(text, "flow_id=\"1\""));
  CHECK(Contains(text, "nowcalls_flows_beyond_limit 1\n"));
  CHECK(Contains(text, "nowcalls_flows_beyond_limit_now_calls 2\n"));
  const std::string shop = Metrics({{"namespace", "shop"}});
  CHECK(Contains(shop, "flow_id=\"1\""));
  CHECK(!Contains(shop, "flow_id=\"11\""));
  CHECK(Contains(shop, "nowcalls_flows_beyond_limit 0\n"));
  CHECK(Metrics({{"flow", "one"}}) == "flow must be a flow id\n");
  CHECK(Contains(Metrics({{"limit", "-1"}}), "limit must be 0 to"));
}

TEST_CASE("the families of flows have a fixed order, and each its type") {
  FlowMetrics metrics(/*ledger_ms=*/3'500);
  FlowLook flow = FlowOf(1, 2);
  flow.row.counters->held.count = 2;
  flow.row.counters->held.sum_ms = 3'000;
  flow.row.counters->held.upto = {0, 1, 2, 2, 2, 2, 2};
  flow.row.rate.emplace().passed = 5;
  REQUIRE(metrics.Add(flow, false));
  MetricWriter writer(MetricFormat::kOpenMetrics);
  while (metrics.WritePiece(&writer)) {
  }
  const std::string text = writer.Take();
  std::string types;
  for (size_t at = 0; (at = text.find("# TYPE nowcalls_flow_", at)) != std::string::npos;) {
    at += std::string_view("# TYPE nowcalls_flow_").size();
    types += text.substr(at, text.find('\n', at) - at) + "\n";
  }
  CHECK(types ==
        "now_calls gauge\nlevel gauge\ntokens gauge\nwaiting gauge\nkeys gauge\n"
        "oldest_token_seconds gauge\ngrants counter\nrefusals counter\n"
        "shadow_refusals counter\nended counter\noutcomes counter\nkeeps counter\n"
        "queued counter\nqueue_grants counter\nhold_seconds histogram\n"
        "wait_seconds histogram\nrate_passed counter\nrate_borrowed counter\n"
        "rate_blocked counter\nrate_values_forgotten counter\nrate_window_calls gauge\n"
        "rate_window_limit gauge\n");
  CHECK(Contains(text, "le=\"0.096\"} 1\n"));
  CHECK(Contains(text, "nowcalls_flow_hold_seconds_sum{"));
  CHECK(!Contains(text, "nowcalls_flow_wait_seconds_count"));
  CHECK(!Contains(text, "nowcalls_flow_rate_window_limit{"));
}

TEST_CASE("metrics of many flows come in pieces, which together are what each flow has") {
  FlowMetrics metrics(/*ledger_ms=*/3'500);
  constexpr int64_t kFlows = 2'000;
  for (int64_t id = 1; id <= kFlows; ++id) {
    FlowLook flow = FlowOf(id, 1);
    flow.row.resource = std::string(800, '"');
    REQUIRE(metrics.Add(flow, false));
  }
  MetricWriter writer(MetricFormat::kPrometheus);
  size_t pieces = 0;
  size_t most = 0;
  std::string text;
  for (; metrics.WritePiece(&writer); ++pieces) {
    most = std::max(most, writer.bytes());
    text += writer.Take();
  }
  CHECK(pieces > 100);
  CHECK(most < 2 * FlowMetrics::kPieceBytes);
  const auto count = [&](const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  for (const char* family : {"nowcalls_flow_now_calls", "nowcalls_flow_grants_total",
                             "nowcalls_flow_rate_window_limit"}) {
    CAPTURE(family);
    CHECK(count("# TYPE " + std::string(family)) == 1);
  }
  CHECK(count("\nnowcalls_flow_now_calls{") == kFlows);
  CHECK(count("\nnowcalls_flow_grants_total{") == kFlows);
  CHECK(metrics.held_bytes() < kFlows * 4'000);
}

TEST_CASE("flows beyond the bytes of a scrape are told as beyond its limit, before it is written") {
  FlowMetrics metrics(/*ledger_ms=*/3'500);
  constexpr size_t kBytesMax = 1 << 20;
  FlowLook flow = FlowOf(1, 1);
  flow.row.resource = std::string(800, '"');
  int64_t taken = 0;
  while (metrics.Add(flow, false, kBytesMax)) ++taken;
  CHECK(taken > 10);
  MetricWriter writer(MetricFormat::kPrometheus);
  while (metrics.WritePiece(&writer)) {
  }
  CHECK(writer.bytes() <= kBytesMax + 10'000);
  CHECK(writer.bytes() > kBytesMax / 2);
}

TEST_CASE("OpenMetrics names families without _total, and ends with EOF") {
  const std::string text =
      Metrics({}, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
  CHECK(
      Contains(text, "# TYPE nowcalls_refused counter\nnowcalls_refused_total{reason=\"level\"}"));
  CHECK(text.ends_with("# EOF\n"));
  CHECK(!Contains(Metrics({}), "# EOF"));
}

TEST_CASE("a histogram is cumulative, and ends with all") {
  TimeHistogram times;
  times.Add(100);
  times.Add(101);
  times.Add(90'000'000);
  CHECK(times.count(0) == 1);
  CHECK(times.count(1) == 1);
  CHECK(times.count(TimeHistogram::kUpToUs.size()) == 1);
  CHECK(times.sum_us() == 90'000'201);
}

TEST_CASE("a rule by value has its kind as a label where its flow id has a rule of the flow, too") {
  Snapshot snapshot = ThreeFlows();
  FlowLook by_value = FlowOf(2, 4);
  by_value.row.kind = "value";
  snapshot.flows.insert(snapshot.flows.begin() + 2, by_value);
  snapshot.flows.back().row.kind = "value";
  for (FlowLook& look : snapshot.flows) look.row.resource = "r";
  const std::string text = Metrics({}, "", snapshot);
  const std::string name = "\nnowcalls_flow_now_calls{flow_id=";
  CHECK(Contains(text, name + "\"2\",namespace=\"shop\",resource=\"r\"} 9"));
  CHECK(Contains(text, name + "\"2\",namespace=\"shop\",resource=\"r\",kind=\"value\"} 4"));
  CHECK(Contains(text, name + "\"11\",namespace=\"batch\",resource=\"r\"} 5"));
  // Also if the other one is beyond the limit.
  CHECK(Contains(Metrics({{"flow", "2"}, {"limit", "2"}}, "", snapshot), "kind=\"value\"} 4"));
}

}  // namespace nowcalls::web
