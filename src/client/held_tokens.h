// HeldTokens: a session's tokens, and when each needs attention.
//
// Thread: the session's.
#ifndef NOWCALLS_CLIENT_HELD_TOKENS_H_
#define NOWCALLS_CLIENT_HELD_TOKENS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/held.h"
#include "wire/messages.h"

namespace nowcalls::client {

class HeldTokens {
 public:
  // REQUIRES: a new id.
  void Add(HeldPtr held);
  // Null: unknown.
  HeldPtr Find(uint64_t token_id) const;
  // False: not held.
  bool Remove(Held* held);

  // Of a grant or keep: the token lives `hold_ms` from `sent_ms`. An older server has no `terms`.
  void Confirm(Held* held, int64_t sent_ms, uint64_t hold_ms,
               const std::optional<wire::Terms>& terms);
  // A request sent at `sent_ms` is answered.
  void InContact(int64_t sent_ms);
  // The latest such `sent_ms`.
  int64_t contact_ms() const { return *contact_ms_; }
  // The smallest clientOfflineTime; INT64_MAX: none.
  int64_t absence_ms() const { return absences_.empty() ? INT64_MAX : absences_.begin()->first; }
  // Tokens whose session may count as offline, by id.
  std::vector<HeldPtr> OutOfContact(int64_t now_ms) const;

  // TakeDue returns it at `due_ms`; 0: never.
  void Plan(Held* held, int64_t due_ms);
  // At the end of its hold or by its rule; if kept, a third of the hold after `since_ms`.
  void PlanNext(Held* held, int64_t since_ms);
  // Without a keep: one is under way, or cannot be sent.
  void PlanEnd(Held* held);
  // Unplans the next token due by `now_ms`; null: none.
  HeldPtr TakeDue(int64_t now_ms);
  // INT64_MAX: none.
  int64_t NextDue() const;
  std::vector<HeldPtr> All() const;
  size_t size() const { return tokens_.size(); }

 private:
  void ForgetAbsence(const Held& held);

  std::unordered_map<uint64_t, HeldPtr> tokens_;
  std::set<std::pair<int64_t, uint64_t>> due_;  // Moment and token.
  std::map<int64_t, size_t> absences_;          // How many tokens have each clientOfflineTime.
  const std::shared_ptr<std::atomic<int64_t>> contact_ms_ =
      std::make_shared<std::atomic<int64_t>>(INT64_MIN / 2);
};

// A server's time, at most kRuleTimeMsMax.
int64_t TimeMs(uint64_t told_ms);

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_HELD_TOKENS_H_
