// Views: a snapshot as JSON, for the page and curl.
//
// Thread: any; pure. Ids are strings: JavaScript rounds beyond 2^53. Ledger times come as
// "issued_ms" and as an age at the snapshot, "issued_age_ms". U+FFFD replaces text that is not
// UTF-8. Without such a flow or session "row" is null. Before the first look at it "detail" is
// null, "asked" false.
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

// The largest first, but kId; equal ones by id.
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

struct ListQuery {
  static constexpr size_t kLimitMax = 200;

  FlowOrder order = FlowOrder::kFullness;  // Of flows; clients and ended tokens have their own.
  std::string filter{};      // A part of a name or an id, in any case of ASCII letters; empty: all.
  std::string name_space{};  // Exactly; empty: all.
  size_t offset = 0;
  size_t limit = 50;  // 1..kLimitMax
};

// Head of every view. Totals are sums of the rows.
nlohmann::ordered_json HeadOf(const Snapshot& snapshot);

// Why the snapshot is old; empty: it is not.
std::string StandbyText(const Board& board);

nlohmann::ordered_json FlowsView(const Snapshot& snapshot, const ListQuery& query);
// "other": the flow has one of the other kind.
nlohmann::ordered_json FlowView(const Snapshot& snapshot, const FlowKey& key,
                                const std::vector<Point>& points);
nlohmann::ordered_json ClientView(const Snapshot& snapshot, uint64_t session);
// Sessions with most calls, or the latest history, come first.
nlohmann::ordered_json ClientsView(const Snapshot& snapshot, const ListQuery& query);
nlohmann::ordered_json HistoryView(const Snapshot& snapshot, const ListQuery& query);
// `now_ms`: BoottimeMs.
nlohmann::ordered_json ServerView(const Snapshot& snapshot, const Board& board, int64_t now_ms,
                                  const std::vector<Point>& points);

// The larger of now_calls / level and calls in the window / its limit; 0 without a limit.
double FullnessOf(const wire::FlowRow& row);

}  // namespace nowcalls::web

#endif  // NOWCALLS_WEB_VIEWS_H_
