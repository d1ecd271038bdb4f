#include "web/flow_metrics.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace nowcalls::web {
namespace {

using wire::FlowCounters;
using wire::FlowRate;
using wire::FlowRow;

// Writes what a flow has of a family. `ledger_ms`: of which ages are told.
using WriteSamples =
    std::function<void(const FlowRow& row, int64_t ledger_ms, const Labels&, MetricWriter*)>;

struct Family {
  std::string_view name;
  MetricType type;
  std::string_view help;
  WriteSamples write;
};

double SecondsOf(int64_t ms) { return static_cast<double>(ms) / 1000; }

// `value` is of a row, and nothing if the flow has none.
template <typename Value>
Family One(std::string_view name, MetricType type, std::string_view help, Value value) {
  return {
      name, type, help,
      [value](const FlowRow& row, int64_t ledger_ms, const Labels& labels, MetricWriter* writer) {
        if constexpr (std::is_invocable_v<Value, const FlowRow&>) {
          if (const auto number = value(row)) writer->Sample(labels, *number);
        } else {
          if (const auto number = value(row, ledger_ms)) writer->Sample(labels, *number);
        }
      }};
}

Family Count(std::string_view name, std::string_view help, uint64_t FlowCounters::*counter) {
  return One(name, MetricType::kCounter, help,
             [counter](const FlowRow& row) -> std::optional<uint64_t> {
               if (!row.counters) return std::nullopt;
               return (*row.counters).*counter;
             });
}

// A sample for each reason that has happened.
template <size_t kCount>
Family ByReason(std::string_view name, std::string_view help,
                uint64_t (FlowCounters::*counts)[kCount], std::string_view (*reason)(size_t),
                std::string_view label = "reason") {
  return {
      name, MetricType::kCounter, help,
      [=](const FlowRow& row, int64_t /*ledger_ms*/, const Labels& labels, MetricWriter* writer) {
        if (!row.counters) return;
        for (size_t r = 1; r < kCount; ++r) {
          const uint64_t count = ((*row.counters).*counts)[r];
          if (count > 0) writer->Sample(labels.With(label, reason(r)), count);
        }
      }};
}

Family Times(std::string_view name, std::string_view help, uint64_t FlowCounters::*count,
             uint64_t FlowCounters::*sum_ms, wire::CountsBelow FlowCounters::*upto) {
  std::vector<double> bounds;
  bounds.reserve(wire::kTimeBoundsMs.size());
  for (const auto bound_ms : wire::kTimeBoundsMs) bounds.push_back(SecondsOf(bound_ms));
  return {
      name, MetricType::kHistogram, help,
      [=](const FlowRow& row, int64_t /*ledger_ms*/, const Labels& labels, MetricWriter* writer) {
        if (!row.counters || (*row.counters).*count == 0) return;
        writer->Histogram(labels, bounds, (*row.counters).*upto, (*row.counters).*count,
                          SecondsOf(static_cast<int64_t>((*row.counters).*sum_ms)));
      }};
}

Family Rate(std::string_view name, MetricType type, std::string_view help,
            uint64_t FlowRate::*member) {
  return One(name, type, help, [member](const FlowRow& row) -> std::optional<uint64_t> {
    if (!row.rate) return std::nullopt;
    return (*row.rate).*member;
  });
}

std::optional<double> OldestAge(const FlowRow& row, int64_t ledger_ms) {
  if (!row.oldest_issued_ms) return std::nullopt;
  return SecondsOf(std::max<int64_t>(0, ledger_ms - *row.oldest_issued_ms));
}

std::optional<uint64_t> WindowLimit(const FlowRow& row) {
  if (!row.rate) return std::nullopt;
  return row.rate->limit;
}

std::optional<uint64_t> ValuesForgotten(const FlowRow& row) {
  if (!row.rate) return std::nullopt;
  return row.rate->forgotten;
}

std::string_view RefusalWord(size_t r) { return RefusedByName(static_cast<RefusedBy>(r)); }
std::string_view EndWord(size_t r) { return EndReasonName(static_cast<EndReason>(r)); }
std::string_view OutcomeWord(size_t r) { return CallOutcomeName(static_cast<CallOutcome>(r)); }

const std::vector<Family>& Families() {
  using enum MetricType;
  static const std::vector<Family> families = {
      One("nowcalls_flow_now_calls", kGauge, "Calls in progress.",
          [](const FlowRow& row) { return std::optional(row.now_calls); }),
      One("nowcalls_flow_level", kGauge, "Most calls in progress that the rule allows now.",
          [](const FlowRow& row) { return row.level; }),
      One("nowcalls_flow_tokens", kGauge, "Live tokens.",
          [](const FlowRow& row) { return std::optional(row.tokens); }),
      One("nowcalls_flow_waiting", kGauge, "Acquires that wait for room.",
          [](const FlowRow& row) { return row.waiters; }),
      One("nowcalls_flow_keys", kGauge,
          "Values of the rule's parameter that tokens hold or acquires wait for.",
          [](const FlowRow& row) { return row.keys; }),
      One("nowcalls_flow_oldest_token_seconds", kGauge, "Age of the oldest live token.", OldestAge),
      Count("nowcalls_flow_grants", "Acquires granted, also from the queue or in shadow mode.",
            &FlowCounters::granted),
      ByReason("nowcalls_flow_refusals", "Acquires refused, by the limit that refused.",
               &FlowCounters::refused, RefusalWord),
      ByReason("nowcalls_flow_shadow_refusals", "What shadow mode granted beyond a limit.",
               &FlowCounters::shadow_refused, RefusalWord),
      ByReason("nowcalls_flow_ended", "Tokens that ended, by reason.", &FlowCounters::ended,
               EndWord),
      ByReason("nowcalls_flow_outcomes", "Releases of calls that failed or timed out, by which.",
               &FlowCounters::outcomes, OutcomeWord, "outcome"),
      Count("nowcalls_flow_keeps", "Keeps.", &FlowCounters::kept),
      Count("nowcalls_flow_queued", "Acquires that waited.", &FlowCounters::queued),
      Count("nowcalls_flow_queue_grants", "Acquires that waited and were granted.",
            &FlowCounters::granted_from_queue),
      Times("nowcalls_flow_hold_seconds", "How long ended tokens were held.",
            &FlowCounters::held_count, &FlowCounters::held_sum_ms, &FlowCounters::held_upto),
      Times("nowcalls_flow_wait_seconds", "How long acquires waited, whatever the answer.",
            &FlowCounters::waited_count, &FlowCounters::waited_sum_ms, &FlowCounters::waited_upto),
      Rate("nowcalls_flow_rate_passed", kCounter, "Calls a second that passed at once.",
           &FlowRate::passed),
      Rate("nowcalls_flow_rate_borrowed", kCounter, "Calls that passed and were told to wait.",
           &FlowRate::borrowed),
      Rate("nowcalls_flow_rate_blocked", kCounter, "Calls that a rate or a parameter blocked.",
           &FlowRate::blocked),
      One("nowcalls_flow_rate_values_forgotten", kCounter,
          "Values of the parameter that were forgotten while their limit was in use.",
          ValuesForgotten),
      Rate("nowcalls_flow_rate_window_calls", kGauge, "Calls in the rule's window that ends now.",
           &FlowRate::in_window),
      One("nowcalls_flow_rate_window_limit", kGauge, "Most calls that the window may have.",
          WindowLimit),
  };
  return families;
}

// A rule by value has a label more where its flow id has a rule of the flow, too: no two series may
// have the same labels, and those of flow ids with one rule keep theirs.
Labels LabelsOf(const FlowRow& row, bool has_other) {
  const FlowKey key = wire::KeyOf(row);
  const Labels labels = {{"flow_id", std::to_string(key.id.value)},
                         {"namespace", row.name_space},
                         {"resource", row.resource}};
  const bool is_second = key.kind == FlowKind::kValue && has_other;
  return is_second ? labels.With("kind", FlowKindName(key.kind)) : labels;
}

}  // namespace

