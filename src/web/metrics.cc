#include "web/metrics.h"

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "web/flow_metrics.h"
#include "web/metric_writer.h"
#include "web/process_metrics.h"

namespace nowcalls::web {
namespace {

using Flows = std::vector<const FlowLook*>;
using Json = nlohmann::ordered_json;

double Seconds(int64_t ms) { return static_cast<double>(ms) / 1000; }

// Those that the query chooses, with most calls in progress first.
Flows Matching(const Snapshot& snapshot, const std::string& name_space,
               std::optional<int64_t> flow_id) {
  Flows flows;
  for (const FlowLook& look : snapshot.flows) {
    if (!name_space.empty() && look.row.name_space != name_space) continue;
    if (flow_id && look.row.flow_id != *flow_id) continue;
    flows.push_back(&look);
  }
  // Stable, so equal flows stay in the order of ids, and scrapes list the same ones.
  std::stable_sort(flows.begin(), flows.end(), [](const FlowLook* a, const FlowLook* b) {
    return a->row.now_calls > b->row.now_calls;
  });
  return flows;
}

// How the rules of each namespace were loaded last.
void WriteRuleLoads(const Snapshot& snapshot, MetricWriter* writer) {
  using Row = wire::NamespaceRow;
  const auto each = [&](std::string_view name, std::string_view help, auto value) {
    writer->Family(name, MetricType::kGauge, help);
    for (const Row& row : snapshot.namespaces) {
      if (!row.source) continue;
      const auto number = value(row);
      if (number) writer->Sample({{"namespace", row.name_space}, {"source", *row.source}}, *number);
    }
  };
  const auto age = [&](const std::optional<int64_t>& moment_ms) -> std::optional<double> {
    if (!moment_ms) return std::nullopt;
    return Seconds(std::max<int64_t>(0, snapshot.ledger_ms - *moment_ms));
  };
  each("nowcalls_rules_refused", "Whether the last load of the namespace's rules was refused.",
       [](const Row& row) { return std::optional(uint64_t{row.refused_ms.has_value()}); });
  each("nowcalls_rules_warnings", "Warnings about the rules in force.",
       [](const Row& row) { return row.warnings; });
  each("nowcalls_rules_loaded_age_seconds", "Time since rules of the namespace came into force.",
       [&](const Row& row) { return age(row.loaded_ms); });
  each("nowcalls_rules_refused_age_seconds", "Time since a load of its rules was refused last.",
       [&](const Row& row) { return age(row.refused_ms); });
}

// "limits.sentinel_wait_ms_max", in milliseconds: nowcalls_limit_sentinel_wait_max_seconds.
std::string MetricNameOf(const wire::FigureInfo& figure) {
  static constexpr auto kGroups = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"counts.", ""}, {"totals.", ""}, {"settings.", "setting_"}, {"limits.", "limit_"}});
  std::string name(figure.name);
  for (const auto& [group, prefix] : kGroups) {
    if (name.starts_with(group)) name.replace(0, group.size(), prefix);
  }
  std::replace(name.begin(), name.end(), '.', '_');
  if (figure.unit == "ms") {
    const size_t unit = name.rfind("_ms");
    if (unit != std::string::npos) name.erase(unit, 3);
    name += "_seconds";
  }
  return "nowcalls_" + name;
}

// Null: the server does not tell.
const Json* ValueOf(const Json& info, std::string_view name) {
  const Json* value = &info;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const auto found = value->find(name.substr(begin, end - begin));
    if (found == value->end()) return nullptr;
    value = &*found;
    begin = end + 1;
  }
  return value->is_null() ? nullptr : value;
}

void WriteNumber(const wire::FigureInfo& figure, const Labels& labels, const Json& value,
                 MetricWriter* writer) {
  if (value.is_boolean()) {
    writer->Sample(labels, uint64_t{value.get<bool>()});
  } else if (figure.unit == "ms") {
    writer->Sample(labels, value.get<double>() / 1000);
  } else if (value.is_number_unsigned()) {
    writer->Sample(labels, value.get<uint64_t>());
  } else if (value.is_number()) {
    writer->Sample(labels, value.get<double>());
  }
}

