// Presence: clients come and go.
//
// Thread: loop. Opens sessions; counts their connections and those online.
#ifndef NOWCALLS_CORE_PRESENCE_H_
#define NOWCALLS_CORE_PRESENCE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/answers.h"
#include "core/books.h"
#include "core/expiry/absence.h"
#include "core/grants/waiting.h"
#include "core/notices.h"
#include "core/step.h"
#include "core/tables/slot.h"
#include "nowcalls/status.h"

namespace nowcalls::core {

class Presence {
 public:
  Presence(Books* books, FlowTable* flows, SessionTable* sessions, WakeList* wake_list,
           Absence* absence, Waiting* waiting, Notices* notices)
      : books_(books),
        flows_(flows),
        sessions_(sessions),
        wake_list_(wake_list),
        absence_(absence),
        waiting_(waiting),
        notices_(notices) {}

  // See Core.
  Result<HelloAnswer> Hello(const Step& step, const HelloRequest& request);
  void Goodbye(const Step& step, SessionSlot slot, uint32_t owner, std::string_view display_id);

 private:
  SessionSlot Find(const HelloRequest& request) const;  // kNoSession: none yet.
  Result<SessionSlot> Open(const Step& step, const HelloRequest& request);
  Status CheckExclusive(const HelloRequest& request) const;
  void WarnOfInstances(std::string_view display_id, const SessionState& session);
  void WarnIfShared(std::string_view display_id, SessionState* session);

  Books* const books_;
  FlowTable* const flows_;
  SessionTable* const sessions_;
  WakeList* const wake_list_;
  Absence* const absence_;
  Waiting* const waiting_;
  Notices* const notices_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_PRESENCE_H_
