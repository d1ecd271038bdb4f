#include "core/waiter_list.h"

#include <utility>

namespace nowcalls::core {
namespace {

class Lister {
 public:
  Lister(const Books& books, const WaitQueues& queues, const WaiterFilter& filter, size_t limit)
      : books_(books), queues_(queues), filter_(filter), limit_(limit) {}

  void AddFlow(FlowSlot slot) {
    const Flow& flow = books_.flows().at(slot);
    AddLane(flow.lane);
    if (flow.keys == 0) return;
    const KeyTable& keys = books_.flows().keys();
    for (const KeySlot key : keys.WaitingOf(slot)) AddLane(keys.at(key).lane);
  }
  bool full() const { return found_.size() >= limit_; }
  std::vector<WaiterPlace> Take() { return std::move(found_); }

 private:
  void AddLane(const Lane& lane) {
    if (lane.waiting() == 0) return;
    uint32_t place = 0;
    for (const WaiterList& list : lane.waiters->classes) {
      for (WaiterSlot slot = list.head; slot != kNoWaiter && !full(); slot = queues_.Next(slot)) {
        ++place;
        if (Matches(queues_.at(slot))) found_.push_back({slot, place});
      }
    }
  }
  bool Matches(const Waiter& waiter) const {
    const SessionState& session = books_.sessions().at(waiter.session_slot);
    return (!filter_.client_id.has_value() || session.client_id == *filter_.client_id) &&
           (!filter_.instance.has_value() || session.instance == *filter_.instance);
  }

  const Books& books_;
  const WaitQueues& queues_;
  const WaiterFilter& filter_;
  const size_t limit_;
  std::vector<WaiterPlace> found_;
};

}  // namespace

std::vector<WaiterPlace> ListWaiters(const Books& books, const WaitQueues& queues,
                                     const WaiterFilter& filter, size_t limit) {
  Lister lister(books, queues, filter, limit);
  if (filter.flow.has_value()) {
    const FlowSlot slot = books.flows().Find(*filter.flow);
    if (slot != kNoFlow) lister.AddFlow(slot);
    return lister.Take();
  }
  for (const auto& [id, slot] : books.flows().by_id()) {
    if (lister.full()) break;
    lister.AddFlow(slot);
  }
  return lister.Take();
}

}  // namespace nowcalls::core
