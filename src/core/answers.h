// Requests to the core, and its answers.
//
// Thread: any.
#ifndef NOWCALLS_CORE_ANSWERS_H_
#define NOWCALLS_CORE_ANSWERS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "core/tables/slot.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/param.h"
#include "nowcalls/types.h"

namespace nowcalls::core {

// Addresses a late answer.
struct WaitTicket {
  uint32_t owner = 0;  // A connection of the engine.
  uint32_t tag = 0;    // Its msgid.

  bool operator==(const WaitTicket&) const = default;
};

struct AcquireRequest {
  FlowId flow;
  int64_t count = 1;
  bool prioritized = false;
  // The longest wait; 0: none. Unset: the rule's.
  std::optional<int64_t> wait_ms{};
  int64_t wait_ms_max = kWaitMsMax;  // However long the rule or the request says.
  uint64_t request_id = 0;           // Of the session; 0: none.
  int64_t hold_ms = 0;               // Of this token; 0, or more than the rule's: the rule's.
  // A value means the rule by value; none: the rule of the flow.
  // REQUIRES: a ledger can hold it (ledger/param_codec.h).
  std::optional<Param> param{};

  FlowKey key() const { return {flow, FlowKindIf(param.has_value())}; }
};

// A rule's terms for the end of a token.
struct TokenTerms {
  int32_t timeout_strategy = 0;     // resourceTimeoutStrategy.
  int64_t resource_timeout_ms = 0;  // resourceTimeout.
  int64_t client_offline_ms = 0;    // clientOfflineTime.
};

struct AcquireAnswer {
  TokenStatus status = TokenStatus::kFail;
  RefusedBy refused_by = RefusedBy::kNone;
  TokenId token_id{};
  Fence fence{};
  int64_t now_calls = 0;  // Of the flow, or of the value of its parameter; so is the level.
  int64_t level = 0;
  int64_t hold_ms = 0;
  TokenTerms terms{};  // Of a grant.
};

// One token of an acquire_all, or calls a second.
struct AllItem {
  FlowId flow;
  int64_t count = 1;
  std::optional<Param> param{};  // As of AcquireRequest.
  bool rate = false;             // It asks for calls a second: as RateRequest, without a token.
};

// Other members: as AcquireRequest.
struct AcquireAllRequest {
  // REQUIRES: 1 .. kAcquireAllMax, no two with the same flow, param and `rate`.
  std::span<const AllItem> items;
  bool prioritized = false;
  std::optional<int64_t> wait_ms{};
  uint64_t request_id = 0;
  int64_t hold_ms = 0;
};

// For a rate, id and fence are 0.
struct GrantedToken {
  TokenId id;
  Fence fence;
  int64_t hold_ms = 0;  // Of a rate: the calls may be made after this.
  TokenTerms terms{};
};

struct AcquireAllAnswer {
  TokenStatus status = TokenStatus::kFail;
  RefusedBy refused_by = RefusedBy::kNone;
  std::vector<GrantedToken> tokens{};  // Of the items, in their order; none when refused.
  // The rule that refuses, or whose queue it was in; 0: no single rule.
  FlowId flow{};
  int64_t now_calls = 0;  // As of AcquireAnswer, of this rule; 0 if its calls a second refuse.
  int64_t level = 0;
  std::optional<ParamValue> value{};  // Of the item in the way, if it has one.
};

// From an online session.
struct Loss {
  SessionSlot session_slot;
  TokenId token;
  FlowId flow;
  EndReason reason = EndReason::kAdmin;
};

// Of an acquire or acquire_all that waited.
struct LateAnswer {
  WaitTicket ticket;
  AcquireAnswer answer{};
  std::optional<AcquireAllAnswer> all{};  // It was an acquire_all; `answer` is of no meaning.
};

// For calls a second.
struct RateRequest {
  FlowId flow;
  int64_t count = 1;
  bool prioritized = false;  // May borrow from the next bucket of the window.
};

struct RateAnswer {
  TokenStatus status = TokenStatus::kFail;
  RefusedBy refused_by = RefusedBy::kNone;
  int64_t remaining = 0;  // kOk: what may follow at once; -1 when several values were asked for.
  int64_t wait_ms = 0;    // kShouldWait: the call may be made after this.
  // The place of the value that refuses.
  std::optional<uint32_t> value{};
};

// Tokens that a release or keep may touch.
enum class TokenScope : uint8_t {
  kSession,   // Its own.
  kSentinel,  // Its own, and those of all Sentinel connections of its namespace.
};

struct KeepAnswer {
  TokenStatus status = TokenStatus::kFail;
  int64_t hold_ms = 0;
  TokenTerms terms{};  // kOk only.
};

struct HelloRequest {
  std::string_view name_space;
  std::optional<std::string_view> client_id{};  // None: a session that ends with its connection.
  std::string_view display_id;                  // "@HOST:PORT" of the connection.
  uint64_t instance = 0;     // Of the client id, at most INT64_MAX; of no meaning without one.
  bool exclusive = false;    // Refused while the client id is online as another process.
  bool of_sentinel = false;  // A connection of Sentinel's frames; without a client id.
};

struct HelloAnswer {
  SessionSlot session;
  SessionId session_id;
  uint32_t sessions_online = 0;
  uint64_t resumed_tokens = 0;
};

struct AdminAct {
  std::string_view by;      // HOST:PORT of the connection, for the log.
  std::string_view reason;  // For the log and the history; at most kReasonBytesMax.
  // Empty without an access file.
  std::string_view principal{};  // For the log and the history.
  std::string_view proof{};      // By what the server knows it.
  std::string_view method{};
};

struct ClientChoice {
  std::string_view name_space;
  std::string_view client_id;          // Or "@HOST:PORT".
  std::optional<uint64_t> instance{};  // None: all.
};

struct ReclaimAnswer {
  uint32_t reclaimed = 0;
  bool more = false;  // Tokens are left.
};

struct ReclaimPage {
  uint32_t reclaimed = 0;
  int64_t next_flow = 0;  // Where the next piece begins; 0: this was the last.
};

struct DrainAnswer {
  TokenStatus status = TokenStatus::kNoRuleExists;  // Or kOk.
  int64_t now_calls = 0;
  uint32_t tokens = 0;
};

// A piece by flow id, and the sums of its rules.
struct DrainPage {
  TokenStatus status = TokenStatus::kNoRuleExists;  // Or kOk.
  int64_t now_calls = 0;
  uint64_t tokens = 0;
  uint32_t rules = 0;
  int64_t next_flow = 0;  // As of ReclaimPage.
};

struct NamespacePiece {
  std::string_view name_space;
  int64_t first_flow = 0;
  uint32_t limit = 0;  // Tokens or rules; both rules of a flow id are drained in one piece.
};

struct TokenFilter {
  std::optional<FlowId> flow;
  std::optional<FlowKind> kind;
  std::optional<std::string> client_id;
  std::optional<uint64_t> instance;  // Of the client id.
  std::optional<SessionId> session;  // Read from its own list, however many others hold.
  int64_t min_age_ms = 0;
};
struct TokenPage {
  std::vector<TokenSlot> tokens;  // Valid until the next call that changes the core.
  uint64_t next_cursor = 0;       // 0: nothing is left.
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_ANSWERS_H_
