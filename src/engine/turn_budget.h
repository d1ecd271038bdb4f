// TurnBudget: what a turn of the loop may cost, over all connections, in units of Cost.
//
// Thread: loop. The last message may exceed it.
#ifndef NOWCALLS_ENGINE_TURN_BUDGET_H_
#define NOWCALLS_ENGINE_TURN_BUDGET_H_

namespace nowcalls::engine {

// New input and waiting input have one each.
inline constexpr int kCostPerTurn = 4096;

// For Cost::work: listings, loads of rules, mass reclaims.
inline constexpr int kWorkPerTurn = 8192;

struct TurnBudget {
  int new_input_left = kCostPerTurn;
  int old_input_left = kCostPerTurn;
  int work_left = kWorkPerTurn;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_TURN_BUDGET_H_
