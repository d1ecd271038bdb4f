// Rows of listings: maps by the members' names, or the names beside them.
//
// Thread: any. Times are ledger-clock milliseconds. Readers skip unknown keys.
#ifndef NOWCALLS_WIRE_ROWS_H_
#define NOWCALLS_WIRE_ROWS_H_

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nowcalls/call_outcome.h"
#include "nowcalls/flow_kind.h"
#include "nowcalls/param.h"
#include "nowcalls/status.h"
#include "nowcalls/types.h"
#include "wire/output_buffer.h"

namespace nowcalls::wire {

struct TokenRow {
  uint64_t token_id = 0;
  int64_t flow_id = 0;
  std::string name_space;  // "namespace": of the session that holds it.
  std::string client_id;
  uint64_t session = 0;
  uint32_t count = 0;
  uint64_t fence = 0;
  int64_t issued_ms = 0;
  int64_t deadline_ms = 0;
  std::optional<bool> online;         // Of the session; absent when read offline.
  std::optional<ParamValue> param{};  // Of the rule's parameter; absent without one.
  // Of the session; absent unless its client id has several, or offline if 0.
  std::optional<uint64_t> instance{};

  bool operator==(const TokenRow&) const = default;
};

// Histograms count the times below each exactly.
inline constexpr auto kTimeBoundsMs =
    std::to_array<uint64_t>({10, 96, 1'024, 10'240, 57'344, 655'360, 3'670'016});
struct CountsBelow : std::array<uint64_t, kTimeBoundsMs.size()> {};

struct Times {
  uint64_t p50_ms = 0;
  uint64_t p90_ms = 0;
  uint64_t p99_ms = 0;
  uint64_t sum_ms = 0;
  uint64_t count = 0;
  CountsBelow upto{};  // By kTimeBoundsMs.

  bool operator==(const Times&) const = default;
};
struct HeldTimes : Times {
  uint64_t longest_ms = 0;

  bool operator==(const HeldTimes&) const = default;
};

// By reason, on the wire by its name. The first counts nothing.
template <typename Reason, size_t kCount>
struct CountsBy : std::array<uint64_t, kCount> {
  uint64_t sum() const { return std::accumulate(this->begin(), this->end(), uint64_t{0}); }
};
using LimitCounts = CountsBy<RefusedBy, kRefusedByCount>;
using EndCounts = CountsBy<EndReason, kEndReasonCount>;
using OutcomeCounts = CountsBy<CallOutcome, kCallOutcomeCount>;

// Since the server started.
struct FlowCounters {
  uint64_t granted = 0;  // Also from the queue, also beyond a limit in shadow mode.
  LimitCounts refused{};
  LimitCounts shadow_refused{};  // What shadow mode let pass.
  uint64_t queued = 0;
  uint64_t granted_from_queue = 0;
  uint64_t longest_wait_ms = 0;
  uint64_t kept = 0;
  EndCounts ended{};
  OutcomeCounts outcomes{};  // Of releases.
  HeldTimes held{};          // By tokens that ended: "held_ms".
  Times waited{};            // By answered acquires, whatever the answer: "waited_ms".

  bool operator==(const FlowCounters&) const = default;
};

// Calls a second of a flow: "rate". Numbers are calls unless named requests; sums are since the
// server started. A request for several values counts its calls once.
struct FlowRate {
  uint64_t in_window = 0;           // Calls in the window that ends now.
  std::optional<uint64_t> limit{};  // The most that the window may have; absent when each value has
                                    // a limit of its own.
  uint64_t window_ms = 0;
  uint64_t passed = 0;    // At once, also beyond a limit in shadow mode.
  uint64_t borrowed = 0;  // Passed, but were told to wait.
  uint64_t blocked = 0;
  uint64_t requests_passed = 0;  // At once or later.
  uint64_t requests_blocked = 0;
  std::optional<uint64_t> values{};  // Of the parameter that are remembered.
  // Values forgotten for others while their limit was in use; absent like values.
  std::optional<uint64_t> forgotten{};

  bool operator==(const FlowRate&) const = default;
};

struct FlowRow {
  int64_t flow_id = 0;
  std::string kind = std::string(FlowKindName(FlowKind::kFlow));
  std::string name_space;  // "namespace": of the rule.
  std::string resource;
  bool removed = false;           // The rule is gone, its tokens are still out.
  bool draining = false;          // An administrator has stopped its grants.
  std::optional<uint64_t> level;  // Absent when removed, when each value of a parameter has one, or
                                  // when it depends on the sessions online and the row was read
                                  // offline.
  uint64_t now_calls = 0;
  uint64_t tokens = 0;
  std::optional<uint64_t> waiters;          // Absent offline.
  std::optional<int64_t> waiting_since_ms;  // The waiter that has waited longest.
  std::optional<uint64_t> sessions;         // Online, of the rule's namespace; absent offline.
  std::optional<int64_t> oldest_issued_ms;
  std::optional<FlowCounters> counters;  // Absent offline.
  std::optional<FlowRate> rate;          // Absent while nobody has asked for calls a second.
  // Requests of the other kind. Absent: none.
  std::optional<uint64_t> other_kind;
  // With tokens or waiters; absent without a parameter, and offline.
  std::optional<uint64_t> keys{};
  // Of `flow` without a kind: the row of the rule by value, if the id has one beside this row's.
  std::vector<FlowRow> by_value{};

