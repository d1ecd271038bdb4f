// FlowNames: flows by namespace, resource and kind.
//
// Thread: loop. Several flows may have one name. Entries have no text, 16 bytes each: callers
// compare the resource.
#ifndef NOWCALLS_CORE_TABLES_FLOW_NAMES_H_
#define NOWCALLS_CORE_TABLES_FLOW_NAMES_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/btree_set.h"
#include "base/keyed_hash.h"
#include "core/tables/slot.h"
#include "nowcalls/flow_kind.h"

namespace nowcalls::core {

// What flows are found by.
struct FlowName {
  std::string_view resource;
  FlowKind kind = FlowKind::kFlow;
  bool removed = false;  // Removed rules with tokens out, instead of rules in force.
};

class FlowNames {
 public:
  explicit FlowNames(const std::array<uint64_t, 2>& hash_key) : hash_key_(hash_key) {}

  void Add(const FlowName& name, NamespaceSlot name_space, FlowSlot slot) {
    entries_.insert({HashOf(name), name_space, slot});
  }
  void Erase(const FlowName& name, NamespaceSlot name_space, FlowSlot slot) {
    entries_.erase({HashOf(name), name_space, slot});
  }

  // Calls visit(slot) for flows that may have the name, until it returns false.
  template <typename Visit>
  void ForEachIn(NamespaceSlot name_space, const FlowName& name, Visit visit) const {
    const uint64_t hash = HashOf(name);
    auto it = entries_.lower_bound({hash, name_space, FlowSlot(0)});
    for (; it != entries_.end() && it->hash == hash && it->name_space == name_space; ++it) {
      if (!visit(it->slot)) return;
    }
  }
  // Of all namespaces.
  template <typename Visit>
  void ForEach(const FlowName& name, Visit visit) const {
    const uint64_t hash = HashOf(name);
    auto it = entries_.lower_bound({hash, NamespaceSlot(0), FlowSlot(0)});
    for (; it != entries_.end() && it->hash == hash; ++it) {
      if (!visit(it->slot)) return;
    }
  }

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t hash = 0;
    NamespaceSlot name_space;
    FlowSlot slot;

    auto operator<=>(const Entry&) const = default;
  };

  // Kind and state are the lowest bits, so that a name's flows in force stand together.
  uint64_t HashOf(const FlowName& name) const {
    const uint64_t state = (name.kind == FlowKind::kValue ? 1 : 0) + (name.removed ? 2 : 0);
    return (KeyedHash(hash_key_, name.resource) & ~uint64_t{3}) | state;
  }

  const std::array<uint64_t, 2> hash_key_;
  absl::btree_set<Entry> entries_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_FLOW_NAMES_H_
