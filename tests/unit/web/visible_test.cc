// What a tenant is shown of a snapshot with rows of two, in every view, scrape and stream.
#include "web/visible.h"

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/web_snapshots.h"
#include "web/api.h"
#include "web/metrics.h"

namespace nowcalls::web {
namespace {

using nlohmann::ordered_json;

access::Principal Of(std::vector<std::string> namespaces) {
  return {.name = "tenant", .role = access::Role::kObserver, .namespaces = std::move(namespaces)};
}

// Rows of a tenant, in which each text has the tenant's name.
void AddTenant(const std::string& name, int64_t flow, uint64_t session, Snapshot* snapshot) {
  snapshot->flows.push_back(
      testing::LookAt(flow, name, "resource-of-" + name, {.granted = 5, .now_calls = 4}));
  wire::TokenRow token;
  token.flow_id = flow;
  token.name_space = name;
  token.client_id = "client-of-" + name;
  wire::WaiterRow waiter;
  waiter.flow_id = flow;
  waiter.name_space = name;
  waiter.client_id = "waiter-of-" + name;
  snapshot->details[OfFlow(flow)] = {.tokens = {token}, .waiters = {waiter}};
  wire::SessionRow row;
  row.session = session;
  row.name_space = name;
  row.client_id = "client-of-" + name;
  snapshot->sessions.push_back(row);
  snapshot->session_details[session] = {.row = row, .tokens = {token}, .waiters = {waiter}};
  wire::HistoryRow ended;
  ended.sequence = session;
  ended.flow_id = flow;
  ended.name_space = name;
  ended.client_id = "client-of-" + name;
  snapshot->history.push_back(ended);
  wire::NamespaceRow of;
  of.name_space = name;
  of.source = "file:/rules-of-" + name;
  snapshot->namespaces.push_back(of);
}

// Flow 1 and session 11 are shop's, flow 2 and session 12 api's.
Snapshot OfTwo() {
  Snapshot snapshot = testing::SnapshotAt(0, {});
  AddTenant("shop", 1, 11, &snapshot);
  AddTenant("api", 2, 12, &snapshot);
  snapshot.has_sessions = true;
  snapshot.has_history = true;
  snapshot.rules = std::make_shared<const ordered_json>(ordered_json::array({"rules-of-api"}));
  return snapshot;
}

struct ApiOfTwo {
  Board board;
  testing::FixedSource source{OfTwo()};
  Api api{&source, &board};

