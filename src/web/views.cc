#include "web/views.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "web/row_json.h"

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;

char LowerAscii(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// `lower` has no capital ASCII letters.
bool Contains(std::string_view text, std::string_view lower) {
  for (; text.size() >= lower.size(); text.remove_prefix(1)) {
    const auto same = [](char a, char b) { return a == LowerAscii(b); };
    if (std::equal(lower.begin(), lower.end(), text.begin(), same)) return true;
  }
  return false;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), LowerAscii);
  return text;
}

// By what a list is sorted, the largest first.
double Weight(const FlowLook& look, FlowOrder order) {
  const wire::FlowRow& row = look.row;
  switch (order) {
    case FlowOrder::kFullness: return FullnessOf(row);
    case FlowOrder::kNowCalls: return static_cast<double>(row.now_calls);
    case FlowOrder::kWaiting: return static_cast<double>(row.waiters.value_or(0));
    // A flow without tokens comes behind every flow that has some.
    case FlowOrder::kOldest:
      return row.oldest_issued_ms.has_value() ? -static_cast<double>(*row.oldest_issued_ms) : -1e18;
    case FlowOrder::kGranted: return look.granted_per_s;
    case FlowOrder::kRefused: return look.refused_per_s;
    case FlowOrder::kHeld:
      return row.counters.has_value() ? static_cast<double>(row.counters->held.p99_ms) : 0;
    case FlowOrder::kId: break;
  }
  return 0;
}

// A row, and by what it is sorted: the largest first.
template <typename Row, typename Rank>
struct Found {
  Rank rank;
  const Row* row;
};

// The part of `found` that the query asks for, written by `write`.
template <typename Row, typename Rank, typename Write>
void AddWindow(std::vector<Found<Row, Rank>> found, const ListQuery& query, Write write,
               ordered_json* json) {
  const size_t begin = std::min(query.offset, found.size());
  const size_t end = std::min(found.size(), begin + query.limit);
  // Only the rows up to the window's end need an order.
  const auto middle = found.begin() + static_cast<std::ptrdiff_t>(end);
  std::partial_sort(found.begin(), middle, found.end(),
                    [](const auto& a, const auto& b) { return a.rank > b.rank; });
  (*json)["total"] = found.size();
  (*json)["offset"] = begin;
  ordered_json rows = ordered_json::array();
  for (size_t i = begin; i < end; ++i) rows.push_back(write(*found[i].row));
  (*json)["rows"] = std::move(rows);
}

// A number for each second, by name: less to write than an object a second.
ordered_json PointsJson(const std::vector<Point>& points) {
  std::array<ordered_json, 8> columns;
  columns.fill(ordered_json::array());
  for (const Point& point : points) {
    columns[0].push_back(point.unix_s);
    columns[1].push_back(point.now_calls);
    columns[2].push_back(point.waiting);
    columns[3].push_back(point.granted);
    columns[4].push_back(point.refused);
    columns[5].push_back(point.ended);
    columns[6].push_back(point.held_ms);
    columns[7].push_back(point.exceptions);
  }
  return {{"unix_s", columns[0]},  {"now_calls", columns[1]}, {"waiting", columns[2]},
          {"granted", columns[3]}, {"refused", columns[4]},   {"ended", columns[5]},
          {"held_ms", columns[6]}, {"exceptions", columns[7]}};
}

ordered_json HistogramJson(const TimeHistogram& histogram) {
  ordered_json counts = ordered_json::array();
  for (size_t i = 0; i <= TimeHistogram::kUpToUs.size(); ++i) counts.push_back(histogram.count(i));
  return {{"up_to_us", TimeHistogram::kUpToUs}, {"counts", counts}, {"sum_us", histogram.sum_us()}};
}

ordered_json ClusterJson(const Board& board) {
  const auto cluster = board.cluster.Get();
  const uint64_t term = board.cluster_term.load(std::memory_order_relaxed);
  if (cluster == nullptr || term == 0) return nullptr;
  ordered_json members = ordered_json::array();
  for (const wire::ClusterMember& member : cluster->members) {
    members.push_back({{"member", member.member},
                       {"address", member.address},
                       {"version", member.version},
                       {"role", member.leads ? "writer" : "standby"},
                       {"applied", member.applied},
                       {"synced", member.synced},
                       {"lag_batches", member.lag},
                       {"silent_ms", member.silent_ms}});
  }
  return {{"role", IsWriter(board) ? "writer" : "standby"},
          {"term", term},
          {"lag_batches", board.cluster_lag.load(std::memory_order_relaxed)},
          {"writer", cluster->writer},
          {"cluster", cluster->cluster},
          {"prefix", cluster->prefix},
          {"last_batch", cluster->last_batch},
          {"log_bytes", board.cluster_log_bytes.load(std::memory_order_relaxed)},
          {"log_bytes_max", board.cluster_log_bytes_max.load(std::memory_order_relaxed)},
          {"etcd_failures", board.cluster_etcd_failures.load(std::memory_order_relaxed)},
          {"members", std::move(members)}};
}

