// FlowMetrics: the metrics of flows, written piece by piece.
//
// Thread: one at a time. Keeps figures and labels, not the text.
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
  static constexpr size_t kTextBytesMax = 256 << 20;
  static constexpr size_t kPieceBytes = 64 << 10;

  // `ledger_ms`: ages are taken at it.
  explicit FlowMetrics(int64_t ledger_ms) : ledger_ms_(ledger_ms) {}

  // `has_other`: the flow id also has a rule of the other kind. False: not taken; the text could
  // exceed `text_bytes_max`.
  bool Add(const FlowLook& flow, bool has_other, size_t text_bytes_max = kTextBytesMax);
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
  size_t family_ = 0;
  size_t flow_ = 0;
};

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_FLOW_METRICS_H_
