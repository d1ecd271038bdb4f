// CallOutcome: how a permitted call ended, as its release says.
#ifndef NOWCALLS_CALL_OUTCOME_H_
#define NOWCALLS_CALL_OUTCOME_H_

#include <cstdint>
#include <string_view>

#include "nowcalls/export.h"

namespace nowcalls {

// The numbers are part of the ledger's format, the names of the protocol.
enum class CallOutcome : uint8_t {
  kOk = 0,       // Well, or the release says nothing.
  kFailed = 1,   // With an error.
  kTimeout = 2,  // The caller gave it up.
};
inline constexpr int kCallOutcomeCount = 3;

constexpr std::string_view CallOutcomeName(CallOutcome outcome) {
  switch (outcome) {
    case CallOutcome::kOk: return "ok";
    case CallOutcome::kFailed: return "failed";
    case CallOutcome::kTimeout: return "timeout";
  }
  return "unknown";
}

}  // namespace nowcalls

#endif  // NOWCALLS_CALL_OUTCOME_H_
