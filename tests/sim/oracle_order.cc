// Who comes first, and who comes no more: the order of a flow's queue, and cancelled request ids.
#include <algorithm>

#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

std::string OrderText(const SeenToken& seen) {
  return seen.owner + ", flow " + std::to_string(seen.flow) + ", fence " +
         std::to_string(seen.fence) + ", request id " + std::to_string(seen.request_id);
}

}  // namespace

// The requests of a connection are carried out in the order in which they were sent.
void Oracle::NoteArrivals(OpId answered) {
  const LinkId link = operations_.at(answered).link;
  const auto found = on_their_way_.find(link);
  if (found == on_their_way_.end()) return;
  std::set<OpId>& open = found->second;
  while (!open.empty() && *open.begin() <= answered) {
    Operation& op = operations_.at(*open.begin());
    op.sure = std::min(op.sure, order_);
    open.erase(open.begin());
  }
}

// Whether `later` came when `waiter` was there already, was granted before it, and had no right to.
// Fences tell the order of grants. Who asks for more than the level, or whose session may be at its
// cap, is passed over, so of those nothing is said.
bool Oracle::Overtakes(const Operation& later, const Operation& waiter) const {
  // It stands in the line of one flow at a time, which no answer tells.
  if (waiter.group != 0) return false;
  const bool waits =
      waiter.sure < later.asked || (waiter.link == later.link && waiter.asked < later.asked);
  if (!waits || later.fence > waiter.fence) return false;
  if (later.terms.prioritized && !waiter.terms.prioritized) return false;
  return waiter.count <= levels_.Lowest(waiter.flow, waiter.asked, order_);
}

// Request ids that were asked twice may have taken over a place in the queue, or a token.
void Oracle::CheckOrder(OpId granted_id, const Token& token) {
  Operation& granted = operations_.at(granted_id);
  const FlowFacts& facts = flows_[granted.flow];
  if (granted.link == kNoLink || facts.shadow || facts.client_cap != 0) return;
  if (granted.request_id != 0 && SharesRequestId(granted)) return;
  granted.fence = token.seen.fence;
  CheckListedOrder(granted_id);
  for (const OpId id : granted_) {
    const Operation& other = operations_.at(id);
    if (other.flow != granted.flow || other.life != granted.life) continue;
    const bool overtakes = Overtakes(granted, other);
    if (!overtakes && !Overtakes(other, granted)) continue;
    Violation("S2 fence " + std::to_string(overtakes ? granted.fence : other.fence) + " of flow " +
              std::to_string(granted.flow) + " went to a newcomer, before fence " +
              std::to_string(overtakes ? other.fence : granted.fence) + " to one who waited");
  }
  granted_.push_back(granted_id);
}

// While the connection of the cancel stands, its session does, which remembers the last of them.
bool Oracle::Remembers(const Operation& cancel) const {
  if (cancel.link == kNoLink || cancel.life != life_ || !runs_) return false;
  if (broken_ms_.contains(cancel.link)) return false;
  if (timeline_->now_ms() >= cancel.asked_ms + limits_.cancel_remembered_ms) return false;
  // Also one that was asked before may come later, on another connection.
  const auto later = std::count_if(ender_ops_.begin(), ender_ops_.end(), [&](OpId id) {
    const Operation& op = operations_.at(id);
    return op.kind == Kind::kCancel && op.owner == cancel.owner && &op != &cancel &&
           op.answered > cancel.asked;
  });
  return static_cast<uint64_t>(later) < limits_.cancels_max;
}

// The answer to a cancel leaves when the end of its token is in the ledger.
void Oracle::CheckCancelled(const SeenToken& seen) {
  if (seen.request_id == 0) return;
  for (const OpId id : OfRequest(Kind::kCancel, seen.owner, seen.request_id)) {
    const Operation& op = operations_.at(id);
    if (op.answered != kOpen && Remembers(op))
      Violation("I2 in the ledger after its cancel: " + OrderText(seen));
  }
}

void Oracle::CheckCancelledBefore(const Operation& acquire, const SeenToken& seen) {
  if (seen.request_id == 0) return;
  for (const OpId id : OfRequest(Kind::kCancel, seen.owner, seen.request_id)) {
    const Operation& op = operations_.at(id);
    const bool after =
        op.answered < acquire.asked || (op.link == acquire.link && op.asked < acquire.asked);
    if (after && Remembers(op)) Violation("I2 granted after its cancel: " + OrderText(seen));
  }
}

}  // namespace nowcalls::sim
