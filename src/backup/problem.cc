#include "backup/problem.h"

namespace nowcalls::backup {

std::string_view ProblemName(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kUndecodable: return "undecodable";
    case ProblemKind::kUnreadable: return "unreadable";
    case ProblemKind::kTokenId: return "token_id";
    case ProblemKind::kTokenFamily: return "token_family";
    case ProblemKind::kTokenTime: return "token_time";
    case ProblemKind::kTokenFence: return "token_fence";
    case ProblemKind::kTokenSession: return "token_session";
    case ProblemKind::kTokenRule: return "token_rule";
    case ProblemKind::kDuplicateFence: return "duplicate_fence";
    case ProblemKind::kRequestId: return "request_id";
    case ProblemKind::kWatermark: return "watermark";
    case ProblemKind::kSession: return "session";
    case ProblemKind::kDuplicateClient: return "duplicate_client";
    case ProblemKind::kRule: return "rule";
    case ProblemKind::kDuplicateFlow: return "duplicate_flow";
    case ProblemKind::kNamespace: return "namespace";
    case ProblemKind::kClock: return "clock";
    case ProblemKind::kRate: return "rate";
    case ProblemKind::kHistory: return "history";
    case ProblemKind::kSeal: return "seal";
    case ProblemKind::kFuture: return "future";
  }
  return "unknown";
}

}  // namespace nowcalls::backup
