#include "web/api.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/web_snapshots.h"
#include "web/feed.h"

namespace nowcalls::web {
namespace {

// An Api whose feed has not started: its snapshot is empty and says so.
struct ApiOfNoServer {
  Board board;
  Feed feed{[] {}};
  Api api{&feed, &board};

  Response Get(const std::string& path, std::map<std::string, std::string> query = {}) {
    return api.Handle({.path = path, .query = std::move(query)}, {});
  }
};

TEST_CASE_FIXTURE(ApiOfNoServer, "each view is answered as JSON that says what is wrong") {
  for (const char* path : {"/api/flows", "/api/clients", "/api/history", "/api/server"}) {
    CAPTURE(path);
    const Response response = Get(path);
    CHECK(response.status == 200);
    CHECK(response.type == kJson);
    CHECK(response.body.ends_with("}\n"));
    const auto json = nlohmann::json::parse(response.body);
    CHECK(json.at("problem").get<std::string>() != "");
    CHECK(json.at("totals").at("now_calls") == 0);
  }
  CHECK(Get("/api/flow", {{"id", "7"}}).status == 200);
}

TEST_CASE_FIXTURE(ApiOfNoServer, "a route that does not exist is 404 and names those that do") {
  for (const char* path : {"/api/", "/api/nothing", "/api/flows/1", "/api"}) {
    CAPTURE(path);
    const Response response = Get(path);
    CHECK(response.status == 404);
    CHECK(response.body.find("/api/flows") != std::string::npos);
  }
}

TEST_CASE_FIXTURE(ApiOfNoServer, "wrong parameters are 400 and told with what is possible") {
  const auto error = [&](const char* path, const char* name, const std::string& value) {
    const Response response = Get(path, {{name, value}});
    CHECK(response.status == 400);
    return response.body;
  };
  CHECK(error("/api/flows", "sort", "size") ==
        "sort must be one of fullness, now_calls, waiting, oldest, granted, refused, held, id, got "
        "'size'\n");
  CHECK(error("/api/flows", "limit", "0") == "limit must be 1..200, got '0'\n");
  CHECK(error("/api/flows", "limit", "201") == "limit must be 1..200, got '201'\n");
  CHECK(error("/api/clients", "limit", "5x") == "limit must be 1..200, got '5x'\n");
  CHECK(error("/api/history", "offset", "-1") == "offset must be a number below 2^32, got '-1'\n");
  CHECK(error("/api/history", "offset", "99999999999999999999").starts_with("offset must be"));
  CHECK(error("/api/flow", "id", "") == "id must be the number of a flow, got ''\n");
  CHECK(error("/api/flow", "id", "0").starts_with("id must be"));
  CHECK(error("/api/flow", "id", "9223372036854775808").starts_with("id must be"));
  CHECK(error("/api/flows", "filter", std::string(257, 'x')).starts_with("filter and namespace"));
  CHECK(error("/api/stream", "view", "nothing").starts_with("there is no view 'nothing'"));
  CHECK(error("/api/stream", "view", "flow").starts_with("id must be"));
  CHECK(error("/api/look", "view", "nothing").starts_with("there is no view 'nothing'"));
}

std::string EtagOf(const Response& response) {
  for (const auto& [name, value] : response.headers) {
    if (name == "ETag") return value;
  }
  return "";
}

TEST_CASE("a look is answered in full once, and is not modified until there is a newer snapshot") {
  const Board board;
  testing::FixedSource source(testing::SnapshotAt(0, {testing::LookAt(7, "default", "pay", {})}));
  Api api(&source, &board);
  const auto look = [&](const std::string& id, const std::string& known) {
    return api.Handle(
        {.path = "/api/look", .query = {{"view", "flow"}, {"id", id}}, .if_none_match = known}, {});
  };
  const Response first = look("7", "");
  CHECK(first.status == 200);
  CHECK(first.type == kJson);
  CHECK(nlohmann::json::parse(first.body).at("row").at("flow_id") == "7");
  const std::string etag = EtagOf(first);
  const Response same = look("7", etag);
  CHECK(same.status == 304);
  CHECK(same.body.empty());
  CHECK(EtagOf(same) == etag);
  CHECK(look("7", "W/" + etag).status == 304);  // As a proxy that packs it names it.
  ++source.snapshot->number;
  CHECK(look("7", etag).status == 200);
  // As its number may be after a restart, at another time.
  --source.snapshot->number;
  ++source.snapshot->unix_ms;
  CHECK(look("7", etag).status == 200);
  const Response none = look("8", "");
  CHECK(none.status == 200);
  CHECK(nlohmann::json::parse(none.body).at("row").is_null());
  CHECK(look("x", etag).status == 400);
  CHECK(source.flows == std::set<FlowKey>{OfFlow(7), OfFlow(8)});
}

TEST_CASE_FIXTURE(ApiOfNoServer, "a stream sends each snapshot once, as an event of one line") {
  const Response response = Get("/api/stream", {{"view", "flows"}, {"limit", "5"}});
  CHECK(response.status == 200);
  CHECK(response.type == "text/event-stream");
  REQUIRE(response.stream);
  const std::string event = response.stream().value();
  CHECK(event.starts_with("id: 0\ndata: {"));
  CHECK(event.ends_with("}\n\n"));
  CHECK(event.find('\n', event.find("data:")) == event.size() - 2);
  CHECK(response.stream().value().empty());
}

TEST_CASE_FIXTURE(ApiOfNoServer, "streams that ask the same at one time get the same") {
  const std::map<std::string, std::string> query = {{"view", "flows"}};
  CHECK(Get("/api/stream", query).stream() == Get("/api/stream", query).stream());
  CHECK(Get("/api/stream", {{"view", "server"}}).stream() != Get("/api/stream", query).stream());
}

TEST_CASE("a flow id with two rules is asked for by kind, and without one is that of the flow") {
  const Board board;
  testing::FixedSource source(testing::SnapshotAt(
      0, {testing::LookAt(7, "default", "pay", {}), testing::LookAtValues(7, "default", "pay", {}),
          testing::LookAtValues(8, "default", "keys", {})}));
  Api api(&source, &board);
  const auto kind = [&](std::map<std::string, std::string> query) {
    const Response response = api.Handle({.path = "/api/flow", .query = std::move(query)}, {});
    if (response.status != 200) return response.body;
    return nlohmann::ordered_json::parse(response.body).at("row").at("kind").get<std::string>();
  };
  CHECK(kind({{"id", "7"}}) == "flow");
  CHECK(kind({{"id", "7"}, {"kind", "value"}}) == "value");
  CHECK(kind({{"id", "8"}}) == "value");
  CHECK(kind({{"id", "8"}, {"kind", "flow"}}) == "no flow 8: it has neither a rule nor tokens\n");
  CHECK(kind({{"id", "7"}, {"kind", "both"}}) == "kind must be flow or value, got 'both'\n");
  CHECK(source.flows == std::set<FlowKey>{OfFlow(7), ByValue(7), OfFlow(8), ByValue(8)});
}

TEST_CASE("what is asked for is watched, and a flow that does not exist is 404") {
  const Board board;
  testing::FixedSource source(testing::SnapshotAt(0, {testing::LookAt(7, "default", "pay", {})}));
  Api api(&source, &board);
  const auto get = [&](const std::string& path, std::map<std::string, std::string> query) {
    return api.Handle({.path = path, .query = std::move(query)}, {});
  };
  CHECK(get("/api/flow", {{"id", "7"}}).status == 200);
  const Response none = get("/api/flow", {{"id", "8"}});
  CHECK(none.status == 404);
  CHECK(none.body == "no flow 8: it has neither a rule nor tokens\n");
  CHECK(source.flows == std::set<FlowKey>{OfFlow(7), OfFlow(8)});
  CHECK_FALSE(source.sessions);
  get("/api/clients", {});
  CHECK(source.sessions);
  CHECK(get("/api/client", {{"id", "3"}}).status == 200);
  CHECK(source.session_details == std::set<uint64_t>{3});
  source.snapshot->session_details[3] = {};
  CHECK(get("/api/client", {{"id", "3"}}).status == 404);
  CHECK(get("/api/client", {{"id", "3"}}).body ==
        "no session 3: its client left, and holds nothing\n");
  source.snapshot->session_details[3].row.emplace();
  CHECK(get("/api/client", {{"id", "3"}}).status == 200);
  CHECK(get("/api/client", {{"id", "x"}}).body == "id must be the number of a session, got 'x'\n");
  get("/api/stream", {{"view", "history"}}).stream();
  CHECK(source.history);
}

}  // namespace
}  // namespace nowcalls::web
