// The counters of a flow, the map within its row.
//
// Thread: any. wire/row_fields.h finds these by the type of the member.
#ifndef NOWCALLS_WIRE_FLOW_COUNTERS_H_
#define NOWCALLS_WIRE_FLOW_COUNTERS_H_

#include <optional>
#include <string_view>

#include "wire/field_reader.h"
#include "wire/packing.h"
#include "wire/rows.h"

namespace nowcalls::wire {

// Limits that refused nothing are left out; end reasons are all there.
void PackValue(const FlowCounters& counters, Packer* packer);
bool ReadValue(std::string_view key, FieldReader* fields, std::optional<FlowCounters>* counters);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_FLOW_COUNTERS_H_