// The resource of a flow, for rows that only have its id; empty when the flow is gone.
std::string ResourceOf(const Snapshot& snapshot, const FlowKey& key) {
  const FlowLook* const flow = FindFlow(snapshot, key);
  return flow == nullptr ? "" : flow->row.resource;
}

}  // namespace

double FullnessOf(const wire::FlowRow& row) {
  const auto share = [](uint64_t of, uint64_t limit) {
    return static_cast<double>(of) / static_cast<double>(std::max<uint64_t>(limit, 1));
  };
  double fullness = row.level.has_value() ? share(row.now_calls, *row.level) : 0;
  if (row.rate.has_value() && row.rate->limit.has_value()) {
    fullness = std::max(fullness, share(row.rate->in_window, *row.rate->limit));
  }
  return fullness;
}

ordered_json HeadOf(const Snapshot& snapshot) {
  uint64_t now_calls = 0;
  uint64_t tokens = 0;
  uint64_t waiters = 0;
  double granted_per_s = 0;
  double refused_per_s = 0;
  double exceptions_per_s = 0;
  for (const FlowLook& flow : snapshot.flows) {
    now_calls += flow.row.now_calls;
    tokens += flow.row.tokens;
    waiters += flow.row.waiters.value_or(0);
    granted_per_s += flow.granted_per_s;
    refused_per_s += flow.refused_per_s;
    exceptions_per_s += flow.exceptions_per_s;
  }
  ordered_json json = {{"number", snapshot.number}, {"unix_ms", snapshot.unix_ms}};
  json["ledger_ms"] = snapshot.ledger_ms;
  json["server"] = snapshot.server;
  if (!snapshot.problem.empty()) json["problem"] = snapshot.problem;
  json["totals"] = {
      {"now_calls", now_calls},
      {"tokens", tokens},
      {"waiters", waiters},
      {"flows", snapshot.flows.size()},
      {"granted_per_s", granted_per_s},
      {"refused_per_s", refused_per_s},
      {"exceptions_per_s", exceptions_per_s},
  };
  return json;
}

std::string StandbyText(const Board& board) {
  if (!StandsBy(board)) return "";
  const auto cluster = board.cluster.Get();
  const bool known = cluster != nullptr && !cluster->writer.empty();
  return "this member of the cluster stands by, and " +
         (known ? cluster->writer + " writes" : std::string("nobody writes"));
}

ordered_json FlowsView(const Snapshot& snapshot, const ListQuery& query) {
  const std::string filter = Lower(query.filter);
  const bool number = filter.find_first_not_of("0123456789") == std::string::npos;
  using Rank = std::tuple<double, int64_t, bool>;
  std::vector<Found<FlowLook, Rank>> found;
  for (const FlowLook& flow : snapshot.flows) {
    const wire::FlowRow& row = flow.row;
    if (!query.name_space.empty() && row.name_space != query.name_space) continue;
    if (Contains(row.resource, filter) || Contains(row.name_space, filter) ||
        (number && Contains(std::to_string(row.flow_id), filter))) {
      const bool of_flow = wire::KeyOf(row).kind == FlowKind::kFlow;
      // Equal weights: the smaller id first, and the rule of a flow before that by value.
      found.push_back({{Weight(flow, query.order), -row.flow_id, of_flow}, &flow});
    }
  }
  ordered_json json = HeadOf(snapshot);
  AddWindow(
      std::move(found), query,
      [&](const FlowLook& flow) { return FlowJson(flow, snapshot.ledger_ms); }, &json);
  return json;
}

ordered_json FlowView(const Snapshot& snapshot, const FlowKey& key,
                      const std::vector<Point>& points) {
  ordered_json json = HeadOf(snapshot);
  const FlowLook* const flow = FindFlow(snapshot, key);
  json["row"] = flow == nullptr ? ordered_json(nullptr) : FlowJson(*flow, snapshot.ledger_ms);
  json["other"] = HasOther(snapshot, key);
  // Null until the first look at the flow, so that the page can tell "none" from "not read yet".
  json["detail"] = nullptr;
  const auto found = snapshot.details.find(key);
  if (found != snapshot.details.end()) {
    const FlowDetail& detail = found->second;
    ordered_json tokens = ordered_json::array();
    ordered_json waiters = ordered_json::array();
    ordered_json params = ordered_json::array();
    for (const auto& row : detail.tokens) tokens.push_back(TokenJson(row, snapshot.ledger_ms));
    for (const auto& row : detail.waiters) waiters.push_back(WaiterJson(row, snapshot.ledger_ms));
    for (const auto& row : detail.params) params.push_back(ParamJson(row));
    json["detail"] = {{"tokens", std::move(tokens)},
                      {"more_tokens", detail.more_tokens},
                      {"waiters", std::move(waiters)},
                      {"params", std::move(params)}};
  }
  json["points"] = PointsJson(points);
  return json;
}

