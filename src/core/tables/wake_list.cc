#include "core/tables/wake_list.h"

namespace nowcalls::core {

void WakeList::Add(const LaneRef& ref) {
  Lane& lane = flows_->lane(ref);
  if (lane.to_wake || lane.waiting() == 0) return;
  // The flag keeps the lane from being listed twice; Admission clears it.
  lane.to_wake = true;
  entries_.push_back({ref, kNoNamespace});
}

void WakeList::AddNamespace(NamespaceSlot slot) {
  Namespace& name_space = flows_->name_space(slot);
  ++name_space.levels_changed;
  if (name_space.waiting_for_sessions.empty()) return;
  if (name_space.to_wake) {
    // Admission is past the first lanes of the namespace: those come again behind the last.
    name_space.wake_again = name_space.wake_after.first.id.value > 0;
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
