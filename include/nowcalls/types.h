// The ids, statuses and reasons of nowcalls. Status numbers are those of Sentinel's
// TokenResultStatus.
#ifndef NOWCALLS_TYPES_H_
#define NOWCALLS_TYPES_H_

#include <compare>
#include <cstdint>
#include <string_view>

#include "nowcalls/export.h"

namespace nowcalls {

namespace internal {

// An integer that compares only with its own `Tag`.
template <typename Tag, typename Rep>
struct StrongInt {
  Rep value = 0;
  constexpr StrongInt() = default;
  constexpr explicit StrongInt(Rep v) : value(v) {}
  constexpr auto operator<=>(const StrongInt&) const = default;
};

}  // namespace internal

// Names a rule; > 0 and unique across namespaces (Sentinel's clusterConfig.flowId).
using FlowId = internal::StrongInt<struct FlowIdTag, int64_t>;

// 1 .. 2^63-1, never repeated in a ledger.
using TokenId = internal::StrongInt<struct TokenIdTag, uint64_t>;

// Grows strictly with each grant, across restarts. A resource that remembers the highest fence can
// reject a holder whose token was reclaimed.
using Fence = internal::StrongInt<struct FenceTag, uint64_t>;

// Names a session, by the sequence of the fences: no two that ever held a token share one.
using SessionId = internal::StrongInt<struct SessionIdTag, uint64_t>;

// The answer to a token request (Sentinel's TokenResultStatus).
enum class TokenStatus : int8_t {
  kBadRequest = -4,
  kTooManyRequest = -2,
  kFail = -1,
  kOk = 0,
  kBlocked = 1,
  kShouldWait = 2,
  kNoRuleExists = 3,
  kNoRefRuleExists = 4,
  kNotAvailable = 5,
  kReleaseOk = 6,
  kAlreadyRelease = 7,
};

// "OK", "BLOCKED", ... as Sentinel spells them.
constexpr std::string_view TokenStatusName(TokenStatus status) {
  switch (status) {
    case TokenStatus::kBadRequest: return "BAD_REQUEST";
    case TokenStatus::kTooManyRequest: return "TOO_MANY_REQUEST";
    case TokenStatus::kFail: return "FAIL";
    case TokenStatus::kOk: return "OK";
    case TokenStatus::kBlocked: return "BLOCKED";
    case TokenStatus::kShouldWait: return "SHOULD_WAIT";
    case TokenStatus::kNoRuleExists: return "NO_RULE_EXISTS";
    case TokenStatus::kNoRefRuleExists: return "NO_REF_RULE_EXISTS";
    case TokenStatus::kNotAvailable: return "NOT_AVAILABLE";
    case TokenStatus::kReleaseOk: return "RELEASE_OK";
    case TokenStatus::kAlreadyRelease: return "ALREADY_RELEASE";
  }
  return "UNKNOWN";
}

// The limit that refused an acquire; kNone: granted. Numbers are for counting; the wire has words.
enum class RefusedBy : uint8_t {
  kNone = 0,
  // Limits of a rule, which shadow mode lets pass.
  kLevel = 1,         // The rule's concurrency level.
  kOverLevel = 2,     // It asks for more than the level or the cap: no wait would help.
  kClientCap = 3,     // The rule's maxPerClient, for this session.
  kParam = 4,         // The limit of one value of the rule's parameter.
  kWaitersAhead = 5,  // Others wait for the room there is, and come first.
  kRate = 6,          // The rule's calls a second.
  // All others.
  kNamespaceQps = 7,   // The namespace's requests a second (namespace_qps_max).
  kTokenLimit = 8,     // The server's own bound on live tokens.
  kDraining = 9,       // An administrator has stopped the rule's grants.
  kQueueFull = 10,     // The rule, the connection or the server has as many waiters as it may.
  kQueueTimeout = 11,  // The time to wait passed.
  kCancelled = 12,     // The request id was cancelled.
  kSuperseded = 13,    // The same request id was asked again; that one is answered instead.
  kRequestId = 14,     // The request id is in use for another flow or count.
  kDiskLow = 15,       // The ledger's file system has too little space left.
  kKeyLimit = 16,      // The server's own bound on values that tokens hold or waiters ask for.
  kOther = 255,        // Clients only: a limit that a later server knows and this client does not.
};

inline constexpr int kRefusedByCount = 17;  // Below it all that servers know.
inline constexpr int kRuleLimitCount = 7;   // Below it those of a rule.

// The wire's word; empty for kNone.
constexpr std::string_view RefusedByName(RefusedBy limit) {
  switch (limit) {
    case RefusedBy::kNone: return "";
    case RefusedBy::kLevel: return "level";
    case RefusedBy::kTokenLimit: return "token_limit";
    case RefusedBy::kDraining: return "draining";
    case RefusedBy::kClientCap: return "client_cap";
    case RefusedBy::kWaitersAhead: return "waiters_ahead";
    case RefusedBy::kQueueFull: return "queue_full";
    case RefusedBy::kQueueTimeout: return "queue_timeout";
    case RefusedBy::kCancelled: return "cancelled";
    case RefusedBy::kSuperseded: return "superseded";
    case RefusedBy::kRequestId: return "request_id";
    case RefusedBy::kDiskLow: return "disk_low";
    case RefusedBy::kOverLevel: return "over_level";
    case RefusedBy::kNamespaceQps: return "namespace_qps";
    case RefusedBy::kParam: return "param";
    case RefusedBy::kRate: return "rate";
    case RefusedBy::kKeyLimit: return "key_limit";
    case RefusedBy::kOther: return "other";
  }
  return "";
}

// Why a token ended. The numbers are stored in the ledger and never reused.
enum class EndReason : uint8_t {
  kReleased = 1,         // By its owner, in time.
  kReleasedLate = 2,     // By its owner, after the rule's resourceTimeout.
  kClientOffline = 3,    // Its session stayed offline for clientOfflineTime.
  kResourceTimeout = 4,  // Not kept within resource_timeout_factor x resourceTimeout.
  kRuleRemoved = 5,      // Purged by an administrator after its rule was removed.
  kAdmin = 6,            // Reclaimed by an administrator.
  kCancelled = 7,        // Its acquire was cancelled by request id.
};
inline constexpr int kEndReasonCount = 8;  // Including the unused 0.

// Whether the token was taken from its holder.
constexpr bool IsReclaim(EndReason reason) {
  return reason >= EndReason::kClientOffline && reason <= EndReason::kAdmin;
}

constexpr std::string_view EndReasonName(EndReason reason) {
  switch (reason) {
    case EndReason::kReleased: return "released";
    case EndReason::kReleasedLate: return "released_late";
    case EndReason::kClientOffline: return "client_offline";
    case EndReason::kResourceTimeout: return "resource_timeout";
    case EndReason::kRuleRemoved: return "rule_removed";
    case EndReason::kAdmin: return "admin";
    case EndReason::kCancelled: return "cancelled";
  }
  return "unknown";
}

}  // namespace nowcalls

#endif  // NOWCALLS_TYPES_H_
