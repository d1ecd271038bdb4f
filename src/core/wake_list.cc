#include "core/wake_list.h"

namespace nowcalls::core {

void WakeList::Add(FlowSlot flow_slot) {
  Flow& flow = flows_->at(flow_slot);
  if (flow.to_wake || flow.waiters.size() == 0) return;
  flow.to_wake = true;
  entries_.push_back({flow_slot, kNoNamespace});
}

void WakeList::AddNamespace(NamespaceSlot slot) {
  Namespace& name_space = flows_->name_space(slot);
  ++name_space.levels_changed;
  if (name_space.waiting_for_sessions.empty()) return;
  if (name_space.to_wake) {
    name_space.wake_again = name_space.wake_after > 0;
    return;
  }
  name_space.to_wake = true;
  PutBack(slot);
}

WakeList::Entry WakeList::Take() {
  const Entry entry = entries_.front();
  entries_.pop_front();
  return entry;
}

}  // namespace nowcalls::core
