// Groups: acquire_all, which takes all items of a request, tokens and rates, or none.
//
// Thread: loop. A group is the request's items in a fixed order: by flow id, then by parameter.
// All of them are granted in one call, and so in one batch.
//
// A group that waits holds nothing, so no two groups can wait for each other. It stands in one line
// only, that of the first of its lanes that is in the way. When its turn comes there, all items are
// looked at. If another lane is in the way by then, the group moves into that one's line, to the
// place that its arrival gives it. The line that it leaves goes on without it.
//
// Items that are rates are asked when all lanes have room, and taken with the grant. A rate that is
// in the way refuses the group at once, and no rate has been taken then.
//
// Groups asks Room for limits, Waiting for lines and Rates for rates. It knows tokens only through
// Books.
#ifndef NOWCALLS_CORE_GROUPS_H_
#define NOWCALLS_CORE_GROUPS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/answers.h"
#include "core/books.h"
#include "core/other_kind.h"
#include "core/rates.h"
#include "core/room.h"
#include "core/slot.h"
#include "core/step.h"
#include "core/wait_queues.h"
#include "core/waiting.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Groups {
 public:
  Groups(Books* books, Waiting* waiting, OtherKind* other_kind, const Room* room, Rates* rates)
      : books_(books), waiting_(waiting), other_kind_(other_kind), room_(room), rates_(rates) {}

  // See Core.
  std::optional<AcquireAllAnswer> Acquire(const Step& step, SessionSlot session_slot,
                                          const AcquireAllRequest& request, WaitTicket ticket);
  // The turn of a group has come in its lane, which has room for it: it is granted or refused, or
  // it moves into the line of another lane. Returns how many items it has.
  // REQUIRES: the waiter is a group, and the first in line.
  uint32_t Serve(const Step& step, WaiterSlot slot);

 private:
  struct Item;
  class Lanes;
  using Items = std::vector<Item>;

  static Items InOrder(const AcquireAllRequest& request);
  static Items ItemsOf(const WaitingGroup& group);
  static WaitingGroup ToKeep(const Items& items);
  static bool IsSame(const Items& items, const WaitingGroup& group);

  bool AnswerByRequestId(const Step& step, SessionSlot session_slot, const Items& items,
                         const AcquireAllRequest& request, WaitTicket ticket,
                         std::optional<AcquireAllAnswer>* answer);
  AcquireAllAnswer AnswerOfTokens(const Step& step, SessionSlot session_slot, const Items& items,
                                  uint64_t request_id);
  bool AnswerOfWaiter(const Step& step, WaiterSlot slot, const Items& items,
                      const AcquireAllRequest& request, WaitTicket ticket,
                      std::optional<AcquireAllAnswer>* answer);

  std::optional<AcquireAllAnswer> FindLanes(const Step& step, Items* items, bool is_new);
  std::optional<AcquireAllAnswer> FindLane(const Step& step, Item* item, bool is_new);
  RefusedBy ServerLimit(const Items& items) const;
  std::optional<AcquireAllAnswer> FindOverLevel(const Step& step, SessionSlot session_slot,
                                                Items* items);
  const Item* FirstInTheWay(SessionSlot session_slot, bool prioritized, uint64_t number,
                            const LaneRef& standing_in, Items* items);
  std::optional<AcquireAllAnswer> AskRates(const Step& step, bool prioritized, Items* items);
  AcquireAllAnswer RefuseRate(const Step& step, const Item& item);
  static Rates::Wish WishOf(const Item& item, bool prioritized);
  struct Terms {
    SessionSlot session_slot;
    uint64_t request_id = 0;
    int64_t hold_ms = 0;
    bool prioritized = false;
  };
  AcquireAllAnswer Grant(const Step& step, const Terms& terms, const Items& items);
  GrantedToken GrantToken(const Step& step, const Terms& terms, const Item& item);
  AcquireAllAnswer Refuse(const Item& item, TokenStatus status, RefusedBy limit);
  AcquireAllAnswer RefuseAll(const Items& items, TokenStatus status, RefusedBy limit);

  Books* const books_;
  Waiting* const waiting_;
  OtherKind* const other_kind_;
  const Room* const room_;
  Rates* const rates_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_GROUPS_H_
