// The map of counters within a flow's row: one table for both directions and for PROTOCOL.md
// (tests/unit/wire/flow_counters_test.cc compares).
//
// Thread: any.
#ifndef NOWCALLS_WIRE_FLOW_COUNTERS_H_
#define NOWCALLS_WIRE_FLOW_COUNTERS_H_

#include <optional>
#include <span>
#include <string_view>

#include "wire/field_reader.h"
#include "wire/packing.h"
#include "wire/rows.h"

namespace nowcalls::wire {

struct FlowCounter {
  std::string_view key;
  std::string_view help;  // One phrase of Markdown.
  void (*pack)(const FlowCounters& counters, Packer* packer);
  bool (*read)(std::string_view key, FieldReader* fields, FlowCounters* counters);
  bool (*is_sent)(const FlowCounters& counters) = nullptr;  // Null: always.
};
std::span<const FlowCounter> FlowCounterTable();  // In the order sent.

void PackValue(const FlowCounters& counters, Packer* packer);
// Skips unknown keys.
bool ReadValue(std::string_view key, FieldReader* fields, std::optional<FlowCounters>* counters);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_FLOW_COUNTERS_H_
