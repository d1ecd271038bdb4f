// Every limit of nowcalls with its default, in one table.
//
// Nothing in the server is unbounded. What can be configured is a member of Limits (the
// configuration fills it); what a peer must be able to rely on is a constant. What is full says so
// with a definite refusal that names the limit.
#ifndef NOWCALLS_BASE_LIMITS_H_
#define NOWCALLS_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace nowcalls {

// Wire, fixed by the protocol (src/wire/PROTOCOL.md).
inline constexpr size_t kMessageBytesMax = 64 * 1024;  // One MessagePack-RPC message, in or out of
                                                       // a client; listings may answer more.
inline constexpr int kNestingMax = 8;                  // Arrays and maps within one message.
inline constexpr uint32_t kElementsMax = 1024;         // Elements of one array, pairs of one map.
inline constexpr uint32_t kStringBytesMax = 4096;      // One str or bin; the rules of rules_load as
                                                       // one JSON string may fill the message.
inline constexpr size_t kReplyBytesMax = 4 * 1024 * 1024;  // One answer, as a client accepts it.
inline constexpr uint32_t kListRowsMax = 1000;             // Rows of one listing page.
inline constexpr uint32_t kListRowsDefault = 100;

// Names.
inline constexpr size_t kNamespaceBytesMax = 128;
inline constexpr size_t kClientIdBytesMax = 128;
inline constexpr size_t kReasonBytesMax = 256;
inline constexpr size_t kRuleSourceBytesMax = 4200;  // "file:" and a path as long as Linux has it.

// Requests.
inline constexpr int64_t kCountMax = INT32_MAX;   // Of one acquire; the least is 1.
inline constexpr int64_t kWaitMsMax = 3'600'000;  // For room, an acquire.
inline constexpr size_t kAcquireAllMax = 64;      // Items of one acquire_all.
// Tokens that one call of an administrator takes back; it says whether there are more.
inline constexpr uint32_t kReclaimTokensMax = 1000;

// History.
inline constexpr uint32_t kHistoryEntriesMax = 1'000'000;  // What history_max may be at most.

// Rules.
inline constexpr size_t kRulesFileBytesMax = 64 * 1024 * 1024;
inline constexpr size_t kResourceBytesMax = 1024;
inline constexpr int kRuleJsonNestingMax = 16;
// Values of a rule's parameter that are remembered for calls a second, at most.
inline constexpr int64_t kParamValuesMax = 100'000;
inline constexpr int64_t kRuleTimeMsMax =
    int64_t{30} * 24 * 3600 * 1000;               // Timeouts of a rule: 30 days.
inline constexpr uint32_t kParamItemsMax = 1000;  // Values with a limit of their own, of a rule.

struct Limits {
  uint32_t connections_max = 10'000;
  uint32_t sessions_max = 100'000;  // Online, or offline with tokens.
  uint32_t rules_max = 200'000;     // In force, over all namespaces; see also flows_max.
  uint32_t namespaces_max = 10'000;
  uint32_t tokens_max = 20'000'000;  // Live tokens.
  // Values of parameters that tokens hold or acquires wait for, over all rules.
  uint32_t keys_max = 1'000'000;
  uint32_t requests_in_flight_max = 1024;  // A connection; then reading stops.
  // Input that is incomplete or waits for its turn, over all connections; then those that hold most
  // are closed.
  size_t input_total_bytes_max = 128 * 1024 * 1024;
  size_t output_bytes_max = 8 * 1024 * 1024;  // A connection; then it is closed.
  // Replies that sockets do not take yet, over all connections; then those that hold most are
  // closed. Shares of it bound what waits for commits; then listings wait, and reading stops.
  size_t output_total_bytes_max = 256 * 1024 * 1024;
  int64_t output_stalled_ms = 30'000;        // Without a byte of them taken; then it is closed.
  int64_t message_incomplete_ms = 10'000;    // From first to last byte of a message.
  size_t batch_bytes_max = 4 * 1024 * 1024;  // The open commit batch; then reading stops.
  // Requests for calls a second of one namespace's rules, in a second (Sentinel's maxAllowedQps);
  // 0: as many as come.
  uint32_t namespace_qps_max = 30'000;
  // Memory of the values of parameters that are remembered for calls a second, over all rules.
  size_t param_value_bytes_max = 256 * 1024 * 1024;
  // How long a Sentinel client's acquire waits where the rule queues it (acquireRefuseStrategy 3).
  // Below the 20 ms after which released clients give up; 0: it is blocked at once.
  int64_t sentinel_wait_ms_max = 15;
  uint32_t waiters_per_rule_max = 1000;  // Acquires that wait for room.
  uint32_t waiters_per_connection_max = 1024;
  uint32_t waiters_max = 100'000;
  size_t waiter_bytes_max = 128 * 1024 * 1024;  // Memory of all of them.
  // Cancelled request ids that are remembered, and for how long.
  uint32_t cancels_per_session_max = 10'000;
  uint32_t cancels_max = 1'000'000;
  int64_t cancel_remembered_ms = 60'000;
  // Listings of tokens between two pages: of all connections, and of one.
  uint32_t listings_max = 64;
  uint32_t listings_per_connection_max = 4;
  int64_t listing_idle_ms = 30'000;  // Then the cursor is forgotten.
  uint32_t history_max = 10'000;     // Entries of the history; 0: none.
  // About peers' behaviour, about what administrators change, and about ends of tokens that are
  // to be logged; the rest is counted.
  uint32_t log_lines_per_second_max = 100;
  uint32_t log_act_lines_per_second_max = 1000;
  uint32_t log_end_lines_per_second_max = 5000;
  // What is free on the ledger's file system: with less than disk_free_low_bytes nothing is granted
  // until it is disk_free_high_bytes. 0: never refused for that; a quarter more than the low one.
  // The defaults are what a server needs for the tokens that are out (src/engine/README.md,
  // "Nothing is granted").
  uint64_t disk_free_low_bytes = 256 * 1024 * 1024;
  // What rules that come by RPC, and drains, may write in all while less than that is free.
  uint64_t rule_bytes_while_disk_low_max = 16 * 1024 * 1024;
  uint64_t disk_free_high_bytes = 0;

  // Rules in force, and those that were removed while tokens of them are out. Enough to replace all
  // rules by others under load; beyond it no new flow id is taken.
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
