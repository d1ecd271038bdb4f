// Slots: the number of an object in its table, a type of its own for each kind of object.
//
// Thread: any. Good until the object is erased; then another may get it. Tables answer kNoFlow,
// kNoKey ... for none.
#ifndef NOWCALLS_CORE_TABLES_SLOT_H_
#define NOWCALLS_CORE_TABLES_SLOT_H_

#include <compare>
#include <cstdint>
#include <utility>

namespace nowcalls::core {

template <typename T>
struct SlotOf {
  static constexpr uint32_t kNoneValue = UINT32_MAX;

  uint32_t value = kNoneValue;

  constexpr SlotOf() = default;
  constexpr explicit SlotOf(uint32_t number) : value(number) {}

  constexpr auto operator<=>(const SlotOf&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const SlotOf& slot) {
    return H::combine(std::move(state), slot.value);
  }
};

using FlowSlot = SlotOf<struct Flow>;
using KeySlot = SlotOf<struct Key>;
using NamespaceSlot = SlotOf<struct Namespace>;
using SessionSlot = SlotOf<struct SessionState>;
using TokenSlot = SlotOf<struct TokenEntry>;
using WaiterSlot = SlotOf<struct Waiter>;  // NOLINT(bugprone-forward-declaration-namespace)
using ValueSlot = SlotOf<struct ValueRate>;

inline constexpr FlowSlot kNoFlow;
inline constexpr KeySlot kNoKey;
inline constexpr NamespaceSlot kNoNamespace;
inline constexpr SessionSlot kNoSession;
inline constexpr TokenSlot kNoToken;
inline constexpr WaiterSlot kNoWaiter;
inline constexpr ValueSlot kNoValue;

// Names a lane (core/tables/lane.h): of a flow, or of a flow's key.
struct LaneRef {
  FlowSlot flow_slot{};
  KeySlot key_slot{};  // kNoKey: the flow's own.

  constexpr bool operator==(const LaneRef&) const = default;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_SLOT_H_