ordered_json ClientView(const Snapshot& snapshot, uint64_t session) {
  ordered_json json = HeadOf(snapshot);
  const auto found = snapshot.session_details.find(session);
  json["asked"] = found != snapshot.session_details.end();
  json["row"] = nullptr;
  json["tokens"] = json["waiters"] = ordered_json::array();
  json["more_tokens"] = false;
  if (found == snapshot.session_details.end()) return json;
  const SessionDetail& detail = found->second;
  if (detail.row.has_value()) json["row"] = SessionJson(*detail.row, snapshot.ledger_ms);
  const auto add = [&](const char* list, ordered_json row, const FlowKey& key) {
    row["resource"] = ResourceOf(snapshot, key);
    json[list].push_back(std::move(row));
  };
  for (const auto& row : detail.tokens) {
    add("tokens", TokenJson(row, snapshot.ledger_ms), wire::FlowKeyOf(row));
  }
  for (const auto& row : detail.waiters) {
    add("waiters", WaiterJson(row, snapshot.ledger_ms), wire::FlowKeyOf(row));
  }
  json["more_tokens"] = detail.more_tokens;
  return json;
}

ordered_json ClientsView(const Snapshot& snapshot, const ListQuery& query) {
  const std::string filter = Lower(query.filter);
  using Rank = std::tuple<uint64_t, uint64_t, int64_t>;
  std::vector<Found<wire::SessionRow, Rank>> found;
  for (const wire::SessionRow& row : snapshot.sessions) {
    if (!query.name_space.empty() && row.name_space != query.name_space) continue;
    if (Contains(row.client_id, filter) || Contains(row.name_space, filter)) {
      const Rank rank(row.now_calls, row.waiters.value_or(0), -static_cast<int64_t>(row.session));
      found.push_back({rank, &row});
    }
  }
  ordered_json json = HeadOf(snapshot);
  json["asked"] = snapshot.has_sessions;
  json["more"] = snapshot.more_sessions;
  AddWindow(
      std::move(found), query,
      [&](const wire::SessionRow& row) { return SessionJson(row, snapshot.ledger_ms); }, &json);
  return json;
}

ordered_json HistoryView(const Snapshot& snapshot, const ListQuery& query) {
  const std::string filter = Lower(query.filter);
  std::vector<Found<wire::HistoryRow, uint64_t>> found;
  for (const wire::HistoryRow& row : snapshot.history) {
    if (!query.name_space.empty() && row.name_space != query.name_space) continue;
    if (Contains(row.client_id, filter) || Contains(row.reason, filter) ||
        Contains(row.outcome.value_or(""), filter) ||
        Contains(std::to_string(row.flow_id), filter) ||
        Contains(std::to_string(row.token_id), filter) ||
        Contains(ResourceOf(snapshot, wire::FlowKeyOf(row)), filter)) {
      found.push_back({row.sequence, &row});
    }
  }
  ordered_json json = HeadOf(snapshot);
  json["asked"] = snapshot.has_history;
  AddWindow(
      std::move(found), query,
      [&](const wire::HistoryRow& row) {
        ordered_json written = HistoryJson(row, snapshot.ledger_ms);
        written["resource"] = ResourceOf(snapshot, wire::FlowKeyOf(row));
        return written;
      },
      &json);
  return json;
}

ordered_json ServerView(const Snapshot& snapshot, const Board& board, int64_t now_ms,
                        const std::vector<Point>& points) {
  ordered_json json = HeadOf(snapshot);
  const auto phase = board.phase.load(std::memory_order_relaxed);
  const int64_t turns_by_ms = board.turns_by_ms.load(std::memory_order_relaxed);
  const int64_t commit_since_ms = board.commit_since_ms.load(std::memory_order_relaxed);
  json["phase"] = Board::PhaseName(phase);
  // No loop turns on a standby.
  const bool turns = turns_by_ms > 0 && !StandsBy(board);
  json["loop_late_ms"] = turns ? std::max<int64_t>(0, now_ms - turns_by_ms) : 0;
  json["commit_age_ms"] = commit_since_ms > 0 ? std::max<int64_t>(0, now_ms - commit_since_ms) : 0;
  json["commits"] = HistogramJson(board.commits);
  json["turns"] = HistogramJson(board.turns);
  json["cluster"] = ClusterJson(board);
  json["info"] = snapshot.info == nullptr ? ordered_json(nullptr) : *snapshot.info;
  ordered_json namespaces = ordered_json::array();
  for (size_t i = 0; i < std::min(snapshot.namespaces.size(), ListQuery::kLimitMax); ++i) {
    namespaces.push_back(NamespaceJson(snapshot.namespaces[i]));
  }
  json["namespaces"] = std::move(namespaces);
  json["namespaces_total"] = snapshot.namespaces.size();
  json["points"] = PointsJson(points);
  return json;
}

}  // namespace nowcalls::web
