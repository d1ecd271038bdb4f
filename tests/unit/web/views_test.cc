#include "web/views.h"

#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/web_snapshots.h"

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kNowMs = 1'000'000;
constexpr uint64_t kHugeId = (uint64_t{1} << 62) + 1;  // No number of JavaScript.

FlowLook LookOfFlow(int64_t id, const std::string& resource, uint64_t now_calls, uint64_t level) {
  FlowLook look;
  look.row.flow_id = id;
  look.row.name_space = "shop";
  look.row.resource = resource;
  look.row.now_calls = now_calls;
  look.row.level = level;
  look.row.tokens = now_calls;
  look.row.waiters = 0;
  return look;
}

Snapshot SnapshotOfFlows(std::vector<FlowLook> flows) {
  Snapshot snapshot;
  snapshot.number = 7;
  snapshot.unix_ms = 5'000;
  snapshot.ledger_ms = kNowMs;
  snapshot.flows = std::move(flows);
  return snapshot;
}

wire::HistoryRow EndedToken(uint64_t sequence, const std::string& client) {
  wire::HistoryRow row;
  row.sequence = sequence;
  row.ended_ms = kNowMs - 50;
  row.reason = "client_offline";
  row.token_id = kHugeId;
  row.flow_id = 1;
  row.name_space = "shop";
  row.client_id = client;
  row.held_ms = 400;
  return row;
}

// The ids of the rows, in their order.
std::vector<std::string> FlowIds(const ordered_json& view) {
  std::vector<std::string> ids;
  for (const auto& row : view.at("rows")) ids.push_back(row.at("flow_id"));
  return ids;
}

std::vector<std::string> FlowIdsBy(const Snapshot& snapshot, FlowOrder order) {
  ListQuery query;
  query.order = order;
  return FlowIds(FlowsView(snapshot, query));
}

using Ids = std::vector<std::string>;

