// The table of figures: what the server says of itself. `info` sends them all, in this order, and
// PROTOCOL.md documents them with the words of this table (tests/unit/engine/figures_test.cc
// compares). To add a figure, add its row in figures.cc.
//
// Thread: loop. A row is constant; a value is read when it is asked for.
#ifndef NOWCALLS_ENGINE_FIGURES_H_
#define NOWCALLS_ENGINE_FIGURES_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/core.h"
#include "engine/connections.h"
#include "engine/disk_room.h"
#include "engine/sentinel/service.h"
#include "wire/figures.h"

namespace nowcalls::engine {

struct EngineOptions;

using wire::FigureKind;

// What values are read from.
struct FigureSource {
  const core::Core& core;
  const EngineOptions& options;
  const DiskRoom& disk;
  const Connections& connections;
  const sentinel::Counters& sentinel;
  Instant started;
  Instant now;
};

struct Figure {
  // "version", or "GROUP.NAME". Figures of a group follow one another.
  std::string_view name;
  FigureKind kind;
  std::string_view unit;  // "ms", "bytes", "percent"; empty: a plain number, or none.
  std::string_view help;  // One phrase of Markdown.
  wire::FigureValue (*value)(const FigureSource& source);
  std::string_view label{};  // As of FigureInfo.
};

std::span<const Figure> Figures();
// What they are, for others that show their values.
std::vector<wire::FigureInfo> FigureInfos();
// The values of all figures now, in the order of Figures().
std::vector<wire::FigureRow> FiguresOf(const FigureSource& source);

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_FIGURES_H_
