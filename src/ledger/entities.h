// What the ledger stores, as plain structs. Byte layouts are in codec.h and FORMAT.md.
#ifndef NOWCALLS_LEDGER_ENTITIES_H_
#define NOWCALLS_LEDGER_ENTITIES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/limits.h"
#include "ledger/families.h"
#include "nowcalls/param.h"
#include "nowcalls/types.h"

namespace nowcalls::ledger {

// What a ledger is made with. Ledgers of earlier versions are read as they are. The first batch of
// a server raises them to this version.
inline constexpr uint32_t kFormatVersion = 4;
inline constexpr uint32_t kFormatVersionMin = 1;

// Made when a ledger is formatted.
struct Format {
  uint32_t version = kFormatVersion;
  std::array<uint64_t, 2> token_id_key{};  // Keys the permutation from fences to token ids.
  int64_t created_wall_ms = 0;
};

// Where a live token lies: its family, and the key's two halves.
struct TokenKey {
  Family family = Family::kTokensShort;
  int64_t deadline_ms = 0;
  TokenId id;

  auto operator<=>(const TokenKey&) const = default;
};

// One live token. Times are ledger-clock milliseconds.
struct Token {
  TokenKey key;
  FlowId flow;
  SessionId session;
  uint32_t count = 0;
  int64_t issued_ms = 0;
  Fence fence;
  uint64_t request_id = 0;  // The client's idempotency key; 0: none.
  // The value of the rule's parameter that the token counts against; none: the rule has no
  // parameter.
  std::optional<ParamValue> param{};

  bool operator==(const Token&) const = default;
};

// Tokens of a session have one request id only if one acquire_all issued them together. It draws
// their fences one after the other.
inline bool MayShareRequestId(Fence a, Fence b) {
  return (a.value < b.value ? b.value - a.value : a.value - b.value) < kAcquireAllMax;
}

// How a session's identity lives on.
enum class SessionKind : uint8_t {
  kNamed = 1,       // Declared a client id; survives reconnects and restarts.
  kConnection = 2,  // Ends with its connection; named "@HOST:PORT" for display.
  kSentinel = 3,    // Likewise, of Sentinel's frames: others of them may end and keep its tokens.
};

struct Session {
  SessionId id;
  SessionKind kind = SessionKind::kNamed;
  int64_t opened_ms = 0;
  std::string name_space;
  std::string client_id;
  // Tells the processes of one client id apart; each has a session of its own. 0 .. 2^63-1; 0 for
  // kConnection.
  uint64_t instance = 0;

  bool operator==(const Session&) const = default;
};

enum class RuleState : uint8_t {
  kActive = 1,
  // By its namespace, while tokens of the flow are out: kept for what it says of them.
  kRemoved = 2,
  kDraining = 3,  // In force, but an administrator has stopped its grants.
};

// Whether its namespace has the rule now.
constexpr bool IsInForce(RuleState state) { return state != RuleState::kRemoved; }

// A rule of a flow. Every flow with live tokens has one for them: of the flow for those without a
// parameter, by value for the others. A namespace has at most one of each kind of a flow id.
struct RuleEntry {
  std::string name_space;
  FlowId flow;
  RuleState state = RuleState::kActive;
  std::string json;  // Not empty; src/core interprets it.

  bool operator==(const RuleEntry&) const = default;
};

// Where the active rules of a namespace come from; only their source may replace them. One for each
// namespace that has an active rule.
struct NamespaceEntry {
  std::string name_space;
  std::string source;  // "rpc", "file:/etc/nowcalls/shop.json" (nowcalls/rule_source.h).

  bool operator==(const NamespaceEntry&) const = default;
};

// One bucket of a flow's window of calls a second.
struct RateKey {
  FlowId flow;
  int64_t begin_ms = 0;  // Ledger clock.

  auto operator<=>(const RateKey&) const = default;
};

struct RateBucket {
  RateKey key;
  int64_t passed = 0;  // Calls; 0 or more, as is `lent`.
  int64_t lent = 0;    // By the bucket that follows, to calls of this one.

  bool operator==(const RateBucket&) const = default;
};

// The ledger clock at one moment, with what the machine's clocks said then (clock.h).
struct ClockMark {
  int64_t ledger_ms = 0;
  ClockSample machine;
};

// Leaves room for numbers to be skipped without leaving the range of token ids, 2^63 - 1.
inline constexpr uint64_t kFenceMax = uint64_t{1} << 62;

// Written at the end of every batch. The sums let recovery prove that the live tokens it found are
// exactly those that were live at that batch; nowCalls itself is never stored.
struct Seal {
  uint64_t batch_number = 0;  // Consecutive from 1.
  uint64_t next_fence = 1;  // Below it is every number given to a grant or a session; <= kFenceMax.
  int64_t ledger_ms = 0;    // The clock when the batch was sealed.
  uint64_t live_tokens = 0;
  uint64_t live_count_sum = 0;  // Sum of count over live tokens.
  uint64_t live_fence_sum = 0;  // Sum of fences of live tokens, modulo 2^64.

  bool operator==(const Seal&) const = default;
};

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_ENTITIES_H_
