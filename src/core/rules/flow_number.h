// FlowNumberOf: the flow id of a rule that has none in its file.
//
// Thread: any; pure. A function of the names alone, so it is the same after a restart and on every
// server, and no ledger stores it. Fixed by the protocol (wire/PROTOCOL.md).
#ifndef NOWCALLS_CORE_RULES_FLOW_NUMBER_H_
#define NOWCALLS_CORE_RULES_FLOW_NUMBER_H_

#include <cstdint>
#include <string_view>

#include "nowcalls/types.h"

namespace nowcalls::core {

// The range [2^52, 2^53): JavaScript keeps its numbers exactly. Rules may have them in files, too.
inline constexpr int64_t kFlowNumbersBegin = int64_t{1} << 52;
inline constexpr int64_t kFlowNumbersEnd = int64_t{1} << 53;

constexpr bool IsFlowNumber(FlowId id) {
  return id.value >= kFlowNumbersBegin && id.value < kFlowNumbersEnd;
}

FlowId FlowNumberOf(std::string_view name_space, std::string_view resource);

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RULES_FLOW_NUMBER_H_
