// Snapshot: one look at the server.
//
// Thread: any; a published snapshot never changes. Rows are those of wire/rows.h.
#ifndef NOWCALLS_WEB_SNAPSHOT_H_
#define NOWCALLS_WEB_SNAPSHOT_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "wire/namespace_rows.h"
#include "wire/rows.h"

namespace nowcalls::web {

// Sums since the server's start. Granted includes passed calls, refused blocked ones.
struct FlowTotals {
  uint64_t granted = 0;
  uint64_t refused = 0;
  uint64_t ended = 0;
  uint64_t held_ms = 0;     // Of the tokens that ended.
  uint64_t exceptions = 0;  // Of these, calls that failed or timed out.
};
FlowTotals TotalsOf(const wire::FlowRow& row);

struct FlowLook {
  wire::FlowRow row{};
  int64_t looked_ms = 0;  // BoottimeMs.
  FlowTotals came{};      // In the look of its snapshot.
  double granted_per_s = 0;
  double refused_per_s = 0;
  double ended_per_s = 0;
  double exceptions_per_s = 0;
};
// `before`: the same flow as looked at last; null: never.
FlowLook LookOf(wire::FlowRow row, const FlowLook* before, int64_t now_ms);

// Of watched flows; each list up to kDetailRowsMax.
struct FlowDetail {
  std::vector<wire::TokenRow> tokens{};
  bool more_tokens = false;
  std::vector<wire::WaiterRow> waiters{};
  std::vector<wire::ParamRow> params{};  // The fullest first.
};

// Of watched sessions.
struct SessionDetail {
  std::optional<wire::SessionRow> row{};  // Absent: there is none with this number.
  std::vector<wire::TokenRow> tokens{};   // The oldest first.
  bool more_tokens = false;
  std::vector<wire::WaiterRow> waiters{};
};

struct Snapshot {
  static constexpr uint32_t kDetailRowsMax = 200;  // Of holders, waiters, values.
  static constexpr uint32_t kListRowsMax = 1'000;  // Of clients and ended tokens.
  static constexpr size_t kRulesMax = 2'000;       // Or those of kRulesBytesMax, if they are fewer.
  static constexpr size_t kRulesBytesMax = 8 << 20;
  static constexpr size_t kFlowsPerLookMax = 5'000;

  uint64_t number = 0;    // Grows by one with each look.
  int64_t unix_ms = 0;    // When it was taken.
  int64_t span_ms = 0;    // Since the look before, of which FlowLook::came is; 0: a second.
  std::string server{};   // The address that answered, of the token port; empty: not asked yet.
  std::string problem{};  // Why the server did not answer; all else is then from before.
  int64_t ledger_ms = 0;  // The ledger clock, which the times of rows are of.

  std::shared_ptr<const nlohmann::ordered_json> info{};  // As `info` answers; null: never asked.
  // By flow id and kind. A look renews kFlowsPerLookMax, the first all, and watched flows.
  std::vector<FlowLook> flows{};
  std::vector<wire::NamespaceRow> namespaces{};

  // Watched (Feed::Watch...).
  std::map<FlowKey, FlowDetail> details{};
  std::map<uint64_t, SessionDetail> session_details{};
  bool has_sessions = false;
  std::vector<wire::SessionRow> sessions{};
  bool more_sessions = false;
  bool has_history = false;
  std::vector<wire::HistoryRow> history{};  // The latest first.
  bool is_part = false;                     // What some reader may see (web/visible.h).
  // Rules in force, an array as rules_list has it, by flow id. Null: not watched.
  std::shared_ptr<const nlohmann::ordered_json> rules{};

  // Of the middle of the span. A late look belongs to the second it should have ended.
  int64_t second() const { return (unix_ms - std::min<int64_t>(span_ms, 2'000) / 2) / 1000; }
  // The last second that is over.
  int64_t whole_second() const {
    const bool over = span_ms == 0 || unix_ms / 1000 > second();
    return over ? second() : second() - 1;
  }
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

// Null: no such flow.
const FlowLook* FindFlow(const Snapshot& snapshot, const FlowKey& key);
bool HasOther(const Snapshot& snapshot, const FlowKey& key);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SNAPSHOT_H_