void WriteFigures(const Json& info, std::span<const wire::FigureInfo> figures,
                  MetricWriter* writer) {
  Labels texts;
  for (const wire::FigureInfo& figure : figures) {
    const Json* const value = ValueOf(info, figure.name);
    if (value == nullptr) continue;
    // Texts have no number: they are labels of nowcalls_server_info.
    if (figure.kind == wire::FigureKind::kText) {
      const size_t dot = figure.name.rfind('.');
      const auto name = dot == std::string_view::npos ? figure.name : figure.name.substr(dot + 1);
      texts = texts.With(name, value->get<std::string>());
      continue;
    }
    const bool counts = figure.kind == wire::FigureKind::kCounter;
    writer->Family(MetricNameOf(figure), counts ? MetricType::kCounter : MetricType::kGauge,
                   figure.help);
    if (!value->is_object()) {
      WriteNumber(figure, {}, *value, writer);
      continue;
    }
    // Figures by word: a sample for each, with the word as label.
    for (const auto& [word, count] : value->items()) {
      WriteNumber(figure, {{figure.label, word}}, count, writer);
    }
  }
  writer->Family("nowcalls_server_info", MetricType::kGauge, "Always 1; the labels tell.");
  writer->Sample(texts, uint64_t{1});
}

void WriteHistogram(std::string_view name, std::string_view help, const TimeHistogram& times,
                    MetricWriter* writer) {
  constexpr size_t kBounds = TimeHistogram::kUpToUs.size();
  std::array<double, kBounds> bounds{};
  std::array<uint64_t, kBounds> upto{};
  uint64_t count = 0;
  for (size_t i = 0; i < kBounds; ++i) {
    bounds[i] = static_cast<double>(TimeHistogram::kUpToUs[i]) / 1e6;
    upto[i] = count += times.count(i);
  }
  writer->Family(name, MetricType::kHistogram, help);
  writer->Histogram({}, bounds, upto, count + times.count(kBounds),
                    static_cast<double>(times.sum_us()) / 1e6);
}

void WriteBoard(const Board& board, const Snapshot& snapshot, MetricWriter* writer) {
  WriteHistogram("nowcalls_commit_seconds", "Commits, from their beginning to the disk.",
                 board.commits, writer);
  WriteHistogram("nowcalls_loop_turn_seconds", "Turns of the serving loop, without its sleep.",
                 board.turns, writer);
  const int64_t since_ms = board.commit_since_ms.load(std::memory_order_relaxed);
  writer->Family("nowcalls_commit_under_way_seconds", MetricType::kGauge,
                 "How long the commit that is under way has taken; 0: none is.");
  writer->Sample({}, since_ms == 0 ? 0.0 : Seconds(std::max<int64_t>(0, BoottimeMs() - since_ms)));
  writer->Family("nowcalls_up", MetricType::kGauge,
                 "Whether the figures of this answer are of now: 0 if the server did not answer.");
  writer->Sample({}, uint64_t{snapshot.problem.empty()});
}

void WriteCluster(const Board& board, MetricWriter* writer) {
  const uint64_t term = board.cluster_term.load(std::memory_order_relaxed);
  if (term == 0) return;
  const auto gauge = [&](std::string_view name, std::string_view help, uint64_t value) {
    writer->Family(name, MetricType::kGauge, help);
    writer->Sample({}, value);
  };
  gauge("nowcalls_cluster_writer", "Whether this member of the cluster serves.",
        uint64_t{IsWriter(board)});
  gauge("nowcalls_cluster_term", "Term of the last writer that this member knows of.", term);
  gauge("nowcalls_cluster_lag_batches", "Batches that the log has and this member lacks.",
        board.cluster_lag.load(std::memory_order_relaxed));
  gauge("nowcalls_cluster_members", "Members that live.",
        board.cluster_members.load(std::memory_order_relaxed));
  gauge("nowcalls_cluster_log_bytes", "Bytes of the log in etcd; 0 on a standby.",
        board.cluster_log_bytes.load(std::memory_order_relaxed));
  gauge("nowcalls_cluster_log_bytes_max", "Beyond them the log forgets what a member lacks.",
        board.cluster_log_bytes_max.load(std::memory_order_relaxed));
  writer->Family("nowcalls_cluster_etcd_failures", MetricType::kCounter,
                 "Requests to etcd that had no answer, or were refused.");
  writer->Sample({}, board.cluster_etcd_failures.load(std::memory_order_relaxed));
}