bool FlowMetrics::Add(const FlowLook& flow, bool has_other, size_t text_bytes_max) {
  // An upper bound of the flow's text counts before any is written, so a scrape never breaks off.
  Labels labels = LabelsOf(flow.row, has_other);
  MetricWriter sizes(MetricFormat::kPrometheus);
  sizes.CountOnly();
  for (const Family& family : Families()) {
    sizes.Family(family.name, family.type, family.help);
    family.write(flow.row, ledger_ms_, labels, &sizes);
  }
  if (text_bytes_ + sizes.counted_bytes() > text_bytes_max) return false;
  text_bytes_ += sizes.counted_bytes();
  held_bytes_ += sizeof(Flow) + labels.text().size();
  Flow& taken = flows_.emplace_back(Flow{std::move(labels), flow.row});
  // The labels have both names, so the copy of the row needs none.
  taken.row.name_space = {};
  taken.row.resource = {};
  return true;
}

bool FlowMetrics::WritePiece(MetricWriter* writer) {
  const std::vector<Family>& families = Families();
  if (family_ == families.size()) return false;
  // Family by family, since the formats want all samples of a family together. A piece may end
  // within a family: family_ and flow_ say where the next one begins.
  const size_t end = writer->bytes() + kPieceBytes;
  for (; family_ < families.size(); ++family_, flow_ = 0) {
    const Family& family = families[family_];
    // The head of a family comes before its first flow, and not into a piece that is full.
    if (flow_ == 0) {
      if (writer->bytes() >= end) return true;
      writer->Family(family.name, family.type, family.help);
    }
    while (flow_ < flows_.size()) {
      family.write(flows_[flow_].row, ledger_ms_, flows_[flow_].labels, writer);
      ++flow_;
      if (writer->bytes() >= end) return true;
    }
  }
  return true;
}

}  // namespace nowcalls::web