  bool operator==(const FlowRow&) const = default;
};

inline FlowKey KeyOf(const FlowRow& row) {
  return {FlowId{row.flow_id}, FlowKindIf(row.kind == FlowKindName(FlowKind::kValue))};
}
// For tokens, waiters and history, whose kind is that of having a param.
template <typename Row>
FlowKey FlowKeyOf(const Row& row) {
  return {FlowId{row.flow_id}, FlowKindIf(row.param.has_value())};
}

inline constexpr size_t kSessionAddressesMax = 8;

struct SessionRow {
  uint64_t session = 0;
  std::string name_space;  // "namespace"
  std::string client_id;
  std::string kind;            // "named" or "connection"
  std::optional<bool> online;  // Absent offline.
  uint32_t connections = 0;
  uint64_t tokens = 0;
  uint64_t now_calls = 0;
  int64_t opened_ms = 0;
  std::optional<int64_t> offline_since_ms;
  std::optional<uint64_t> waiters;      // Absent: none.
  std::optional<uint64_t> hosts;        // That it is online from. Absent: one at most.
  std::optional<uint64_t> instance{};   // Of the client id; absent if it is 0.
  std::optional<uint64_t> instances{};  // That the client id has. Absent: one at most, or offline.
  // HOST:PORT, kSessionAddressesMax at most. Absent: none, or offline.
  std::optional<std::vector<std::string>> addresses{};
  std::optional<int64_t> last_message_ms{};  // Absent: none since the server started, or offline.

  bool operator==(const SessionRow&) const = default;
};

struct HistoryRow {  // The end of a token not released in time.
  uint64_t sequence = 0;
  int64_t ended_ms = 0;
  std::string reason;  // EndReasonName; a later server may know more.
  uint64_t token_id = 0;
  int64_t flow_id = 0;
  std::string name_space;  // "namespace": of the session that held it.
  std::string client_id;
  uint64_t session = 0;
  uint32_t count = 0;
  uint64_t fence = 0;
  int64_t issued_ms = 0;
  int64_t held_ms = 0;                   // From issued_ms to ended_ms.
  std::string note;                      // The administrator's reason; empty without one.
  std::optional<ParamValue> param{};     // As of TokenRow.
  std::optional<uint64_t> instance{};    // Absent unless its client id had several then.
  std::optional<std::string> outcome{};  // CallOutcomeName of a call that did not end well.

  bool operator==(const HistoryRow&) const = default;
};

struct ParamRow {  // A value that tokens hold, acquires wait for, or calls a second ask for.
  ParamValue param{};
  uint64_t now_calls = 0;
  uint64_t tokens = 0;
  std::optional<uint64_t> level{};    // Absent without a rule with a parameter.
  std::optional<uint64_t> waiters{};  // Absent offline.
  // Calls in about the rule's last interval. Absent: none remembered.
  std::optional<uint64_t> passed{};
  std::optional<uint64_t> blocked{};
  // In about the last minute.
  std::optional<uint64_t> minute_passed{};
  std::optional<uint64_t> minute_blocked{};

  bool operator==(const ParamRow&) const = default;
};

struct WaiterRow {  // An acquire that waits for room.
  int64_t flow_id = 0;
  std::string name_space;  // "namespace": of the session that asks.
  std::string client_id;
  uint32_t count = 0;
  bool prioritized = false;
  uint32_t place = 0;  // In its line: of the flow, or of the value of its parameter. 1: the first.
  int64_t since_ms = 0;
  int64_t deadline_ms = 0;
  std::optional<ParamValue> param{};
  std::optional<uint64_t> instance{};  // As of TokenRow.

  bool operator==(const WaiterRow&) const = default;
};

// Appends a response: one page [rows, next_cursor], 0 as nil.
void EncodeTokenPage(uint32_t msgid, const std::vector<TokenRow>& rows, uint64_t next_cursor,
                     OutputBuffer* out);
void EncodeFlowPage(uint32_t msgid, const std::vector<FlowRow>& rows, uint64_t next_cursor,
                    OutputBuffer* out);
void EncodeSessionPage(uint32_t msgid, const std::vector<SessionRow>& rows, uint64_t next_cursor,
                       OutputBuffer* out);
void EncodeHistoryPage(uint32_t msgid, const std::vector<HistoryRow>& rows, uint64_t next_cursor,
                       OutputBuffer* out);
// [rows].
void EncodeWaiterRows(uint32_t msgid, const std::vector<WaiterRow>& rows, OutputBuffer* out);
void EncodeParamRows(uint32_t msgid, const std::vector<ParamRow>& rows, OutputBuffer* out);
void EncodeFlow(uint32_t msgid, const FlowRow& row, OutputBuffer* out);  // One row.

// For clients. kCorruption: not such a page.
template <typename Row>
struct Page {
  std::vector<Row> rows;
  uint64_t next_cursor = 0;  // 0: this was the last page.
};
Result<Page<TokenRow>> DecodeTokenPage(std::string_view result);
Result<Page<FlowRow>> DecodeFlowPage(std::string_view result);
Result<Page<SessionRow>> DecodeSessionPage(std::string_view result);
Result<Page<HistoryRow>> DecodeHistoryPage(std::string_view result);
Result<std::vector<ParamRow>> DecodeParamRows(std::string_view result);
Result<std::vector<WaiterRow>> DecodeWaiterRows(std::string_view result);
Result<FlowRow> DecodeFlowRow(std::string_view result);

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_ROWS_H_
