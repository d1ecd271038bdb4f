// Every limit of nowcalls with its default (invariant 8).
//
// Limits has what is configurable; constants are what peers rely on. Settings, `info` and documents
// take defaults from here.
#ifndef NOWCALLS_BASE_LIMITS_H_
#define NOWCALLS_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace nowcalls {

// Wire, fixed by the protocol (src/wire/PROTOCOL.md).
inline constexpr size_t kMessageBytesMax = 64 * 1024;  // A message; listings may answer more.
inline constexpr int kNestingMax = 8;                  // Arrays and maps within one message.
inline constexpr uint32_t kElementsMax = 1024;         // Elements of one array, pairs of one map.
inline constexpr uint32_t kStringBytesMax = 4096;      // A str or bin, but for rules_load's JSON.
inline constexpr size_t kReplyBytesMax = 4 * 1024 * 1024;  // One answer, as a client accepts it.
inline constexpr uint32_t kListRowsMax = 1000;             // Rows of one listing page.
inline constexpr uint32_t kListRowsDefault = 100;

// Names.
inline constexpr size_t kNamespaceBytesMax = 128;
inline constexpr size_t kClientIdBytesMax = 128;
inline constexpr size_t kReasonBytesMax = 256;
inline constexpr size_t kRuleSourceBytesMax = 4200;  // "file:" and a path as long as Linux has it.

inline constexpr size_t kSecretBytesMax = 256;  // Of identify.

// Requests.
inline constexpr int64_t kCountMax = INT32_MAX;   // Of one acquire; the least is 1.
inline constexpr int64_t kWaitMsMax = 3'600'000;  // For room, an acquire.
inline constexpr size_t kAcquireAllMax = 64;      // Items of one acquire_all.
// A call of an administrator.
inline constexpr uint32_t kReclaimTokensMax = 1000;

// Connections that nobody knows (engine/strangers.h).
inline constexpr int64_t kStrangerMsMax = 10'000;  // Then they are closed.
inline constexpr size_t kStrangerBytesMax = 4096;  // Each way.
inline constexpr int64_t kWrongSecretMs = 1000;    // Until the answer to a wrong secret.
inline constexpr uint32_t kWrongSecretsMax = 5;    // Of a connection; then it is closed.

// History.
inline constexpr uint32_t kHistoryEntriesMax = 1'000'000;  // What history_max may be at most.

// Rules.
inline constexpr size_t kRulesFileBytesMax = 64 * 1024 * 1024;
inline constexpr size_t kResourceBytesMax = 1024;
inline constexpr int kRuleJsonNestingMax = 16;
// A rule's values with remembered calls a second.
inline constexpr int64_t kParamValuesMax = 100'000;
inline constexpr int64_t kRuleTimeMsMax =
    int64_t{30} * 24 * 3600 * 1000;               // Timeouts of a rule: 30 days.
inline constexpr uint32_t kParamItemsMax = 1000;  // Values with a limit of their own, of a rule.

struct Limits {
  uint32_t connections_max = 10'000;
  // Connections that nobody knows, or that shake hands; then one of them is closed.
  uint32_t unidentified_max = 5000;
  uint32_t sessions_max = 100'000;  // Online, or offline with tokens.
  uint32_t rules_max = 200'000;     // In force, over all namespaces; see also flows_max.
  uint32_t namespaces_max = 10'000;
  uint32_t tokens_max = 20'000'000;  // Live tokens.
  // Over all rules.
  uint32_t keys_max = 1'000'000;
  uint32_t requests_in_flight_max = 1024;  // A connection; then reading stops.
  // Over all connections, incomplete or waiting; beyond, the largest holders are closed.
  size_t input_total_bytes_max = 128 * 1024 * 1024;
  size_t output_bytes_max = 8 * 1024 * 1024;  // A connection; then it is closed.
  // Over all connections, unsent replies; beyond, the largest holders are closed. Beyond shares of
  // it listings wait and reading stops.
  size_t output_total_bytes_max = 256 * 1024 * 1024;
  int64_t output_stalled_ms = 30'000;        // Without a byte of them taken; then it is closed.
  int64_t message_incomplete_ms = 10'000;    // From first to last byte of a message.
  size_t batch_bytes_max = 4 * 1024 * 1024;  // The open commit batch; then reading stops.
  // Of a namespace (Sentinel's maxAllowedQps); 0: no limit.
  uint32_t namespace_qps_max = 30'000;
  // Over all rules, memory of values with remembered calls a second.
  size_t param_value_bytes_max = 256 * 1024 * 1024;
  // A Sentinel client's wait in a queue (acquireRefuseStrategy 3), below its timeout of 20 ms; 0:
  // blocked at once.
  int64_t sentinel_wait_ms_max = 15;
  uint32_t waiters_per_rule_max = 1000;  // Acquires that wait for room.
  uint32_t waiters_per_connection_max = 1024;
  uint32_t waiters_max = 100'000;
  size_t waiter_bytes_max = 128 * 1024 * 1024;  // Memory of all of them.
  // Remembered request ids that were cancelled.
  uint32_t cancels_per_session_max = 10'000;
  uint32_t cancels_max = 1'000'000;
  int64_t cancel_remembered_ms = 60'000;
  // Listings of tokens between two pages.
  uint32_t listings_max = 64;
  uint32_t listings_per_connection_max = 4;
  int64_t listing_idle_ms = 30'000;  // Then the cursor is forgotten.
  uint32_t history_max = 10'000;     // Entries of the history; 0: none.
  // By topic; the rest is counted.
  uint32_t log_lines_per_second_max = 100;
  uint32_t log_act_lines_per_second_max = 1000;
  uint32_t log_end_lines_per_second_max = 5000;
  // Free bytes of the ledger's disk: below low nothing is granted until high. 0: never refused;
  // high: low * 5 / 4 (src/engine/README.md, decision 8).
  uint64_t disk_free_low_bytes = 256 * 1024 * 1024;
  // By rules of RPC and by drains.
  uint64_t rule_bytes_while_disk_low_max = 16 * 1024 * 1024;
  uint64_t disk_free_high_bytes = 0;

  // In force, and removed with tokens out. Beyond, no new flow id is taken.
  uint64_t flows_max() const { return uint64_t{2} * rules_max; }

  uint64_t disk_free_high() const {
    return disk_free_high_bytes > 0 ? disk_free_high_bytes
                                    : disk_free_low_bytes + disk_free_low_bytes / 4;
  }
};

static_assert(kStringBytesMax <= kMessageBytesMax);
static_assert(kListRowsMax <= kElementsMax);
static_assert(kParamItemsMax <= kElementsMax);  // rules_list shows all of a rule.
static_assert(Limits{}.history_max <= kHistoryEntriesMax);
static_assert(kClientIdBytesMax <= kStringBytesMax && kNamespaceBytesMax <= kStringBytesMax);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_LIMITS_H_
