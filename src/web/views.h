// Views: a snapshot as JSON, as the page shows it and curl reads it.
//
// Thread: any; pure. Ids (flows, tokens, fences, sessions) are strings: the numbers of JavaScript
// end at 2^53. Times of the ledger clock stand as they are ("issued_ms") and, beside them, as an
// age at the moment of the snapshot ("issued_age_ms"). Text that is not UTF-8 has U+FFFD in its
// place.
#ifndef NOWCALLS_WEB_VIEWS_H_
#define NOWCALLS_WEB_VIEWS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "web/board.h"
#include "web/series.h"
#include "web/snapshot.h"

namespace nowcalls::web {

// How a list of flows is sorted. The largest first, but kId; equal ones by id.
enum class FlowOrder : uint8_t {
  kFullness,
  kNowCalls,
  kWaiting,
  kOldest,
  kGranted,
  kRefused,
  kHeld,
  kId,
};

// A window of a list.
struct ListQuery {
  static constexpr size_t kLimitMax = 200;

  FlowOrder order = FlowOrder::kFullness;  // Of flows; clients and ended tokens have their own.
  std::string filter{};      // A part of a name or an id, in any case of ASCII letters; empty: all.
  std::string name_space{};  // Exactly; empty: all.
  size_t offset = 0;
  size_t limit = 50;  // 1..kLimitMax
};

// What all views begin with: when the snapshot was taken, what is wrong, and a few totals. Totals
// of calls and waiters are the sums of the rows, so they agree with them.
nlohmann::ordered_json HeadOf(const Snapshot& snapshot);

// Each adds its members to the head.
nlohmann::ordered_json FlowsView(const Snapshot& snapshot, const ListQuery& query);
// "row" is null when there is no such flow, "detail" until it has been looked at. "other": the flow
// id has a flow of the other kind, too.
nlohmann::ordered_json FlowView(const Snapshot& snapshot, const FlowKey& key,
                                const std::vector<Point>& points);
// "row" is null when there is no such session, and "asked" false until it has been looked at.
nlohmann::ordered_json ClientView(const Snapshot& snapshot, uint64_t session);
// In both "asked" is false until they have been looked at; the list is empty then. Sessions with
// most calls in progress come first.
nlohmann::ordered_json ClientsView(const Snapshot& snapshot, const ListQuery& query);
nlohmann::ordered_json HistoryView(const Snapshot& snapshot, const ListQuery& query);
// `now_ms`: BoottimeMs, of which the board's times are.
nlohmann::ordered_json ServerView(const Snapshot& snapshot, const Board& board, int64_t now_ms,
                                  const std::vector<Point>& points);

// How full a flow is: 1 is at its limit. Calls in progress against the level, or calls in the
// window against the limit of a rule of calls a second, whichever is more. 0 without a limit.
double FullnessOf(const wire::FlowRow& row);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_VIEWS_H_
