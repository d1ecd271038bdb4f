// What is asked of a server that does not lead: on a connection of one that died or was superseded.
//
// It may refuse by what it knew, repeat what it granted before, tell that a keep changes nothing,
// and cancel what waits. All else takes a commit, and it has none.
#include "sim/oracle.h"

namespace nowcalls::sim {

void Oracle::AcknowledgedInVain(OpId op_id, const std::string& what) {
  const Operation& op = operations_.at(op_id);
  Violation("I1 " + what + " of " + (op.owner.empty() ? "the administrator" : op.owner) +
            " was acknowledged by a server that led no more when it was asked");
}

void Oracle::GrantedInVain(OpId op_id, const SeenToken& seen) {
  const Token* const token = Find(seen.id);
  const bool repeated = seen.request_id != 0 && token != nullptr && IsSame(token->seen, seen);
  if (!repeated) AcknowledgedInVain(op_id, "a grant of flow " + std::to_string(seen.flow));
}

CallsId Oracle::CallsAsked(sim::CallsAsked asked) {
  return in_vain_ ? calls_.AskedInVain() : calls_.Asked(Tick(), std::move(asked));
}

bool Oracle::LevelsAsked(const std::map<int64_t, LevelHistory::Change>& changes) {
  if (!in_vain_) levels_.Asked(Tick(), changes);
  return !in_vain_;
}

}  // namespace nowcalls::sim
