#include "web/snapshot.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace nowcalls::web {
namespace {

template <size_t kCount>
uint64_t Sum(const uint64_t (&counts)[kCount]) {
  return std::accumulate(std::begin(counts), std::end(counts), uint64_t{0});
}

}  // namespace

FlowTotals TotalsOf(const wire::FlowRow& row) {
  FlowTotals totals;
  if (row.counters) {
    totals.granted = row.counters->granted;
    totals.refused = Sum(row.counters->refused);
    totals.ended = Sum(row.counters->ended);
    totals.held_ms = row.counters->held_sum_ms;
    totals.exceptions = Sum(row.counters->outcomes);
  }
  if (row.rate) {
    totals.granted += row.rate->passed + row.rate->borrowed;
    // Counters have each blocked request once, whatever number of calls it asked for.
    totals.refused -= std::min(totals.refused, row.rate->requests_blocked);
    totals.refused += row.rate->blocked;
  }
  return totals;
}

const FlowLook* FindFlow(const Snapshot& snapshot, const FlowKey& key) {
  const auto found = std::lower_bound(
      snapshot.flows.begin(), snapshot.flows.end(), key,
      [](const FlowLook& flow, const FlowKey& wanted) { return wire::KeyOf(flow.row) < wanted; });
  return found == snapshot.flows.end() || wire::KeyOf(found->row) != key ? nullptr : &*found;
}

bool HasOther(const Snapshot& snapshot, const FlowKey& key) {
  return FindFlow(snapshot, {key.id, OtherThan(key.kind)}) != nullptr;
}

}  // namespace nowcalls::web