TEST_CASE("a view says when its snapshot was taken, and the sums of its flows") {
  Snapshot snapshot = SnapshotOfFlows({LookOfFlow(1, "a", 2, 5), LookOfFlow(2, "b", 3, 3)});
  snapshot.server = "127.0.0.1:18730";
  snapshot.flows[0].row.waiters = 4;
  snapshot.flows[0].granted_per_s = 1.5;
  snapshot.flows[1].granted_per_s = 2;
  snapshot.flows[1].exceptions_per_s = 3;
  const ordered_json head = HeadOf(snapshot);
  CHECK(head.at("number") == 7);
  CHECK(head.at("unix_ms") == 5'000);
  CHECK(head.at("ledger_ms") == kNowMs);
  CHECK(head.at("server") == "127.0.0.1:18730");
  CHECK_FALSE(head.contains("problem"));
  const ordered_json& totals = head.at("totals");
  CHECK(totals.at("now_calls") == 5);
  CHECK(totals.at("tokens") == 5);
  CHECK(totals.at("waiters") == 4);
  CHECK(totals.at("flows") == 2);
  CHECK(totals.at("granted_per_s") == 3.5);
  CHECK(totals.at("exceptions_per_s") == 3);
}

TEST_CASE("a view says why the server did not answer") {
  Snapshot snapshot = SnapshotOfFlows({});
  snapshot.problem = "connection refused";
  CHECK(FlowsView(snapshot, {}).at("problem") == "connection refused");
}

TEST_CASE("a flow is as full as its calls are of its level, or its rate of its limit") {
  wire::FlowRow row;
  row.now_calls = 3;
  CHECK(FullnessOf(row) == 0);
  row.level = 4;
  CHECK(FullnessOf(row) == 0.75);
  row.rate.emplace();
  row.rate->in_window = 9;
  CHECK(FullnessOf(row) == 0.75);
  row.rate->limit = 10;
  CHECK(FullnessOf(row) == 0.9);
}

TEST_CASE("a level of 0 with calls in progress is more than full, and finite") {
  wire::FlowRow row;
  row.level = 0;
  CHECK(FullnessOf(row) == 0);
  row.now_calls = 2;
  CHECK(FullnessOf(row) == 2);
}

TEST_CASE("flows are sorted as asked, the largest first, equal ones by id") {
  Snapshot snapshot = SnapshotOfFlows({LookOfFlow(1, "a", 1, 10), LookOfFlow(2, "b", 5, 100),
                                       LookOfFlow(3, "c", 1, 10), LookOfFlow(4, "d", 2, 2)});
  snapshot.flows[2].row.waiters = 9;
  snapshot.flows[0].granted_per_s = 8;
  snapshot.flows[1].refused_per_s = 8;
  snapshot.flows[2].row.oldest_issued_ms = kNowMs - 10;
  snapshot.flows[3].row.oldest_issued_ms = kNowMs - 20;
  snapshot.flows[1].row.counters.emplace();
  snapshot.flows[1].row.counters->held.p99_ms = 1;
  CHECK(FlowIdsBy(snapshot, FlowOrder::kFullness) == Ids{"4", "1", "3", "2"});
  CHECK(FlowIdsBy(snapshot, FlowOrder::kNowCalls) == Ids{"2", "4", "1", "3"});
  CHECK(FlowIdsBy(snapshot, FlowOrder::kWaiting) == Ids{"3", "1", "2", "4"});
  CHECK(FlowIdsBy(snapshot, FlowOrder::kOldest) == Ids{"4", "3", "1", "2"});
  CHECK(FlowIdsBy(snapshot, FlowOrder::kGranted) == Ids{"1", "2", "3", "4"});
  CHECK(FlowIdsBy(snapshot, FlowOrder::kRefused) == Ids{"2", "1", "3", "4"});
  CHECK(FlowIdsBy(snapshot, FlowOrder::kHeld) == Ids{"2", "1", "3", "4"});
  CHECK(FlowIdsBy(snapshot, FlowOrder::kId) == Ids{"1", "2", "3", "4"});
}

TEST_CASE("a filter finds parts of names and ids of flows in any case, and whole namespaces") {
  Snapshot snapshot = SnapshotOfFlows(
      {LookOfFlow(17, "Checkout", 0, 1), LookOfFlow(2, "pay", 0, 1), LookOfFlow(3, "x", 0, 1)});
  snapshot.flows[2].row.name_space = "shop2";
  ListQuery query;
  query.order = FlowOrder::kId;
  query.filter = "cHECK";
  CHECK(FlowIds(FlowsView(snapshot, query)) == Ids{"17"});
  query.filter = "7";
  CHECK(FlowIds(FlowsView(snapshot, query)) == Ids{"17"});
  query.filter = "SHOP";
  CHECK(FlowIds(FlowsView(snapshot, query)) == Ids{"2", "3", "17"});
  query.name_space = "shop";
  CHECK(FlowIds(FlowsView(snapshot, query)) == Ids{"2", "17"});
  query.filter = "nothing like it";
  const ordered_json none = FlowsView(snapshot, query);
  CHECK(none.at("total") == 0);
  CHECK(none.at("rows") == ordered_json::array());
}

TEST_CASE("a window of a list says how much there is, also beyond the end") {
  std::vector<FlowLook> flows;
  for (int64_t id = 1; id <= 10; ++id) flows.push_back(LookOfFlow(id, "r", 0, 1));
  const Snapshot snapshot = SnapshotOfFlows(std::move(flows));
  ListQuery query;
  query.order = FlowOrder::kId;
  query.offset = 7;
  query.limit = 2;
  ordered_json view = FlowsView(snapshot, query);
  CHECK(view.at("total") == 10);
  CHECK(view.at("offset") == 7);
  CHECK(FlowIds(view) == Ids{"8", "9"});
  query.offset = 9;
  CHECK(FlowIds(FlowsView(snapshot, query)) == Ids{"10"});
  query.offset = 11;
  view = FlowsView(snapshot, query);
  CHECK(view.at("offset") == 10);
  CHECK(FlowIds(view).empty());
}

TEST_CASE("a row of a flow tells its counters by their words, and what is absent as null") {
  FlowLook look = LookOfFlow(1, "a", 2, 5);
  look.row.level.reset();
  look.row.draining = true;
  look.row.waiting_since_ms = kNowMs - 300;
  look.row.counters.emplace();
  look.row.counters->refused[static_cast<size_t>(RefusedBy::kLevel)] = 3;
  look.row.counters->ended[static_cast<size_t>(EndReason::kClientOffline)] = 2;
  const ordered_json view = FlowsView(SnapshotOfFlows({look}), {});
  const ordered_json& row = view.at("rows").at(0);
  CHECK(row.at("level").is_null());
  CHECK(row.at("draining") == true);
  CHECK(row.at("waiting_ms") == kNowMs - 300);
  CHECK(row.at("waiting_age_ms") == 300);
  CHECK_FALSE(row.contains("oldest_ms"));
  CHECK_FALSE(row.contains("rate"));
  CHECK(row.at("counters").at("refused") == ordered_json{{"level", 3}});
  CHECK(row.at("counters").at("ended") == ordered_json{{"client_offline", 2}});
}

TEST_CASE("the counters and rates of a flow have their keys in a fixed order") {
  FlowLook look = LookOfFlow(1, "a", 2, 5);
  look.row.counters.emplace();
  look.row.counters->kept = 4;
  look.row.counters->held.p90_ms = 6;
  look.row.rate.emplace().passed = 7;
  const ordered_json view = FlowsView(SnapshotOfFlows({look}), {});
  const ordered_json& row = view.at("rows").at(0);
  CHECK(row.at("counters").dump() ==
        R"({"granted":0,"refused":{},"shadow_refused":{},"queued":0,"granted_from_queue":0,)"
        R"("waited_p50_ms":0,"waited_p99_ms":0,"waited_count":0,"longest_wait_ms":0,"kept":4,)"
        R"("ended":{},"outcomes":{},"held_p50_ms":0,"held_p90_ms":6,"held_p99_ms":0,)"
        R"("held_longest_ms":0})");
  CHECK(row.at("rate").dump() ==
        R"({"in_window":0,"limit":null,"window_ms":0,"passed":7,"borrowed":0,"blocked":0,)"
        R"("values":null,"forgotten":null})");
}

TEST_CASE("ages are never less than 0, and deadlines that passed are") {
  Snapshot snapshot = SnapshotOfFlows({LookOfFlow(1, "a", 1, 5)});
  wire::TokenRow token;
  token.token_id = kHugeId;
  token.issued_ms = kNowMs + 5;
  token.deadline_ms = kNowMs - 20;
  snapshot.details[OfFlow(1)].tokens.push_back(token);
  const ordered_json view = FlowView(snapshot, OfFlow(1), {});
  const ordered_json& row = view.at("detail").at("tokens").at(0);
  CHECK(row.at("issued_age_ms") == 0);
  CHECK(row.at("deadline_in_ms") == -20);
}

TEST_CASE("ids are strings, since JavaScript would round them") {
  Snapshot snapshot = SnapshotOfFlows({LookOfFlow(1, "a", 1, 5)});
  wire::TokenRow token;
  token.token_id = kHugeId;
  token.flow_id = 1;
  token.fence = kHugeId + 1;
  token.session = kHugeId + 2;
  snapshot.details[OfFlow(1)].tokens.push_back(token);
  const ordered_json view = FlowView(snapshot, OfFlow(1), {});
  const ordered_json& row = view.at("detail").at("tokens").at(0);
  CHECK(row.at("token_id") == "4611686018427387905");
  CHECK(row.at("fence") == "4611686018427387906");
  CHECK(row.at("session") == "4611686018427387907");
  CHECK(row.at("flow_id") == "1");
}

TEST_CASE("a flow shows holders, waiters in their order, keys and points") {
  Snapshot snapshot = SnapshotOfFlows({LookOfFlow(1, "a", 1, 5)});
  FlowDetail& detail = snapshot.details[OfFlow(1)];
  detail.tokens.resize(2);
  detail.tokens[1].param = ParamValue(ParamType::kString, "user-1");
  detail.more_tokens = true;
  detail.waiters.resize(2);
  detail.waiters[0].place = 1;
  detail.waiters[0].client_id = "w1";
  detail.waiters[1].place = 2;
  detail.params.resize(1);
  detail.params[0].param = ParamValue(ParamType::kInt, std::string("\xff\xff\xff\xfe", 4));
  const ordered_json view =
      FlowView(snapshot, OfFlow(1), {{.unix_s = 9, .now_calls = 4, .held_ms = 8}});
  CHECK(view.at("row").at("flow_id") == "1");
  CHECK(view.at("detail").at("more_tokens") == true);
  CHECK_FALSE(view.at("detail").at("tokens").at(0).contains("param"));
  CHECK(view.at("detail").at("tokens").at(1).at("param") == "user-1");
  CHECK(view.at("detail").at("waiters").at(0).at("client_id") == "w1");
  CHECK(view.at("detail").at("waiters").at(1).at("place") == 2);
  CHECK(view.at("detail").at("params").at(0).at("param") == "-2");
  CHECK(view.at("points").at("unix_s") == ordered_json{9});
  CHECK(view.at("points").at("now_calls") == ordered_json{4});
  CHECK(view.at("points").at("held_ms") == ordered_json{8});
}

TEST_CASE("two rules of one flow id are two rows, and each shows its own holders and points") {
  FlowLook of_flow = LookOfFlow(1, "db", 1, 5);
  FlowLook by_value = LookOfFlow(1, "db", 2, 5);
  by_value.row.kind = "value";
  Snapshot snapshot = SnapshotOfFlows({of_flow, by_value, LookOfFlow(2, "x", 0, 1)});
  snapshot.details[OfFlow(1)].tokens.resize(1);
  snapshot.details[ByValue(1)].tokens.resize(2);
  const ordered_json rows = FlowsView(snapshot, {.order = FlowOrder::kId}).at("rows");
  REQUIRE(rows.size() == 3);
  CHECK(rows.at(0).at("kind") == "flow");
  CHECK(rows.at(1).at("kind") == "value");
  const ordered_json view = FlowView(snapshot, ByValue(1), {});
  CHECK(view.at("row").at("now_calls") == 2);
  CHECK(view.at("other") == true);
  CHECK(view.at("detail").at("tokens").size() == 2);
  CHECK(FlowView(snapshot, OfFlow(1), {}).at("detail").at("tokens").size() == 1);
  CHECK(FlowView(snapshot, OfFlow(2), {}).at("other") == false);
}

TEST_CASE("a flow that nobody has looked at yet has no detail, an unknown one no row") {
  const Snapshot snapshot = SnapshotOfFlows({LookOfFlow(1, "a", 1, 5)});
  CHECK(FlowView(snapshot, OfFlow(1), {}).at("detail").is_null());
  CHECK(FlowView(snapshot, OfFlow(2), {}).at("row").is_null());
}

TEST_CASE("clients with most calls come first, and are found by name or namespace") {
  Snapshot snapshot = SnapshotOfFlows({});
  snapshot.sessions.resize(3);
  for (size_t i = 0; i < 3; ++i) {
    snapshot.sessions[i].session = i + 1;
    snapshot.sessions[i].name_space = i == 2 ? "other" : "shop";
    snapshot.sessions[i].client_id = "worker-" + std::to_string(i + 1);
  }
  snapshot.sessions[1].now_calls = 5;
  snapshot.sessions[2].online = false;
  snapshot.sessions[2].offline_since_ms = kNowMs - 40;
  snapshot.more_sessions = true;
  ordered_json view = ClientsView(snapshot, {});
  CHECK(view.at("asked") == false);
  CHECK(view.at("more") == true);
  snapshot.has_sessions = true;
  CHECK(ClientsView(snapshot, {}).at("asked") == true);
  CHECK(view.at("total") == 3);
  CHECK(view.at("rows").at(0).at("client_id") == "worker-2");
  CHECK(view.at("rows").at(2).at("online") == false);
  CHECK(view.at("rows").at(2).at("offline_age_ms") == 40);
  ListQuery query;
  query.filter = "WORKER-3";
  CHECK(ClientsView(snapshot, query).at("total") == 1);
  query.name_space = "shop";
  CHECK(ClientsView(snapshot, query).at("total") == 0);
}

TEST_CASE("a client shows what it holds and waits for, with the resources") {
  Snapshot snapshot = SnapshotOfFlows({LookOfFlow(7, "pay", 1, 5)});
  CHECK(ClientView(snapshot, kHugeId).at("asked") == false);
  SessionDetail& detail = snapshot.session_details[kHugeId];
  ordered_json view = ClientView(snapshot, kHugeId);
  CHECK(view.at("asked") == true);
  CHECK(view.at("row").is_null());
  detail.row.emplace();
  detail.row->session = kHugeId;
  detail.row->client_id = "worker-1";
  detail.more_tokens = true;
  detail.tokens.emplace_back().flow_id = 7;
  detail.tokens.emplace_back().flow_id = 8;  // Its rule is new: the flow was not looked at yet.
  detail.waiters.emplace_back().flow_id = 7;
  view = ClientView(snapshot, kHugeId);
  CHECK(view.at("row").at("session") == "4611686018427387905");
  CHECK(view.at("tokens").at(0).at("resource") == "pay");
  CHECK(view.at("tokens").at(1).at("resource") == "");
  CHECK(view.at("tokens").at(1).at("flow_id") == "8");
  CHECK(view.at("more_tokens") == true);
  CHECK(view.at("waiters").at(0).at("resource") == "pay");
  CHECK(view.at("waiters").at(0).at("flow_id") == "7");
}

TEST_CASE("history names the resource; client, reason, outcome, flow, token or resource find it") {
  Snapshot snapshot = SnapshotOfFlows({LookOfFlow(1, "Checkout", 0, 1)});
  snapshot.history = {EndedToken(1, "alice"), EndedToken(2, "bob")};
  CHECK(HistoryView(snapshot, {}).at("asked") == false);
  snapshot.has_history = true;
  const ordered_json view = HistoryView(snapshot, {});
  CHECK(view.at("asked") == true);
  CHECK(view.at("rows").at(0).at("client_id") == "bob");
  CHECK(view.at("rows").at(0).at("resource") == "Checkout");
  CHECK(view.at("rows").at(0).at("ended_age_ms") == 50);
  CHECK(view.at("rows").at(0).at("held_ms") == 400);
  for (const char* filter : {"client_off", "checkout", "4611686018427387905"}) {
    CAPTURE(filter);
    ListQuery query;
    query.filter = filter;
    CHECK(HistoryView(snapshot, query).at("total") == 2);
  }
  ListQuery query;
  query.filter = "ALICE";
  CHECK(HistoryView(snapshot, query).at("total") == 1);
  snapshot.history[1].outcome = "timeout";
  query.filter = "timeout";
  CHECK(HistoryView(snapshot, query).at("total") == 1);
}

TEST_CASE("the server shows info, commits, how late its loop is, and namespaces") {
  Snapshot snapshot = SnapshotOfFlows({});
  Board board;
  ordered_json view = ServerView(snapshot, board, kNowMs, {});
  CHECK(view.at("info").is_null());
  CHECK(view.at("phase") == "loading");
  CHECK(view.at("loop_late_ms") == 0);
  CHECK(view.at("commit_age_ms") == 0);

  snapshot.info = std::make_shared<const ordered_json>(ordered_json{{"version", "1"}});
  snapshot.namespaces.resize(1);
  snapshot.namespaces[0].name_space = "shop";
  board.phase = Board::Phase::kServing;
  board.turns_by_ms = kNowMs - 3;
  board.commit_since_ms = kNowMs - 4;
  board.commits.Add(300);
  board.commits.Add(10'000'000);
  view = ServerView(snapshot, board, kNowMs, {});
  CHECK(view.at("info").at("version") == "1");
  CHECK(view.at("phase") == "serving");
  CHECK(view.at("loop_late_ms") == 3);
  CHECK(view.at("commit_age_ms") == 4);
  CHECK(view.at("commits").at("counts").at(2) == 1);
  CHECK(view.at("commits").at("counts").at(14) == 1);
  CHECK(view.at("commits").at("sum_us") == 10'000'300);
  CHECK(view.at("namespaces").at(0).at("namespace") == "shop");
  CHECK(view.at("namespaces").at(0).at("source").is_null());
}

TEST_CASE("the server shows its cluster, and a standby who writes") {
  const Snapshot snapshot = SnapshotOfFlows({});
  Board board;
  CHECK(ServerView(snapshot, board, kNowMs, {}).at("cluster").is_null());
  CHECK(StandbyText(board).empty());
  board.phase = Board::Phase::kStandby;
  board.cluster_term = 4;
  CHECK(StandbyText(board) == "this member of the cluster stands by, and nobody writes");
  board.cluster_lag = 2;
  board.cluster_log_bytes_max = 99;
  board.cluster_etcd_failures = 3;
  board.cluster.Set(std::make_shared<const wire::ClusterReply>(wire::ClusterReply{
      .cluster = "c",
      .prefix = "p",
      .writer = "a:1",
      .last_batch = 9,
      .members = {{.member = "0a", .address = "a:1", .leads = true, .applied = 9},
                  {.member = "0b", .address = "b:1", .lag = 2, .silent_ms = 300}}}));
  CHECK(StandbyText(board) == "this member of the cluster stands by, and a:1 writes");
  board.turns_by_ms = kNowMs - 60'000;  // Of the loop that has ended.
  CHECK(ServerView(snapshot, board, kNowMs, {}).at("loop_late_ms") == 0);
  const ordered_json cluster = ServerView(snapshot, board, kNowMs, {}).at("cluster");
  CHECK(cluster.at("role") == "standby");
  CHECK(cluster.at("term") == 4);
  CHECK(cluster.at("lag_batches") == 2);
  CHECK(cluster.at("writer") == "a:1");
  CHECK(cluster.at("log_bytes_max") == 99);
  CHECK(cluster.at("etcd_failures") == 3);
  CHECK(cluster.at("members").at(0).at("role") == "writer");
  CHECK(cluster.at("members").at(1).at("address") == "b:1");
  CHECK(cluster.at("members").at(1).at("silent_ms") == 300);
  board.phase = Board::Phase::kServing;
  CHECK(StandbyText(board).empty());
  CHECK(ServerView(snapshot, board, kNowMs, {}).at("cluster").at("role") == "writer");
}

}  // namespace
}  // namespace nowcalls::web
