// Groups: acquire_all, which takes all items, tokens and rates, or none.
//
// Thread: loop. Items are ordered by flow id, then parameter, and granted in one call and batch.
//
// A waiting group stands in the line of the first lane in its way. In its turn it is granted,
// refused, or moved to the next lane in the way, by arrival. Rates do not wait: one in the way
// refuses the group.
#ifndef NOWCALLS_CORE_GRANTS_GROUPS_H_
#define NOWCALLS_CORE_GRANTS_GROUPS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/answers.h"
#include "core/books.h"
#include "core/grants/room.h"
#include "core/grants/waiting.h"
#include "core/other_kind.h"
#include "core/rates/rates.h"
#include "core/step.h"
#include "core/tables/slot.h"
#include "core/tables/wait_queues.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

class Groups {
 public:
  Groups(Books* books, FlowTable* flows, WakeList* wake_list, Waiting* waiting,
         OtherKind* other_kind, const Room* room, Rates* rates)
      : books_(books),
        flows_(flows),
        wake_list_(wake_list),
        waiting_(waiting),
        other_kind_(other_kind),
        room_(room),
        rates_(rates) {}

  // See Core.
  std::optional<AcquireAllAnswer> Acquire(const Step& step, SessionSlot session_slot,
                                          const AcquireAllRequest& request, WaitTicket ticket);
  // Returns its number of items. REQUIRES: the waiter is a group, first in a line whose lane has
  // room for it.
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
  FlowTable* const flows_;
  WakeList* const wake_list_;
  Waiting* const waiting_;
  OtherKind* const other_kind_;
  const Room* const room_;
  Rates* const rates_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_GRANTS_GROUPS_H_
