// The flow of a request: its number, or the resource of its rule.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_FLOW_FIELD_H_
#define NOWCALLS_WIRE_FLOW_FIELD_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/limits.h"
#include "base/text.h"
#include "wire/field_reader.h"
#include "wire/packing.h"

namespace nowcalls::wire {

// `Params` has flow_id and flow_name. Checks the name as that of a rule.
template <typename Params>
bool ReadFlow(FieldReader* fields, Params* out) {
  constexpr std::string_view kField = "flow_id";
  int64_t id = 0;
  if (!fields->RequiredIntOrStr(kField, &id, &out->flow_name)) return false;
  out->flow_id = id;
  // Only a number leaves the view null: an empty name is an error.
  if (out->flow_name.data() == nullptr) return true;
  const Status checked = CheckName(out->flow_name, kResourceBytesMax);
  return checked.ok() || fields->Fail(kField, checked.message());
}

// Of a filter, whose flow_id is an optional.
template <typename Params>
bool ReadFlowFilter(FieldReader* fields, Params* out) {
  if (fields->TakeMissing()) return true;
  out->flow_name = {};  // Of an equal key before.
  if (!ReadFlow(fields, out)) return false;
  if (!out->flow_name.empty()) out->flow_id.reset();
  return true;
}

inline void PackFlow(int64_t flow_id, std::string_view flow_name, Packer* packer) {
  if (flow_name.empty()) {
    packer->pack_int64(flow_id);
  } else {
    PackString(flow_name, packer);
  }
}

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_FLOW_FIELD_H_
