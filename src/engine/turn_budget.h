// TurnBudget: what a turn of the loop has room for, over all connections.
//
// Thread: loop. Costs are in units of about half a microsecond (Cost). The last message may exceed
// a budget.
#ifndef NOWCALLS_ENGINE_TURN_BUDGET_H_
#define NOWCALLS_ENGINE_TURN_BUDGET_H_

namespace nowcalls::engine {

// Input that has just been read, and input that waited, have a budget each, so that neither starves
// the other.
inline constexpr int kCostPerTurn = 4096;

// Listings, loads of rules and mass reclaims are work; acquire, release and keep are not. A turn
// does this much of it, so that who lists never holds up who acquires for long.
inline constexpr int kWorkPerTurn = 8192;

struct TurnBudget {
  int new_input_left = kCostPerTurn;
  int old_input_left = kCostPerTurn;
  int work_left = kWorkPerTurn;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_TURN_BUDGET_H_
