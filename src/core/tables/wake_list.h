// WakeList: the lanes whose waiters may fit now.
//
// Thread: loop. Admission grants at the end of each call. A lane or namespace is listed once at
// most.
#ifndef NOWCALLS_CORE_TABLES_WAKE_LIST_H_
#define NOWCALLS_CORE_TABLES_WAKE_LIST_H_

#include <deque>

#include "core/tables/flow_table.h"
#include "core/tables/slot.h"

namespace nowcalls::core {

class WakeList {
 public:
  // A lane, or a namespace's lanes that wait for sessions.
  struct Entry {
    LaneRef lane;  // No flow: it is a namespace.
    NamespaceSlot name_space;
  };

  explicit WakeList(FlowTable* flows) : flows_(flows) {}

  // The lane has more room, or other waiters.
  void Add(const LaneRef& ref);
  // Levels by its sessions have changed.
  void AddNamespace(NamespaceSlot slot);
  // A namespace from Take, for later.
  void PutBack(NamespaceSlot slot) { entries_.push_back({{}, slot}); }

  bool empty() const { return entries_.empty(); }
  // The oldest. Its slot may have another object by now: with `to_wake` unset, or listed again.
  // REQUIRES: !empty().
  Entry Take();

 private:
  FlowTable* const flows_;
  std::deque<Entry> entries_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_WAKE_LIST_H_
