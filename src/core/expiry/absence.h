// Absence: when the tokens of offline sessions are due, and what becomes of the sessions.
//
// Thread: loop. A token is due when its session has been offline for its rule's clientOfflineTime;
// then the expire judge is asked. It changes members of absent sessions, and cursors of the token
// table.
//
// Every part ends tokens by EndToken: no offline session without tokens outlives the call.
#ifndef NOWCALLS_CORE_EXPIRY_ABSENCE_H_
#define NOWCALLS_CORE_EXPIRY_ABSENCE_H_

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "base/time.h"
#include "core/books.h"
#include "core/expiry/expire_judge.h"
#include "core/expiry/mass_expiry.h"
#include "core/notices.h"
#include "core/step.h"
#include "core/tables/slot.h"
#include "nowcalls/call_outcome.h"

namespace nowcalls::core {

class Absence {
 public:
  Absence(Books* books, SessionTable* sessions, TokenTable* tokens, MassExpiry* mass_expiry,
          ExpireJudge* judge, Notices* notices)
      : books_(books),
        sessions_(sessions),
        tokens_(tokens),
        mass_expiry_(mass_expiry),
        judge_(judge),
        notices_(notices) {}

  // Loaded sessions are offline from now on.
  void Begin(Instant now);
  // Its first connection came; its last one went.
  void CameBack(SessionSlot slot);
  void WentOffline(const Step& step, SessionSlot slot);

  // Closes the session, too, if offline without another token. `outcome`: of its release.
  void EndToken(const Step& step, TokenSlot slot, EndReason reason, std::string_view note = {},
                CallOutcome outcome = CallOutcome::kOk);

  // The time of a flow with tokens fell to this.
  void LowerOfflineTime(int64_t client_offline_time_ms);

  // Looks at Step::kDueLooksMax due tokens at most.
  void OnTime(const Step& step);
  // kNever: nothing is planned.
  Instant NextDeadline() const;

 private:
  // Over a session's tokens, in pieces.
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

  // Checks: at most one entry a session.
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
  SessionTable* const sessions_;
  TokenTable* const tokens_;
  MassExpiry* const mass_expiry_;
  ExpireJudge* const judge_;
  Notices* const notices_;
  // Offline sessions by when to look at them.
  absl::btree_set<std::pair<int64_t, SessionSlot>> checks_;
  Walk walk_;  // Of no session between two walks.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_EXPIRY_ABSENCE_H_
