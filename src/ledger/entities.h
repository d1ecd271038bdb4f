// The ledger's structs. Byte layouts: codec.h, FORMAT.md.
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

inline constexpr uint32_t kFormatVersion = 4;
inline constexpr uint32_t kFormatVersionMin = 1;

struct Format {
  uint32_t version = kFormatVersion;
  std::array<uint64_t, 2> token_id_key{};  // Keys the permutation from fences to token ids.
  int64_t created_wall_ms = 0;
};

// Where a live token lies.
struct TokenKey {
  Family family = Family::kTokensShort;
  int64_t deadline_ms = 0;
  TokenId id;

  auto operator<=>(const TokenKey&) const = default;
};

// Times are ledger-clock milliseconds.
struct Token {
  TokenKey key;
  FlowId flow;
  SessionId session;
  uint32_t count = 0;
  int64_t issued_ms = 0;
  Fence fence;
  uint64_t request_id = 0;  // The client's idempotency key; 0: none.
  std::optional<ParamValue> param{};

  bool operator==(const Token&) const = default;
};

// Tokens of a session share a request id only within one acquire_all, which draws consecutive
// fences.
inline bool MayShareRequestId(Fence a, Fence b) {
  return (a.value < b.value ? b.value - a.value : a.value - b.value) < kAcquireAllMax;
}

enum class SessionKind : uint8_t {
  kNamed = 1,       // Declared a client id; survives reconnects and restarts.
  kConnection = 2,  // Ends with its connection; named "@HOST:PORT" for display.
  kSentinel = 3,    // As kConnection; another Sentinel connection may end and keep its tokens.
};

struct Session {
  SessionId id;
  SessionKind kind = SessionKind::kNamed;
  int64_t opened_ms = 0;
  std::string name_space;
  std::string client_id;
  // Tells processes of one client id apart. 0 .. 2^63-1; 0 for kConnection.
  uint64_t instance = 0;

  bool operator==(const Session&) const = default;
};

enum class RuleState : uint8_t {
  kActive = 1,
  // Removed by its namespace, kept while tokens of the flow are out.
  kRemoved = 2,
  kDraining = 3,  // In force, but an administrator has stopped its grants.
};

constexpr bool IsInForce(RuleState state) { return state != RuleState::kRemoved; }

// Every flow with live tokens has a rule of their kind. A flow id has at most one of each kind.
struct RuleEntry {
  std::string name_space;
  FlowId flow;
  RuleState state = RuleState::kActive;
  std::string json;  // Not empty; src/core interprets it.

  bool operator==(const RuleEntry&) const = default;
};

// Only the source of a namespace's active rules may replace them. No entry without an active rule.
struct NamespaceEntry {
  std::string name_space;
  std::string source;  // "rpc", "file:/etc/nowcalls/shop.json" (nowcalls/rule_source.h).

  bool operator==(const NamespaceEntry&) const = default;
};

// A bucket of a flow's window of calls a second.
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

// Ledger and machine clocks at one moment (clock.h).
struct ClockMark {
  int64_t ledger_ms = 0;
  ClockSample machine;
};

// No live token has a deadline below it.
struct Watermark {
  int64_t deadline_ms = 0;
};

// Token ids end at 2^63 - 1; the rest is room for skipped numbers.
inline constexpr uint64_t kFenceMax = uint64_t{1} << 62;

// Ends every batch.
struct Seal {
  uint64_t batch_number = 0;  // Consecutive from 1.
  uint64_t next_fence = 1;    // Above every number of a grant or a session; <= kFenceMax.
  int64_t ledger_ms = 0;      // The clock when the batch was sealed.
  uint64_t live_tokens = 0;
  uint64_t live_count_sum = 0;  // Sum of count over live tokens.
  uint64_t live_fence_sum = 0;  // Sum of fences of live tokens, modulo 2^64.

  bool operator==(const Seal&) const = default;
};

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_ENTITIES_H_
