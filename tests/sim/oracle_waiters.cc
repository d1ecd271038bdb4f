// Listings of waiters: each row is an acquire that waits, and a line is the order of its grants.
#include <algorithm>
#include <map>
#include <tuple>

#include "sim/oracle.h"

namespace nowcalls::sim {
namespace {

std::string Text(const SeenWaiter& waiter) {
  return waiter.owner + ", flow " + std::to_string(waiter.flow) + ", count " +
         std::to_string(waiter.count) + ", place " + std::to_string(waiter.place);
}

}  // namespace

// Acquires that may be the one of the row. One that takes over a place leaves its class as it is.
std::vector<OpId> Oracle::WaitersLike(const SeenWaiter& waiter, uint64_t since) const {
  std::vector<OpId> like;
  for (const auto& [id, op] : operations_) {
    const bool may_wait = op.kind == Kind::kAcquire && op.life == life_ && op.terms.wait_ms > 0 &&
                          op.answered >= since;
    if (!may_wait || !StandsFor(waiter.owner, op.owner) || op.flow != waiter.flow) continue;
    if (op.count != waiter.count) continue;
    const bool shares = op.request_id != 0 && SharesRequestId(op);
    if (op.terms.prioritized == waiter.prioritized || shares) like.push_back(id);
  }
  return like;
}

void Oracle::WaitersTold(const WaitersLook& look, const std::vector<SeenWaiter>& waiters) {
  Tick();
  if (look.life != life_ || !runs_) return;
  std::map<std::tuple<std::string, int64_t, int64_t, bool>, size_t> alike;
  const SeenWaiter* before = nullptr;
  for (const SeenWaiter& waiter : waiters) {
    const size_t rows = ++alike[{waiter.owner, waiter.flow, waiter.count, waiter.prioritized}];
    if (rows > WaitersLike(waiter, look.asked).size()) {
      Violation("S8 a row of waiters that nobody asked for: " + Text(waiter));
    }
    const bool first = before == nullptr || before->flow != waiter.flow;
    if (waiter.place != (first ? 1 : before->place + 1)) {
      Violation("S8 a row of waiters has another place than its own: " + Text(waiter));
    }
    if (!first && waiter.prioritized && !before->prioritized) {
      Violation("S8 a prioritized waiter stands behind one that is not: " + Text(waiter));
    }
    before = &waiter;
  }

  // Who stands before whom, as far as rows tell which acquires they are.
  std::map<int64_t, std::vector<OpId>> lines;
  for (const SeenWaiter& waiter : waiters) {
    const std::vector<OpId> like = WaitersLike(waiter, look.asked);
    if (like.size() != 1) continue;
    Operation& op = operations_.at(like.front());
    std::vector<OpId>& line = lines[waiter.flow];
    op.behind.insert(op.behind.end(), line.begin(), line.end());
    line.push_back(like.front());
  }
}

// REQUIRES: the acquire has its fence (CheckOrder). Passed over are only those that room would not
// help, and of those nothing is said.
void Oracle::CheckListedOrder(OpId granted_id) {
  const Operation& granted = operations_.at(granted_id);
  if (granted.group_size > 1) return;  // Another flow of the group may have had no room.
  for (const OpId id : granted_) {
    const Operation& other = operations_.at(id);
    if (other.life != granted.life || other.fence > granted.fence) continue;
    if (std::count(other.behind.begin(), other.behind.end(), granted_id) == 0) continue;
    if (granted.count > levels_.Lowest(granted.flow, granted.asked, order_)) continue;
    Violation("S8 fence " + std::to_string(other.fence) + " of flow " +
              std::to_string(granted.flow) + " went to one behind that of fence " +
              std::to_string(granted.fence));
  }
}

}  // namespace nowcalls::sim
