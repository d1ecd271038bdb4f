// The table of figures: what the server says of itself. `info` sends them all, in this order, and
// PROTOCOL.md documents them with the words of this table (tests/unit/engine/figures_test.cc
// compares). To add a figure, add its row in figures.cc.
//
// Thread: loop. A row is constant; a value is read when it is asked for.
#ifndef NOWCALLS_ENGINE_FIGURES_H_
#define NOWCALLS_ENGINE_FIGURES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.h"
#include "core/core.h"
#include "engine/connections.h"
#include "engine/disk_room.h"
#include "engine/sentinel/service.h"
#include "wire/figures.h"

namespace nowcalls::engine {

struct EngineOptions;

// What the engine itself counts of the sweep, since the server started.
struct SweepCounters {
  uint64_t scans = 0;  // Steps, as the scan thread works on one at a time.
  uint64_t keys = 0;   // Found by them.
};

// What values are read from.
struct FigureSource {
  const core::Core& core;
  const EngineOptions& options;
  const DiskRoom& disk;
  const Connections& connections;
  std::span<const uint64_t> requests;  // MessagePack-RPC, by wire::Method.
  const sentinel::Counters& sentinel;
  const SweepCounters& sweep;
  Instant started;
  Instant now;
};

struct Figure : wire::FigureInfo {
  wire::FigureValue (*value)(const FigureSource& source) = nullptr;
};

std::span<const Figure> Figures();
// The same without values, for those who know only the wire.
std::span<const wire::FigureInfo> FigureInfos();
// The values of all figures now, in the order of Figures().
std::vector<wire::FigureRow> FiguresOf(const FigureSource& source);

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_FIGURES_H_
