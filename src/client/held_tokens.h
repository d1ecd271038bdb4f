// HeldTokens: the tokens of a session, when each is to be looked after, and until when they are
// surely its own.
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
  // REQUIRES: it holds no token of that id.
  void Add(HeldPtr held);
  // Null: it holds no such token.
  HeldPtr Find(uint64_t token_id) const;
  // False: it does not hold it.
  bool Remove(Held* held);

  // A grant or a keep that was asked at `sent_ms` is confirmed: the token lives for `hold_ms` from
  // then on. `terms`: none if the server does not tell them.
  void Confirm(Held* held, int64_t sent_ms, uint64_t hold_ms,
               const std::optional<wire::Terms>& terms);
  // A request of the session that was sent at `sent_ms` is answered.
  void InContact(int64_t sent_ms);
  // When the latest of them was sent.
  int64_t contact_ms() const { return *contact_ms_; }
  // The smallest clientOfflineTime; INT64_MAX: none is known.
  int64_t absence_ms() const { return absences_.empty() ? INT64_MAX : absences_.begin()->first; }
  // Tokens whose session may count as offline by now.
  std::vector<HeldPtr> OutOfContact(int64_t now_ms) const;

  // Looks after it at `due_ms`; 0: never.
  void Plan(Held* held, int64_t due_ms);
  // At the end of its hold, or when its rule ends it. If it is kept, earlier: a third of the hold
  // from `since_ms` on, but at least 10 ms.
  void PlanNext(Held* held, int64_t since_ms);
  // The same without a keep: one is on its way, or cannot be sent.
  void PlanEnd(Held* held);
  // The next one that is due by `now_ms`, which is then not planned any more; null: none.
  HeldPtr TakeDue(int64_t now_ms);
  // INT64_MAX: nothing is planned.
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

// A time as a server may tell it.
int64_t TimeMs(uint64_t told_ms);

}  // namespace nowcalls::client

#endif  // NOWCALLS_CLIENT_HELD_TOKENS_H_
