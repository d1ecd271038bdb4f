// Absence: when the tokens of offline sessions are due, and what becomes of the sessions.
//
// Thread: loop. A session that goes offline gets a check, for the first moment at which one of its
// tokens may be due. A token is due when its rule's clientOfflineTime has passed, which is the same
// moment for all tokens that the session has of a flow; then the expire judge is asked. The check
// walks the session's tokens for those that are due for the first time. Tokens that the judge
// spares wait in the session's SparedTokens for the moment it named. So no walk asks about them
// earlier, and asking again costs as many looks as there are questions, however much the session
// holds. Rules may change meanwhile: the judge's moment holds, but nothing is asked about a token
// before its rule says that the token is due.
//
// It may touch: in sessions, what is meaningful while they are offline; it ends tokens and closes
// sessions through Books. An offline session without tokens does not outlive the call that made it
// so: therefore whoever ends a token that may be an offline session's does it through EndToken.
#ifndef NOWCALLS_CORE_ABSENCE_H_
#define NOWCALLS_CORE_ABSENCE_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "base/time.h"
#include "core/books.h"
#include "core/expire_judge.h"
#include "core/mass_expiry.h"
#include "core/notices.h"
#include "core/slot.h"
#include "core/step.h"
#include "nowcalls/call_outcome.h"

namespace nowcalls::core {

class Absence {
 public:
  Absence(Books* books, MassExpiry* mass_expiry, ExpireJudge* judge, Notices* notices)
      : books_(books), mass_expiry_(mass_expiry), judge_(judge), notices_(notices) {}

  // All sessions that were loaded are offline from now on.
  void Begin(Instant now);
  // The session's first connection is there, or its last one is gone.
  void CameBack(SessionSlot slot);
  void WentOffline(const Step& step, SessionSlot slot);

  // Ends a token, and closes its session if that is offline and the token was its last.
  // `outcome`: what its release says of the call.
  void EndToken(const Step& step, TokenSlot slot, EndReason reason, std::string_view note = {},
                CallOutcome outcome = CallOutcome::kOk);

  // The clientOfflineTime of some flow with tokens became this short: looks at offline sessions
  // when tokens of such a flow would be due, if that is sooner than planned.
  void LowerOfflineTime(int64_t client_offline_time_ms);

  // Looks at tokens that have become due, a bounded number of them.
  void OnTime(const Step& step);
  // When OnTime has something to do next.
  Instant NextDeadline() const;

 private:
  // The look at the tokens of one session, a bounded piece at each OnTime: first those that were
  // never due, then those that were spared for long enough.
  struct Walk {
    SessionSlot session_slot;
    int64_t began_ms = 0;  // Asks about tokens that were due then.
    TokenCursor cursor;
    absl::flat_hash_map<FlowSlot, int64_t> due_ms;  // Of the flows met; the same for all of a flow.
    std::vector<uint64_t> spared;                   // Fences.
    size_t spared_next = 0;
    uint64_t reclaimed = 0;
  };

  void SetOffline(SessionSlot slot, int64_t since_ms);
  void CloseIfUnused(const Step& step, SessionSlot slot);

  // Checks: one entry for each offline session that something is planned for.
  void ArmCheck(SessionSlot slot);
  void DisarmCheck(SessionSlot slot);
  int64_t NextCheckMs(const SessionState& session) const;
  int64_t DueMs(SessionSlot session_slot, FlowSlot flow_slot) const;

  void BeginWalk(const Step& step, SessionSlot slot);
  uint32_t ContinueWalk(const Step& step, uint32_t tokens_max);
  bool WalkHasMore();
  TokenSlot NextDueInWalk();
  bool EndOrSpare(const Step& step, TokenSlot slot);
  void EndWalk();

  Books* const books_;
  MassExpiry* const mass_expiry_;
  ExpireJudge* const judge_;
  Notices* const notices_;
  // Offline sessions by the moment they must be looked at.
  absl::btree_set<std::pair<int64_t, SessionSlot>> checks_;
  Walk walk_;  // Of no session between two walks.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_ABSENCE_H_
