// Figures: the result of `info` (PROTOCOL.md). Names and order: engine/figures.h.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_FIGURES_H_
#define NOWCALLS_WIRE_FIGURES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wire/output_buffer.h"

namespace nowcalls::wire {

// Counters of one name by a word.
using WordCounts = std::vector<std::pair<std::string_view, uint64_t>>;

using FigureValue =  // std::monostate: unknown.
    std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, WordCounts>;

struct FigureRow {
  std::string_view name;  // "version", or "GROUP.NAME".
  FigureValue value;
};

enum class FigureKind : uint8_t {
  kText,
  kFlag,     // True or false.
  kCounter,  // Only grows, from the start of the server on unless the help says otherwise.
  kMaximum,  // The most since the start of the server.
  kGauge,    // Goes up and down.
  kSetting,  // Does not change while the server runs.
};
std::string_view FigureKindName(FigureKind kind);

struct FigureInfo {
  std::string_view name{};  // Figures of a group follow one another.
  FigureKind kind{};
  std::string_view unit{};   // "ms", "bytes", "percent"; empty: a plain number, or none.
  std::string_view help{};   // One phrase of Markdown.
  std::string_view label{};  // What tells WordCounts apart: "reason", "protocol"; else empty.
};

// Appends a response whose result is a map; groups and WordCounts are maps within it.
void EncodeFigures(uint32_t msgid, std::span<const FigureRow> rows, OutputBuffer* out);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_FIGURES_H_
