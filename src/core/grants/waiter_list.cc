#include "core/grants/waiter_list.h"

#include <utility>

namespace nowcalls::core {
namespace {

class Lister {
 public:
  Lister(const Books& books, const WaitQueues& queues, const WaiterFilter& filter, size_t limit,
         const Sight& sight)
      : books_(books), queues_(queues), filter_(filter), limit_(limit), sight_(sight) {}

  void AddFlow(FlowSlot slot) {
    const Flow& flow = books_.flows().at(slot);
    books_.looks() += 1;
    if (!sight_.Has(books_.flows(), flow.name_space)) return;
    AddLane(flow.lane);
    if (flow.keys == 0) return;
    // Under a rule by value each key with waiters is a lane.
    const KeyTable& keys = books_.flows().keys();
    keys.VisitWaitingOf(slot, [&](KeySlot key) {
      AddLane(keys.at(key).lane);
      return !full();
    });
  }
  bool full() const { return found_.size() >= limit_; }
  std::vector<WaiterPlace> Take() { return std::move(found_); }

 private:
  void AddLane(const Lane& lane) {
    books_.looks() += 1;
    if (lane.waiting() == 0) return;
    // Places count prioritized waiters first, and also waiters that the filter leaves out.
    uint32_t place = 0;
    for (const WaiterList& list : lane.waiters->classes) {
      for (WaiterSlot slot = list.head; slot != kNoWaiter && !full(); slot = queues_.Next(slot)) {
        ++place;
        books_.looks() += 1;
        if (Matches(queues_.at(slot))) found_.push_back({slot, place});
      }
    }
  }
  bool Matches(const Waiter& waiter) const {
    const SessionState& session = books_.sessions().at(waiter.session_slot);
    if (!sight_.Has(books_.flows(), session.name_space)) return false;
    return (!filter_.client_id.has_value() || session.client_id == *filter_.client_id) &&
           (!filter_.instance.has_value() || session.instance == *filter_.instance);
  }

  const Books& books_;
  const WaitQueues& queues_;
  const WaiterFilter& filter_;
  const size_t limit_;
  const Sight& sight_;
  std::vector<WaiterPlace> found_;
};

}  // namespace

std::vector<WaiterPlace> ListWaiters(const Books& books, const WaitQueues& queues,
                                     const WaiterFilter& filter, size_t limit, const Sight& sight) {
  Lister lister(books, queues, filter, limit, sight);
  // A chosen flow needs no walk over the others.
  if (filter.flow.has_value()) {
    for (const FlowSlot slot : FindAll(books.flows(), {*filter.flow, filter.kind})) {
      lister.AddFlow(slot);
    }
    return lister.Take();
  }
  for (const auto& [flow, waiters] : queues.flows()) {
    if (lister.full()) break;
    if (flow.first.kind == filter.kind.value_or(flow.first.kind)) lister.AddFlow(flow.second);
  }
  return lister.Take();
}

}  // namespace nowcalls::core
