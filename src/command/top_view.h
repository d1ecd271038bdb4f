// The frames of `nowcalls top` as text.
//
// Thread: any; pure.
#ifndef NOWCALLS_COMMAND_TOP_VIEW_H_
#define NOWCALLS_COMMAND_TOP_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "wire/rows.h"

namespace nowcalls::command {

struct TopSnapshot {
  int64_t ledger_ms = 0;
  std::vector<wire::FlowRow> flows{};
  // Of the chosen flow.
  std::vector<wire::TokenRow> tokens{};
  std::vector<wire::WaiterRow> waiters{};
};

enum class TopOrder : uint8_t { kFullest, kBusiest, kFlow };

struct TopState {
  std::string server{};
  std::string problem{};  // Why the figures are old; empty: they are not.
  TopOrder order = TopOrder::kFullest;
  int64_t chosen = 0;   // The flow whose holders and waiters are shown; 0: none.
  size_t selected = 0;  // Row of the list.
};

// Acquires a second by flow, between two snapshots.
class TopRates {
 public:
  void Take(const TopSnapshot& snapshot);
  double GrantedPerSecond(const FlowKey& flow) const { return Of(flow).granted_per_s; }
  double RefusedPerSecond(const FlowKey& flow) const { return Of(flow).refused_per_s; }

 private:
  struct Rate {
    uint64_t granted = 0;
    uint64_t refused = 0;
    double granted_per_s = 0;
    double refused_per_s = 0;
  };
  Rate Of(const FlowKey& flow) const {
    const auto found = rates_.find(flow);
    return found == rates_.end() ? Rate() : found->second;
  }

  std::map<FlowKey, Rate> rates_;
  int64_t ledger_ms_ = 0;
};

void SortFlows(TopOrder order, const TopRates& rates, std::vector<wire::FlowRow>* flows);

// At most `rows` lines of at most `columns` characters.
std::vector<std::string> TopLines(const TopSnapshot& snapshot, const TopRates& rates,
                                  const TopState& state, size_t rows, size_t columns);

}  // namespace nowcalls::command

#endif  // NOWCALLS_COMMAND_TOP_VIEW_H_