// What a scrape keeps while its reader takes it.
struct Scrape {
  Scrape(MetricFormat format, int64_t ledger_ms) : writer(format), flows(ledger_ms) {}

  MetricWriter writer;
  FlowMetrics flows;
  bool finished = false;
};

void TakeFlows(const Snapshot& snapshot, const Flows& matching, size_t limit, Scrape* scrape) {
  size_t taken = 0;
  // The busiest first, until the number or the bytes are reached.
  for (; taken < std::min(limit, matching.size()); ++taken) {
    const FlowLook& flow = *matching[taken];
    if (!scrape->flows.Add(flow, HasOther(snapshot, wire::KeyOf(flow.row)))) break;
  }
  // The rest is told as two sums, so that totals can be checked.
  uint64_t beyond_calls = 0;
  for (size_t i = taken; i < matching.size(); ++i) beyond_calls += matching[i]->row.now_calls;
  scrape->writer.Family("nowcalls_flows_beyond_limit", MetricType::kGauge,
                        "Flows that are not listed, since others have more calls in progress.");
  scrape->writer.Sample({}, uint64_t{matching.size() - taken});
  scrape->writer.Family("nowcalls_flows_beyond_limit_now_calls", MetricType::kGauge,
                        "Calls in progress of the flows that are not listed.");
  scrape->writer.Sample({}, beyond_calls);
}

// Empty: that was all.
std::string NextPiece(bool has_flows, Scrape* scrape) {
  // An empty text would end the stream, so a piece without samples is passed over.
  while (has_flows && scrape->flows.WritePiece(&scrape->writer)) {
    if (scrape->writer.bytes() > 0) return scrape->writer.Take();
  }
  if (!std::exchange(scrape->finished, true)) scrape->writer.Finish();
  return scrape->writer.Take();
}

}  // namespace

Response AnswerMetrics(const Request& request, const SnapshotPtr& snapshot, const Board& board,
                       std::span<const wire::FigureInfo> figures, uint64_t wrong_secrets) {
  const std::string flow_text = request.Query("flow");
  const auto flow_id = NumberOf<int64_t>(flow_text);
  if (!flow_text.empty() && !flow_id) return ErrorResponse(400, "flow must be a flow id");
  const std::string limit_text = request.Query("limit", std::to_string(kMetricFlowsDefault));
  const auto limit = NumberOf<size_t>(limit_text);
  if (!limit || *limit > kMetricFlowsMax) {
    return ErrorResponse(400, "limit must be 0 to " + std::to_string(kMetricFlowsMax));
  }
  // The body: what needs no list of flows. It is small, and there even before the first look.
  const MetricFormat format = FormatFor(request.accept);
  auto scrape = std::make_shared<Scrape>(format, snapshot->ledger_ms);
  WriteBoard(board, *snapshot, &scrape->writer);
  WriteCluster(board, &scrape->writer);
  scrape->writer.Family("nowcalls_http_wrong_secrets", MetricType::kCounter,
                        "Requests by HTTP that showed a wrong name or secret.");
  scrape->writer.Sample({}, wrong_secrets);
  // Without a first look nothing is known of the server, and a standby knows what was.
  const bool knows = snapshot->info != nullptr && !StandsBy(board);
  if (knows) {
    WriteFigures(*snapshot->info, figures, &scrape->writer);
    WriteRuleLoads(*snapshot, &scrape->writer);
    TakeFlows(*snapshot, Matching(*snapshot, request.Query("namespace"), flow_id), *limit,
              scrape.get());
  }
  WriteProcessMetrics(&scrape->writer);
  // The stream: flows, piece by piece as the reader takes them, from the scrape's own copies.
  return {.status = 200,
          .type = std::string(ContentTypeOf(format)),
          .body = scrape->writer.Take(),
          .stream = [scrape, knows] { return NextPiece(knows, scrape.get()); },
          .stream_ends = true,
          .held_bytes = scrape->flows.held_bytes()};
}

}  // namespace nowcalls::web
