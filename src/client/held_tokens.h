// HeldTokens: the tokens of a session, and when each is to be looked after.
//
// Thread: the session's.
#ifndef NOWCALLS_CLIENT_HELD_TOKENS_H_
#define NOWCALLS_CLIENT_HELD_TOKENS_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/held.h"
#include "client/rule_view.h"

namespace nowcalls::client {

class HeldTokens {
 public:
  // REQUIRES: it holds no token of that id.
  void Add(HeldPtr held);
  // Null: it holds no such token.
  HeldPtr Find(uint64_t token_id) const;
  void Remove(Held* held);
  // Looks after it at `due_ms`; 0: never.
  void Plan(Held* held, int64_t due_ms);
  // After a third of the hold, but at least 10 ms, or earlier if its rule ends the token;
  // `since_ms`: when the hold began. Not at all if nobody keeps it.
  void PlanNext(Held* held, int64_t since_ms, const RuleViews& rules);
  // The next one that is due by `now_ms`, which is then not planned any more; null: none.
  HeldPtr TakeDue(int64_t now_ms);
  // INT64_MAX: none is planned.
  int64_t NextDue() const { return due_.empty() ? INT64_MAX : due_.begin()->first; }
  std::vector<HeldPtr> All() const;
  size_t size() const { return tokens_.size(); }

 private:
  std::unordered_map<uint64_t, HeldPtr> tokens_;
  std::set<std::pair<int64_t, uint64_t>> due_;  // Moment and token.
};

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_HELD_TOKENS_H_
