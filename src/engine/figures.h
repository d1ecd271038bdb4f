// The table of figures, one row of figures.cc each. `info` sends all in this order; PROTOCOL.md has
// the same words (tests/unit/engine/figures_test.cc compares).
//
// Thread: loop.
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

class Identities;
struct EngineOptions;

struct SweepCounters {  // Since the server started.
  uint64_t scans = 0;   // Steps, as the scan thread works on one at a time.
  uint64_t keys = 0;    // Found by them.
};

struct TlsCounters {                  // Of the token port, since the server started; the driver's.
  int64_t certificate_ends_at_s = 0;  // Unix time; 0: TLS is off.
  uint64_t handshakes = 0;            // That were done.
  uint64_t failed = 0;
};

struct FigureSource {
  const core::Core& core;
  const EngineOptions& options;
  const DiskRoom& disk;
  const Connections& connections;
  const Identities& identities;
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
// Without values, for code that knows only the wire.
std::span<const wire::FigureInfo> FigureInfos();
std::vector<wire::FigureRow> FiguresOf(const FigureSource& source);  // In the order of Figures().

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_FIGURES_H_
