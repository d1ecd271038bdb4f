#include "web/metrics.h"

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
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
  std::stable_sort(flows.begin(), flows.end(), [](const FlowLook* a, const FlowLook* b) {
    return a->row.now_calls > b->row.now_calls;
  });
  return flows;
}

class FlowMetrics {
 public:
  FlowMetrics(const Flows& flows, int64_t ledger_ms, MetricWriter* writer)
      : flows_(flows), ledger_ms_(ledger_ms), writer_(writer) {
    for (const FlowLook* flow : flows) {
      labels_.push_back({{"flow_id", std::to_string(flow->row.flow_id)},
                         {"namespace", flow->row.name_space},
                         {"resource", flow->row.resource}});
    }
  }

  void Write() {
    using Row = wire::FlowRow;
    Each<uint64_t>("nowcalls_flow_now_calls", MetricType::kGauge, "Calls in progress.",
                   [](const Row& row) { return std::optional(row.now_calls); });
    Each<uint64_t>("nowcalls_flow_level", MetricType::kGauge,
                   "Most calls in progress that the rule allows now.",
                   [](const Row& row) { return row.level; });
    Each<uint64_t>("nowcalls_flow_tokens", MetricType::kGauge, "Live tokens.",
                   [](const Row& row) { return std::optional(row.tokens); });
    Each<uint64_t>("nowcalls_flow_waiting", MetricType::kGauge, "Acquires that wait for room.",
                   [](const Row& row) { return row.waiters; });
    Each<uint64_t>("nowcalls_flow_keys", MetricType::kGauge,
                   "Values of the rule's parameter that tokens hold or acquires wait for.",
                   [](const Row& row) { return row.keys; });
    Each<double>("nowcalls_flow_oldest_token_seconds", MetricType::kGauge,
                 "Age of the oldest live token.", [this](const Row& row) -> std::optional<double> {
                   if (!row.oldest_issued_ms) return std::nullopt;
                   return Seconds(std::max<int64_t>(0, ledger_ms_ - *row.oldest_issued_ms));
                 });
    Counters();
    Times("nowcalls_flow_hold_seconds", "How long ended tokens were held.",
          &wire::FlowCounters::held_count, &wire::FlowCounters::held_sum_ms,
          &wire::FlowCounters::held_upto);
    Times("nowcalls_flow_wait_seconds", "How long acquires waited, whatever the answer.",
          &wire::FlowCounters::waited_count, &wire::FlowCounters::waited_sum_ms,
          &wire::FlowCounters::waited_upto);
    Rates();
  }

 private:
  template <typename Number>
  void Each(std::string_view name, MetricType type, std::string_view help,
            const std::function<std::optional<Number>(const wire::FlowRow&)>& value) {
    writer_->Family(name, type, help);
    for (size_t i = 0; i < flows_.size(); ++i) {
      if (const auto number = value(flows_[i]->row)) writer_->Sample(labels_[i], *number);
    }
  }

  void Count(std::string_view name, std::string_view help, uint64_t wire::FlowCounters::*counter) {
    Each<uint64_t>(name, MetricType::kCounter, help,
                   [counter](const wire::FlowRow& row) -> std::optional<uint64_t> {
                     if (!row.counters) return std::nullopt;
                     return (*row.counters).*counter;
                   });
  }

  // A sample for each reason that has happened.
  template <size_t kCount>
  void ByReason(std::string_view name, std::string_view help,
                uint64_t (wire::FlowCounters::*counts)[kCount], std::string_view (*reason)(size_t),
                std::string_view label = "reason") {
    writer_->Family(name, MetricType::kCounter, help);
    for (size_t i = 0; i < flows_.size(); ++i) {
      const auto& counters = flows_[i]->row.counters;
      if (!counters) continue;
      for (size_t r = 1; r < kCount; ++r) {
        const uint64_t count = ((*counters).*counts)[r];
        if (count > 0) writer_->Sample(labels_[i].With(label, reason(r)), count);
      }
    }
  }

  void Counters() {
    Count("nowcalls_flow_grants", "Acquires granted, also from the queue or in shadow mode.",
          &wire::FlowCounters::granted);
    ByReason("nowcalls_flow_refusals", "Acquires refused, by the limit that refused.",
             &wire::FlowCounters::refused,
             [](size_t r) { return RefusedByName(static_cast<RefusedBy>(r)); });
    ByReason("nowcalls_flow_shadow_refusals", "What shadow mode granted beyond a limit.",
             &wire::FlowCounters::shadow_refused,
             [](size_t r) { return RefusedByName(static_cast<RefusedBy>(r)); });
    ByReason("nowcalls_flow_ended", "Tokens that ended, by reason.", &wire::FlowCounters::ended,
             [](size_t r) { return EndReasonName(static_cast<EndReason>(r)); });
    ByReason(
        "nowcalls_flow_outcomes", "Releases of calls that failed or timed out, by which.",
        &wire::FlowCounters::outcomes,
        [](size_t r) { return CallOutcomeName(static_cast<CallOutcome>(r)); }, "outcome");
    Count("nowcalls_flow_keeps", "Keeps.", &wire::FlowCounters::kept);
    Count("nowcalls_flow_queued", "Acquires that waited.", &wire::FlowCounters::queued);
    Count("nowcalls_flow_queue_grants", "Acquires that waited and were granted.",
          &wire::FlowCounters::granted_from_queue);
  }

