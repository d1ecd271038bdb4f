#include "web/flow_metrics.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "wire/flow_figures.h"

namespace nowcalls::web {
namespace {

using wire::FlowFigure;
using wire::FlowFigureKind;
using wire::FlowRow;

double SecondsOf(int64_t ms) { return static_cast<double>(ms) / 1000; }

// Writes what a flow has of a family.
struct WriteSamples {
  const FlowFigure& figure;
  int64_t ledger_ms;  // Ages are told of it.
  const Labels& labels;
  MetricWriter* writer;

  void operator()(std::monostate) const {}
  void operator()(uint64_t number) const { writer->Sample(labels, number); }
  void operator()(int64_t instant_ms) const {
    writer->Sample(labels, SecondsOf(std::max<int64_t>(0, ledger_ms - instant_ms)));
  }
  // A sample for each reason that has happened.
  void operator()(const wire::WordedCounts& counts) const {
    for (size_t i = 1; i < counts.counts.size(); ++i) {
      if (counts.counts[i] == 0) continue;
      writer->Sample(labels.With(figure.metric.label, counts.word(i)), counts.counts[i]);
    }
  }
  void operator()(const wire::Times* times) const {
    if (times->count == 0) return;
    static const std::vector<double> bounds = [] {
      std::vector<double> seconds;
      seconds.reserve(std::size(wire::kTimeBoundsMs));
      for (const uint64_t ms : wire::kTimeBoundsMs) {
        seconds.push_back(SecondsOf(static_cast<int64_t>(ms)));
      }
      return seconds;
    }();
    writer->Histogram(labels, bounds, times->upto, times->count,
                      SecondsOf(static_cast<int64_t>(times->sum_ms)));
  }
  void operator()(bool /*flag*/) const {}  // Flags and texts have no metrics.
  void operator()(std::string_view /*text*/) const {}
};

void Write(const FlowFigure& figure, const FlowRow& row, int64_t ledger_ms, const Labels& labels,
           MetricWriter* writer) {
  std::visit(WriteSamples{figure, ledger_ms, labels, writer}, figure.get(row));
}

MetricType TypeOf(const FlowFigure& figure) {
  if (figure.kind == FlowFigureKind::kTimes) return MetricType::kHistogram;
  return figure.kind == FlowFigureKind::kCounter ? MetricType::kCounter : MetricType::kGauge;
}

void BeginFamily(const FlowFigure& figure, MetricWriter* writer) {
  writer->Family(figure.metric.name, TypeOf(figure), figure.metric.help);
}

const std::vector<const FlowFigure*>& Families() {
  static const auto families =
      wire::ByPlace([](const FlowFigure& figure) { return figure.metric.place; });
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
  for (const FlowFigure* figure : Families()) {
    BeginFamily(*figure, &sizes);
    Write(*figure, flow.row, ledger_ms_, labels, &sizes);
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
  const std::vector<const FlowFigure*>& families = Families();
  if (family_ == families.size()) return false;
  // Family by family, since the formats want all samples of a family together. A piece may end
  // within a family: family_ and flow_ say where the next one begins.
  const size_t end = writer->bytes() + kPieceBytes;
  for (; family_ < families.size(); ++family_, flow_ = 0) {
    const FlowFigure& family = *families[family_];
    // The head of a family comes before its first flow, and not into a piece that is full.
    if (flow_ == 0) {
      if (writer->bytes() >= end) return true;
      BeginFamily(family, writer);
    }
    while (flow_ < flows_.size()) {
      Write(family, flows_[flow_].row, ledger_ms_, flows_[flow_].labels, writer);
      ++flow_;
      if (writer->bytes() >= end) return true;
    }
  }
  return true;
}

}  // namespace nowcalls::web
