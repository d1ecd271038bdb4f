// Room: the limit in the way of a grant now.
//
// Thread: loop. Keeps invariant 3 (src/README.md), also for values.
#ifndef NOWCALLS_CORE_GRANTS_ROOM_H_
#define NOWCALLS_CORE_GRANTS_ROOM_H_

#include <cstddef>
#include <cstdint>

#include "base/limits.h"
#include "core/tables/flow_table.h"
#include "core/tables/slot.h"
#include "core/tables/token_table.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Room {
 public:
  Room(const Limits* limits, const FlowTable* flows, const TokenTable* tokens)
      : limits_(limits), flows_(flows), tokens_(tokens) {}

  void SetDiskLow(bool low) { disk_low_ = low; }  // While low, nothing is granted.

  // For `tokens` more, whatever their rules.
  RefusedBy ServerLimit(size_t tokens = 1) const {
    if (disk_low_) return RefusedBy::kDiskLow;
    const bool full = tokens_->size() + tokens > limits_->tokens_max;
    return full ? RefusedBy::kTokenLimit : RefusedBy::kNone;
  }
  // kOverLevel: no room would help.
  RefusedBy LimitOf(const Flow& flow, KeySlot key, SessionSlot session_slot, int64_t count) const {
    const int64_t level = flows_->LevelOf(flow, key);
    RefusedBy limit = RefusedBy::kNone;
    if (count > level - flows_->LaneOf(flow, key).now_calls) {
      limit = key == kNoKey ? RefusedBy::kLevel : RefusedBy::kParam;
    } else if (count > flows_->CapLeft(flow, session_slot)) {
      limit = RefusedBy::kClientCap;
    }
    if (limit == RefusedBy::kNone) return limit;
    const bool can_fit = count <= level && count <= flows_->CapOf(flow);
    return can_fit ? limit : RefusedBy::kOverLevel;
  }

 private:
  const Limits* const limits_;
  const FlowTable* const flows_;
  const TokenTable* const tokens_;
  bool disk_low_ = false;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_GRANTS_ROOM_H_
