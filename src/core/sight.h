// Sight: the namespaces whose rows an asker may see.
//
// Thread: loop. For one call: it remembers the last namespace, since rows of one come together.
#ifndef NOWCALLS_CORE_SIGHT_H_
#define NOWCALLS_CORE_SIGHT_H_

#include <string_view>

#include "core/tables/slot.h"

namespace nowcalls::core {

class FlowTable;

class Sight {
 public:
  using Sees = bool (*)(const void* whose, std::string_view name_space);

  Sight() = default;  // Of all namespaces.
  // `whose` outlives it.
  Sight(const void* whose, Sees sees) : whose_(whose), sees_(sees) {}

  bool all() const { return sees_ == nullptr; }
  bool Has(std::string_view name_space) const { return all() || sees_(whose_, name_space); }
  bool Has(const FlowTable& flows, NamespaceSlot slot) const;
  bool Has(const FlowTable& flows, FlowSlot slot) const;  // Of the flow's rule.

 private:
  const void* whose_ = nullptr;
  Sees sees_ = nullptr;
  mutable NamespaceSlot last_ = kNoNamespace;
  mutable bool has_last_ = false;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_SIGHT_H_