  Response Get(const std::string& path, std::map<std::string, std::string> query,
               const Viewer& reader = {.principal = Of({"shop", "shop-*"})}) {
    return api.Handle({.path = path, .query = std::move(query)}, reader);
  }
};

using Questions = std::vector<std::pair<std::string, std::map<std::string, std::string>>>;
const Questions kQuestions = {
    {"flows", {}},
    {"flows", {{"namespace", "api"}}},
    {"flows", {{"filter", "api"}}},
    {"clients", {}},
    {"clients", {{"filter", "api"}}},
    {"history", {}},
    {"server", {}},
    {"flow", {{"id", "2"}}},
    {"flow", {{"id", "1"}}},
    {"client", {{"id", "12"}}},
    {"client", {{"id", "11"}}},
    {"history", {{"filter", "2"}}},
};

TEST_CASE_FIXTURE(ApiOfTwo, "no answer, look or event names what is another tenant's") {
  for (const auto& question : kQuestions) {
    const std::string& view = question.first;
    auto query = question.second;
    CAPTURE(view);
    // Whoever sees all asked before: what is remembered is not shared.
    CHECK(Get("/api/" + view, query, {}).status == 200);
    const Response answer = Get("/api/" + view, query);
    CHECK(answer.body.find("of-api") == std::string::npos);
    query["view"] = view;
    const Response look = Get("/api/look", query);
    CHECK(look.status == 200);
    CHECK(look.body.find("of-api") == std::string::npos);
    const std::string event = Get("/api/stream", query).stream().value();
    CHECK(event.find("of-api") == std::string::npos);
    CHECK(event.find("\"api\"") == std::string::npos);
  }
}

TEST_CASE_FIXTURE(ApiOfTwo, "a tenant sees all of its own, and sums of that alone") {
  const auto json = [&](const std::string& path, std::map<std::string, std::string> query = {}) {
    const Response response = Get(path, std::move(query));
    CHECK(response.status == 200);
    return ordered_json::parse(response.body);
  };
  for (const char* list : {"/api/flows", "/api/clients", "/api/history"}) {
    CAPTURE(list);
    CHECK(json(list).at("total") == 1);
  }
  CHECK(json("/api/flows").at("totals").at("now_calls") == 4);
  CHECK(json("/api/flows").at("totals").at("flows") == 1);
  const auto flow = json("/api/flow", {{"id", "1"}});
  CHECK(flow.at("detail").at("tokens").size() == 1);
  CHECK(flow.at("detail").at("waiters").size() == 1);
  CHECK(flow.at("points").at("now_calls").size() == 1);
  CHECK(json("/api/client", {{"id", "11"}}).at("tokens").size() == 1);
  CHECK(json("/api/server").at("namespaces_total") == 1);
  // Of the whole server.
  CHECK(json("/api/server").at("info").at("limits").at("namespace_qps_max") == 30'000);
}

TEST_CASE_FIXTURE(ApiOfTwo, "a flow or session of another tenant is as one that does not exist") {
  source.snapshot->session_details[13] = {};
  const auto same = [&](const std::string& path, const std::string& other,
                        const std::string& none) {
    const Response of_other = Get(path, {{"id", other}});
    const Response of_none = Get(path, {{"id", none}});
    CHECK(of_other.status == of_none.status);
    std::string body = of_other.body;
    body.replace(body.find(other), other.size(), none);
    CHECK(body == of_none.body);
    CHECK(Get("/api/look", {{"view", path.substr(5)}, {"id", other}}).body ==
          Get("/api/look", {{"view", path.substr(5)}, {"id", none}}).body);
  };
  same("/api/flow", "2", "3");
  CHECK(Get("/api/flow", {{"id", "2"}}).status == 404);
  same("/api/client", "12", "13");
  CHECK(Get("/api/client", {{"id", "12"}}).status == 404);
  // Before anybody has looked at it, too: the list of sessions tells.
  CHECK(Get("/api/client", {{"id", "14"}}).status == 404);
  same("/api/client", "12", "14");
  source.snapshot->has_sessions = false;
  ++source.snapshot->number;
  CHECK(Get("/api/client", {{"id", "14"}}).status == 200);
}

TEST_CASE_FIXTURE(ApiOfTwo, "who may not see a row does not watch it, nor push out who does") {
  source.snapshot->session_details.clear();
  for (const char* id : {"1", "2", "3"}) {
    Get("/api/flow", {{"id", id}});
    Get("/api/stream", {{"view", "flow"}, {"id", id}}).stream();
  }
  CHECK(source.flows == std::set<FlowKey>{OfFlow(1)});
  for (const char* id : {"11", "12", "14"}) Get("/api/client", {{"id", id}});
  CHECK(source.session_details == std::set<uint64_t>{11});
  Get("/api/client", {{"id", "12"}}, {});
  CHECK(source.session_details == std::set<uint64_t>{11, 12});
}

TEST_CASE_FIXTURE(ApiOfTwo, "a session is watched once the list of sessions tells whose it is") {
  source.snapshot->session_details.clear();
  source.snapshot->has_sessions = false;
  source.snapshot->sessions.clear();
  CHECK(Get("/api/client", {{"id", "11"}}).status == 200);
  CHECK(source.sessions);
  CHECK(source.session_details.empty());
  // One of a list that is not whole may be the reader's.
  source.snapshot->has_sessions = true;
  source.snapshot->more_sessions = true;
  ++source.snapshot->number;
  CHECK(Get("/api/client", {{"id", "11"}}).status == 200);
  CHECK(source.session_details == std::set<uint64_t>{11});
}

TEST_CASE_FIXTURE(ApiOfTwo, "a token of an own client at another tenant's flow is not shown") {
  wire::TokenRow& token = source.snapshot->session_details[11].tokens[0];
  token.flow_id = 2;
  source.snapshot->details[OfFlow(1)].tokens[0].name_space = "api";
  source.snapshot->history[0].flow_id = 2;
  CHECK(ordered_json::parse(Get("/api/client", {{"id", "11"}}).body).at("tokens").empty());
  const auto flow = ordered_json::parse(Get("/api/flow", {{"id", "1"}}).body);
  CHECK(flow.at("detail").at("tokens").empty());
  CHECK(ordered_json::parse(Get("/api/history", {}).body).at("total") == 0);
}

TEST_CASE_FIXTURE(ApiOfTwo, "a stream ends when its reader may see nothing any more") {
  std::optional<access::Principal> principal = Of({"shop", "api"});
  const Response stream =
      Get("/api/stream", {{"view", "flows"}}, {*principal, [&] { return principal; }});
  CHECK(stream.stream().value().find("of-api") != std::string::npos);
  CHECK(stream.stream().value().empty());
  principal->namespaces = {"shop"};
  ++source.snapshot->number;
  CHECK(stream.stream().value().find("of-api") == std::string::npos);
  principal.reset();
  CHECK_FALSE(stream.stream().has_value());
}

TEST_CASE("a scrape has the flows and rules of its reader alone, and figures of the server") {
  const Board board;
  const auto snapshot = std::make_shared<const Snapshot>(OfTwo());
  const auto scrape = [&](const access::Principal& reader, const std::string& limit = "1000") {
    return testing::WholeBody(AnswerMetrics({.path = "/metrics", .query = {{"limit", limit}}},
                                            VisibleTo(reader, snapshot), board, {}, 7));
  };
  const std::string part = scrape(Of({"shop"}));
  CHECK(part.find("resource-of-shop") != std::string::npos);
  CHECK(part.find("of-api") == std::string::npos);
  CHECK(part.find("\"api\"") == std::string::npos);
  CHECK(part.find("nowcalls_commit_seconds_count 0\n") != std::string::npos);
  CHECK(part.find("nowcalls_http_wrong_secrets_total 7\n") != std::string::npos);
  CHECK(scrape(Of({"shop"}), "0").find("nowcalls_flows_beyond_limit 1\n") != std::string::npos);
  CHECK(scrape({}).find("resource-of-api") != std::string::npos);
}

TEST_CASE(
    "parts of a snapshot are shared by readers who see the same, and made anew for the next") {
  VisibleSnapshots visible;
  auto snapshot = std::make_shared<Snapshot>(OfTwo());
  CHECK(visible.For({}, snapshot) == snapshot);
  const SnapshotPtr first = visible.For(Of({"shop"}), snapshot);
  CHECK(visible.For(Of({"shop"}), snapshot) == first);
  CHECK(visible.For(Of({"shop", "api"}), snapshot) != first);
  CHECK(visible.For(Of({}), snapshot)->flows.empty());
  const auto next = std::make_shared<Snapshot>(*snapshot);
  ++next->number;
  CHECK(visible.For(Of({"shop"}), next)->number == next->number);
}

TEST_CASE("parts are remembered up to a number of flows") {
  VisibleSnapshots visible;
  auto snapshot = std::make_shared<Snapshot>(testing::SnapshotAt(0, {}));
  snapshot->flows.resize(VisibleSnapshots::kFlowsMax / 2, testing::LookAt(1, "shop", "", {}));
  CHECK(visible.For(Of({"shop"}), snapshot) == visible.For(Of({"shop"}), snapshot));
  CHECK(visible.For(Of({"s*"}), snapshot) != visible.For(Of({"s*"}), snapshot));
}

}  // namespace
}  // namespace nowcalls::web
