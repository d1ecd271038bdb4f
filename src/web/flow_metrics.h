// FlowMetrics: the metrics of flows, written piece by piece.
//
// Thread: one at a time. A scrape of many flows is hundreds of MB of text, so it is never whole in
// memory: what is kept is a copy of each flow's figures with its labels.
#ifndef NOWCALLS_WEB_FLOW_METRICS_H_
#define NOWCALLS_WEB_FLOW_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "web/metric_writer.h"
#include "web/snapshot.h"

namespace nowcalls::web {

class FlowMetrics {
 public:
  // Of the text of one scrape. Flows beyond it are not taken.
  static constexpr size_t kTextBytesMax = 256 << 20;
  // Of a piece, about.
  static constexpr size_t kPieceBytes = 64 << 10;

  // `ledger_ms`: of which ages are told.
  explicit FlowMetrics(int64_t ledger_ms) : ledger_ms_(ledger_ms) {}

  // `has_other`: the flow id has a rule of the other kind, too. False: with this flow the text
  // could have more than `text_bytes_max`; it is not taken.
  bool Add(const FlowLook& flow, bool has_other, size_t text_bytes_max = kTextBytesMax);
  // What it keeps in memory.
  size_t held_bytes() const { return held_bytes_; }

  // Appends the next piece. False: there was none.
  bool WritePiece(MetricWriter* writer);

 private:
  struct Flow {
    Labels labels{};
    wire::FlowRow row{};  // Without its names, which the labels have.
  };

  const int64_t ledger_ms_;
  std::vector<Flow> flows_;
  size_t text_bytes_ = 0;  // At most.
  size_t held_bytes_ = 0;
  // The next to be written.
  size_t family_ = 0;
  size_t flow_ = 0;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_FLOW_METRICS_H_
