// FlowKind: whether a rule limits all calls of its flow, or the calls of each parameter value.
//
// A flow id may have one rule of each kind, with tokens, windows, waiters and counters of its own.
// A request with a value means the rule by value.
#ifndef NOWCALLS_FLOW_KIND_H_
#define NOWCALLS_FLOW_KIND_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "nowcalls/types.h"

namespace nowcalls {

enum class FlowKind : uint8_t {
  kFlow = 0,   // All calls together.
  kValue = 1,  // Those of each value of a parameter.
};
inline constexpr FlowKind kFlowKinds[] = {FlowKind::kFlow, FlowKind::kValue};

constexpr FlowKind FlowKindIf(bool by_value) {
  return by_value ? FlowKind::kValue : FlowKind::kFlow;
}
constexpr FlowKind OtherThan(FlowKind kind) { return FlowKindIf(kind == FlowKind::kFlow); }

constexpr std::string_view FlowKindName(FlowKind kind) {
  return kind == FlowKind::kFlow ? "flow" : "value";
}
constexpr std::optional<FlowKind> FlowKindNamed(std::string_view name) {
  for (const FlowKind kind : kFlowKinds) {
    if (name == FlowKindName(kind)) return kind;
  }
  return std::nullopt;
}

// One kind of a flow id, with its rule, tokens and waiters. Sorted by id, then kFlow first.
struct FlowKey {
  FlowId id;
  FlowKind kind = FlowKind::kFlow;

  constexpr auto operator<=>(const FlowKey&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const FlowKey& key) {
    return H::combine(std::move(state), key.id.value, key.kind);
  }
};

// The flows of an id: of one kind, or both.
struct FlowChoice {
  // Implicit: an id alone names both.
  constexpr FlowChoice(FlowId flow, std::optional<FlowKind> of_kind = {})  // NOLINT
      : id(flow), kind(of_kind) {}

  FlowId id;
  std::optional<FlowKind> kind;
};

}  // namespace nowcalls

#endif  // NOWCALLS_FLOW_KIND_H_
