// Snapshot: one look at the server, from which every page, scrape and dashboard is answered.
//
// Thread: any. The feed makes one a second; a snapshot that was published never changes. Rows are
// those of the listings (wire/rows.h), so a page cannot say anything else than nowcalls-admin.
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

// Sums of a flow since its server started: grants and passes, refusals and blocks.
struct FlowTotals {
  uint64_t granted = 0;
  uint64_t refused = 0;
  uint64_t ended = 0;
  uint64_t held_ms = 0;     // Of the tokens that ended.
  uint64_t exceptions = 0;  // Of these, calls that failed or timed out.
};
FlowTotals TotalsOf(const wire::FlowRow& row);

// A flow, and what came to its sums.
struct FlowLook {
  wire::FlowRow row{};
  int64_t looked_ms = 0;  // BoottimeMs.
  FlowTotals came{};      // In the look of its snapshot.
  double granted_per_s = 0;
  double refused_per_s = 0;
  double ended_per_s = 0;
  double exceptions_per_s = 0;
};
// `row` as it is now, beside `before`, which has what came earlier in the same look. Null: it was
// not looked at before.
FlowLook LookOf(wire::FlowRow row, const FlowLook* before, int64_t now_ms);

// What is only asked of flows that somebody looks at; each list up to kDetailRowsMax.
struct FlowDetail {
  std::vector<wire::TokenRow> tokens{};
  bool more_tokens = false;
  std::vector<wire::WaiterRow> waiters{};
  std::vector<wire::ParamRow> params{};  // The fullest first.
};

// Likewise of sessions.
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
  // By flow id and kind. Of more than kFlowsPerLookMax flows each look renews as many, and those
  // that somebody looks at.
  std::vector<FlowLook> flows{};
  std::vector<wire::NamespaceRow> namespaces{};

  // Of what was looked at lately (Feed::Watch...).
  std::map<FlowKey, FlowDetail> details{};
  std::map<uint64_t, SessionDetail> session_details{};
  bool has_sessions = false;
  std::vector<wire::SessionRow> sessions{};
  bool more_sessions = false;
  bool has_history = false;
  std::vector<wire::HistoryRow> history{};  // The latest first.
  // An array of rules in force, as rules_list has them, by flow id. Null: nobody looked lately.
  std::shared_ptr<const nlohmann::ordered_json> rules{};

  // The second, since 1970, to which the middle of its span belongs. Looks are taken at the ends of
  // seconds and may be in between, so those of one second cover that second and no more. One that
  // is late is of the second that it should have ended.
  int64_t second() const { return (unix_ms - std::min<int64_t>(span_ms, 2'000) / 2) / 1000; }
  // The last one that is over, as far as looks tell.
  int64_t whole_second() const {
    const bool over = span_ms == 0 || unix_ms / 1000 > second();
    return over ? second() : second() - 1;
  }
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;

// The flow, or null.
const FlowLook* FindFlow(const Snapshot& snapshot, const FlowKey& key);
// Whether the flow id has another flow, of the other kind.
bool HasOther(const Snapshot& snapshot, const FlowKey& key);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_SNAPSHOT_H_
