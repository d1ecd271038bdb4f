// The figures of a flow's row: one table for codec, PROTOCOL.md, columns, JSON and metrics.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_FLOW_FIGURES_H_
#define NOWCALLS_WIRE_FLOW_FIGURES_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "wire/rows.h"

namespace nowcalls::wire {

// Counts by the word of their reason. The first counts nothing.
struct WordedCounts {
  std::span<const uint64_t> counts;
  std::string_view (*word)(size_t index);
};

// Views point into the row. std::monostate: the row has no such figure.
using FlowValue = std::variant<std::monostate, bool, int64_t, uint64_t, std::string_view,
                               WordedCounts, const Times*>;

enum class FlowFigureKind : uint8_t {
  kGauge,
  kCounter,  // Only grows, from the start of the server on.
  kInstant,  // Of the ledger clock, in ms.
  kTimes,    // In ms.
  kFlag,
  kText,
};

// Where a flow's row has the figure.
enum class FlowMap : uint8_t { kRow, kCounters, kRate };

// Places order the figures of a view, from 1 on without gaps; 0: not shown there. A new figure
// takes the next one: scripts read csv by place.
struct FlowColumn {
  uint8_t place = 0;
  std::string_view title{};  // These three: as in admin::ColumnInfo.
  uint8_t rank = 0;
  bool rare = false;
  std::string_view name{};  // Empty: the figure's.
};

struct FlowMetric {
  uint8_t place = 0;
  std::string_view name{};
  std::string_view help{};
  std::string_view label{};  // What tells WordedCounts apart.
};

struct FlowFigure {
  std::string_view name{};  // The key on the wire; a part of a map has a name of its own.
  FlowValue (*get)(const FlowRow& row) = nullptr;
  FlowMap map{};
  FlowFigureKind kind{};
  std::string_view help{};  // One phrase of PROTOCOL.md; a part and the row's own have none.
  FlowColumn column{};
  FlowMetric metric{};
  uint8_t json = 0;  // Place within the page's `counters` or `rate`.
};

// In the order sent; the parts of a map follow it.
std::span<const FlowFigure> FlowFigures();

// Those with a place, by it.
std::vector<const FlowFigure*> ByPlace(uint8_t (*place)(const FlowFigure& figure));

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_FLOW_FIGURES_H_
