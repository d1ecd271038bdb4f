// Reclaims: administrators take tokens back.
//
// Thread: loop. A call ends a bounded number of tokens, and says whether more are left. Acts that
// ended tokens are noted.
#ifndef NOWCALLS_CORE_RECLAIMS_H_
#define NOWCALLS_CORE_RECLAIMS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/absence.h"
#include "core/answers.h"
#include "core/books.h"
#include "core/notices.h"
#include "core/slot.h"
#include "core/step.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

// kNotFound.
Status NoSuchFlow(const FlowChoice& choice);

class Reclaims {
 public:
  Reclaims(Books* books, Absence* absence, Notices* notices)
      : books_(books), absence_(absence), notices_(notices) {}

  // See Core.
  TokenStatus Reclaim(const Step& step, TokenId token, const AdminAct& act);
  ReclaimAnswer ReclaimClient(const Step& step, const ClientChoice& client, uint32_t tokens_max,
                              const AdminAct& act);
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

  Books* const books_;
  Absence* const absence_;
  Notices* const notices_;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RECLAIMS_H_
