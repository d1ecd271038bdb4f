#include "web/snapshot.h"

#include <algorithm>
#include <utility>

namespace nowcalls::web {
namespace {

FlowTotals Plus(const FlowTotals& a, const FlowTotals& b) {
  return {a.granted + b.granted, a.refused + b.refused, a.ended + b.ended, a.held_ms + b.held_ms,
          a.exceptions + b.exceptions};
}

FlowTotals Minus(const FlowTotals& a, const FlowTotals& b) {
  return {a.granted - b.granted, a.refused - b.refused, a.ended - b.ended, a.held_ms - b.held_ms,
          a.exceptions - b.exceptions};
}

}  // namespace

FlowTotals TotalsOf(const wire::FlowRow& row) {
  FlowTotals totals;
  if (row.counters) {
    totals.granted = row.counters->granted;
    totals.refused = row.counters->refused.sum();
    totals.ended = row.counters->ended.sum();
    totals.held_ms = row.counters->held.sum_ms;
    totals.exceptions = row.counters->outcomes.sum();
  }
  if (row.rate) {
    totals.granted += row.rate->passed + row.rate->borrowed;
    // Counters have each blocked request once, whatever number of calls it asked for.
    totals.refused -= std::min(totals.refused, row.rate->requests_blocked);
    totals.refused += row.rate->blocked;
  }
  return totals;
}

FlowLook LookOf(wire::FlowRow row, const FlowLook* before, int64_t now_ms) {
  FlowLook look{.row = std::move(row), .looked_ms = now_ms};
  if (before == nullptr) return look;
  const FlowTotals was = TotalsOf(before->row);
  const FlowTotals is = TotalsOf(look.row);
  // A server that started anew counts from 0.
  const bool anew = is.granted < was.granted || is.refused < was.refused || is.ended < was.ended;
  const FlowTotals more = anew ? is : Minus(is, was);
  // Sums add up over a look; rates are of the time since the row was read last.
  look.came = Plus(before->came, more);
  const double seconds =
      static_cast<double>(std::max<int64_t>(1, now_ms - before->looked_ms)) / 1000;
  look.granted_per_s = static_cast<double>(more.granted) / seconds;
  look.refused_per_s = static_cast<double>(more.refused) / seconds;
  look.ended_per_s = static_cast<double>(more.ended) / seconds;
  look.exceptions_per_s = static_cast<double>(more.exceptions) / seconds;
  return look;
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
