#include "core/sight.h"

#include "core/tables/flow_table.h"

namespace nowcalls::core {

bool Sight::Has(const FlowTable& flows, NamespaceSlot slot) const {
  if (all()) return true;
  if (slot != last_) {
    last_ = slot;
    has_last_ = sees_(whose_, flows.name_space(slot).name);
  }
  return has_last_;
}

bool Sight::Has(const FlowTable& flows, FlowSlot slot) const {
  return all() || Has(flows, flows.at(slot).name_space);
}

}  // namespace nowcalls::core
