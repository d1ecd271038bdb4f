// The kind of a flow as a parameter or filter.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_KIND_FIELD_H_
#define NOWCALLS_WIRE_KIND_FIELD_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "nowcalls/flow_kind.h"
#include "wire/field_reader.h"
#include "wire/packing.h"

namespace nowcalls::wire {

// "flow" or "value"; missing: none.
inline bool ReadKind(std::string_view name, FieldReader* fields, std::optional<FlowKind>* kind) {
  std::optional<std::string_view> word;
  if (!fields->Optional(name, &word)) return false;
  if (!word) return true;
  *kind = FlowKindNamed(*word);
  return kind->has_value() || fields->Fail(name, "must be flow or value, got " + Quoted(*word));
}

inline void PackKind(FlowKind kind, Packer* packer) { PackString(FlowKindName(kind), packer); }

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_KIND_FIELD_H_