  void Times(std::string_view name, std::string_view help, uint64_t wire::FlowCounters::*count,
             uint64_t wire::FlowCounters::*sum_ms, wire::CountsBelow wire::FlowCounters::*upto) {
    static const std::vector<double> bounds = [] {
      std::vector<double> seconds;
      seconds.reserve(wire::kTimeBoundsMs.size());
      for (const auto bound_ms : wire::kTimeBoundsMs) seconds.push_back(Seconds(bound_ms));
      return seconds;
    }();
    writer_->Family(name, MetricType::kHistogram, help);
    for (size_t i = 0; i < flows_.size(); ++i) {
      const auto& counters = flows_[i]->row.counters;
      if (!counters || (*counters).*count == 0) continue;
      writer_->Histogram(labels_[i], bounds, (*counters).*upto, (*counters).*count,
                         Seconds(static_cast<int64_t>((*counters).*sum_ms)));
    }
  }

  void Rates() {
    const auto rate = [this](std::string_view name, std::string_view help,
                             uint64_t wire::FlowRate::*member) {
      Each<uint64_t>(name, MetricType::kCounter, help,
                     [member](const wire::FlowRow& row) -> std::optional<uint64_t> {
                       if (!row.rate) return std::nullopt;
                       return (*row.rate).*member;
                     });
    };
    rate("nowcalls_flow_rate_passed", "Calls a second that passed at once.",
         &wire::FlowRate::passed);
    rate("nowcalls_flow_rate_borrowed", "Calls that passed and were told to wait.",
         &wire::FlowRate::borrowed);
    rate("nowcalls_flow_rate_blocked", "Calls that a rate or a parameter blocked.",
         &wire::FlowRate::blocked);
    Each<uint64_t>("nowcalls_flow_rate_window_calls", MetricType::kGauge,
                   "Calls in the rule's window that ends now.",
                   [](const wire::FlowRow& row) -> std::optional<uint64_t> {
                     if (!row.rate) return std::nullopt;
                     return row.rate->in_window;
                   });
    Each<uint64_t>("nowcalls_flow_rate_window_limit", MetricType::kGauge,
                   "Most calls that the window may have.",
                   [](const wire::FlowRow& row) -> std::optional<uint64_t> {
                     if (!row.rate) return std::nullopt;
                     return row.rate->limit;
                   });
  }

  const Flows& flows_;
  const int64_t ledger_ms_;
  MetricWriter* const writer_;
  std::vector<Labels> labels_;
};

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

}  // namespace

Response AnswerMetrics(const Request& request, const Snapshot& snapshot, const Board& board,
                       std::span<const wire::FigureInfo> figures) {
  const std::string flow_text = request.Query("flow");
  const auto flow_id = NumberOf<int64_t>(flow_text);
  if (!flow_text.empty() && !flow_id) return ErrorResponse(400, "flow must be a flow id");
  const std::string limit_text = request.Query("limit", std::to_string(kMetricFlowsDefault));
  const auto limit = NumberOf<size_t>(limit_text);
  if (!limit || *limit > kMetricFlowsMax) {
    return ErrorResponse(400, "limit must be 0 to " + std::to_string(kMetricFlowsMax));
  }
  const MetricFormat format = FormatFor(request.accept);
  MetricWriter writer(format);
  WriteBoard(board, snapshot, &writer);
  if (snapshot.info != nullptr) {
    WriteFigures(*snapshot.info, figures, &writer);
    Flows flows = Matching(snapshot, request.Query("namespace"), flow_id);
    const size_t beyond = flows.size() - std::min(flows.size(), *limit);
    uint64_t beyond_calls = 0;
    for (size_t i = flows.size() - beyond; i < flows.size(); ++i) {
      beyond_calls += flows[i]->row.now_calls;
    }
    flows.resize(flows.size() - beyond);
    writer.Family("nowcalls_flows_beyond_limit", MetricType::kGauge,
                  "Flows that are not listed, since others have more calls in progress.");
    writer.Sample({}, uint64_t{beyond});
    writer.Family("nowcalls_flows_beyond_limit_now_calls", MetricType::kGauge,
                  "Calls in progress of the flows that are not listed.");
    writer.Sample({}, beyond_calls);
    FlowMetrics(flows, snapshot.ledger_ms, &writer).Write();
  }
  WriteProcessMetrics(&writer);
  return {.status = 200, .type = std::string(ContentTypeOf(format)), .body = writer.Take()};
}

}  // namespace nowcalls::web
