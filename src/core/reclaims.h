// Reclaims: administrators take tokens back.
//
// Thread: loop. A call ends a bounded number of tokens, and says whether more are left.
#ifndef NOWCALLS_CORE_RECLAIMS_H_
#define NOWCALLS_CORE_RECLAIMS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/answers.h"
#include "core/expiry/absence.h"
#include "core/notices.h"
#include "core/sight.h"
#include "core/step.h"
#include "core/tables/flow_table.h"
#include "core/tables/session_table.h"
#include "core/tables/slot.h"
#include "core/tables/token_ids.h"
#include "core/tables/token_table.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

// kNotFound.
Status NoSuchFlow(const FlowChoice& choice);

class Reclaims {
 public:
  // `looks`: Books::looks.
  Reclaims(const FlowTable* flows, const SessionTable* sessions, const TokenTable* tokens,
           const TokenIds* ids, uint64_t* looks, Absence* absence, Notices* notices)
      : flows_(flows),
        sessions_(sessions),
        tokens_(tokens),
        ids_(ids),
        looks_(looks),
        absence_(absence),
        notices_(notices) {}

  // See Core.
  TokenStatus Reclaim(const Step& step, TokenId token, const AdminAct& act);
  ReclaimAnswer ReclaimClient(const Step& step, const ClientChoice& client, uint32_t tokens_max,
                              const AdminAct& act, const Sight& sight);
  Result<ReclaimAnswer> ReclaimFlow(const Step& step, const FlowChoice& choice, uint32_t tokens_max,
                                    const AdminAct& act);
  Result<ReclaimAnswer> Purge(const Step& step, const FlowChoice& choice, uint32_t tokens_max,
                              const AdminAct& act);
  ReclaimPage ReclaimNamespace(const Step& step, const NamespacePiece& piece, const AdminAct& act);

 private:
  ReclaimAnswer EndTokensOfAll(const Step& step, const std::vector<FlowSlot>& slots,
                               uint32_t tokens_max, EndReason reason, const AdminAct& act);
  ReclaimAnswer EndTokensOf(const Step& step, FlowSlot slot, uint32_t tokens_max, EndReason reason,
                            std::string_view note);

  const FlowTable* const flows_;
  const SessionTable* const sessions_;
  const TokenTable* const tokens_;
  const TokenIds* const ids_;
  uint64_t* const looks_;
  Absence* const absence_;
  Notices* const notices_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RECLAIMS_H_
