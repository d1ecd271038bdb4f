// WakeList: the lanes whose waiters may fit now.
//
// Thread: loop. The one seam between the parts that make room (tokens that end, rules that change,
// sessions that come and go) and Admission, which grants it at the end of each call. A lane is in
// the list once at most, and so is a namespace: the list is about as long as there are lanes with
// waiters. Adding takes constant time, however many waiters are concerned.
#ifndef NOWCALLS_CORE_WAKE_LIST_H_
#define NOWCALLS_CORE_WAKE_LIST_H_

#include <deque>

#include "core/flow_table.h"
#include "core/slot.h"

namespace nowcalls::core {

class WakeList {
 public:
  // A lane, or all lanes of a namespace that wait for sessions.
  struct Entry {
    LaneRef lane;  // No flow: it is a namespace.
    NamespaceSlot name_space;
  };

  explicit WakeList(FlowTable* flows) : flows_(flows) {}

  // The lane has more room, or other waiters than before.
  void Add(const LaneRef& ref);
  // Levels that the namespace's sessions share have changed.
  void AddNamespace(NamespaceSlot slot);
  // To go on with a namespace that Take gave.
  void PutBack(NamespaceSlot slot) { entries_.push_back({{}, slot}); }

  bool empty() const { return entries_.empty(); }
  // The oldest entry. A flow, key or namespace may be another one by now: then its to_wake is not
  // set, or it is in the list once more.
  // REQUIRES: !empty().
  Entry Take();

 private:
  FlowTable* const flows_;
  std::deque<Entry> entries_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_WAKE_LIST_H_
