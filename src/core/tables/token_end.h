// TokenEnd: how a token ends.
//
// Thread: any.
#ifndef NOWCALLS_CORE_TABLES_TOKEN_END_H_
#define NOWCALLS_CORE_TABLES_TOKEN_END_H_

#include <string_view>

#include "nowcalls/call_outcome.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

struct TokenEnd {
  EndReason reason = EndReason::kReleased;
  CallOutcome outcome = CallOutcome::kOk;  // Of the call, as its release says.
  std::string_view note{};                 // An administrator's reason, for the history.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_TABLES_TOKEN_END_H_
