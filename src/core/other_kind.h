// OtherKind: counts requests of the other kind than the rule's `grade`: calls in progress or a
// second.
//
// Thread: loop. The request decides what is limited, as in Sentinel's checkers. The first of each
// rule is logged.
#ifndef NOWCALLS_CORE_OTHER_KIND_H_
#define NOWCALLS_CORE_OTHER_KIND_H_

#include "core/notices.h"
#include "core/tables/flow_table.h"

namespace nowcalls::core {

class OtherKind {
 public:
  OtherKind(FlowTable* flows, Notices* notices) : flows_(flows), notices_(notices) {}

  // REQUIRES: an active rule.
  void OnAcquire(Flow* flow) {
    if (flow->says_rate) Note(flow);
  }
  void OnRequest(Flow* flow) {
    if (!flow->says_rate) Note(flow);
  }

 private:
  void Note(Flow* flow);

  FlowTable* const flows_;
  Notices* const notices_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_OTHER_KIND_H_
