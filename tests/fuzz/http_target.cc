// What a request for the page, for /api/, for /metrics or from Sentinel's dashboard is answered.
//
// The input is up to four lines: the path with its query, already decoded; the Host header; the
// Accept header; a name, which flows, namespaces and clients then have. Every answer must be of its
// form, whatever was asked, and no name breaks it: JSON that parses, one line for an event, lines
// of metrics that a scraper can take apart.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/text.h"
#include "base/utf8.h"
#include "fuzz/targets.h"
#include "support/web_snapshots.h"
#include "web/api.h"
#include "web/assets.h"
#include "web/health.h"
#include "web/metrics.h"
#include "web/sentinel/command_center.h"
#include "web/views.h"

namespace nowcalls::fuzz {
namespace {

using nlohmann::ordered_json;
using web::Request;
using web::Response;

constexpr size_t kErrorBytesMax = 1'200;

// Takes what stands before `end`, and the end.
std::string_view TakeTo(char end, std::string_view* text) {
  const std::string_view head = text->substr(0, text->find(end));
  text->remove_prefix(std::min(head.size() + 1, text->size()));
  return head;
}

Request RequestOf(std::string_view target, std::string_view accept) {
  Request request;
  request.path = TakeTo('?', &target);
  while (!target.empty()) {
    std::string_view value = TakeTo('&', &target);
    const std::string_view name = TakeTo('=', &value);
    request.query[std::string(name)] = value;
  }
  request.accept = accept;
  request.peer.host = "127.0.0.1";
  return request;
}

// Three flows, one of them looked at, with all that a snapshot has.
web::Snapshot SnapshotWith(const std::string& name) {
  const testing::Calls calls{5, 2, 3, 300, 4};
  web::Snapshot snapshot = testing::SnapshotAt(
      0, {testing::LookAt(7, "default", name, calls), testing::LookAt(8, name, "", calls),
          testing::LookAt(INT64_MAX, name, name, {})});
  for (web::FlowLook& flow : snapshot.flows) {
    flow.row.counters = wire::FlowCounters{.granted = 5};
    flow.row.counters->held.count = 3;
    flow.row.counters->waited.count = 1;
    flow.row.counters->ended[1] = 3;
  }
  snapshot.flows[1].row.rate = wire::FlowRate{};
  snapshot.namespaces.push_back({.name_space = name, .source = name, .sessions_online = 1});
  wire::SessionRow session;
  session.name_space = session.client_id = name;
  session.kind = "named";
  session.online = true;
  snapshot.has_sessions = snapshot.has_history = true;
  snapshot.sessions = {session, session};
  wire::HistoryRow& ended = snapshot.history.emplace_back();
  ended.reason = "expired";
  ended.name_space = ended.client_id = ended.note = name;
  ended.param = ParamValue(ParamType::kString, name);
  snapshot.session_details[1].row = session;
  snapshot.session_details[1].tokens.emplace_back().client_id = name;
  web::FlowDetail& detail = snapshot.details[{FlowId{7}}];
  detail.tokens.emplace_back().client_id = name;
  detail.waiters.emplace_back().client_id = name;
  detail.params.emplace_back().param = ended.param.value();
  auto rules = ordered_json::array();
  rules.push_back({{"namespace", name}, {"resource", name}, {"count", 2}, {"clusterMode", true}});
  snapshot.rules = std::make_shared<const ordered_json>(std::move(rules));
  return snapshot;
}

void CheckError(const Response& response) {
  REQUIRE(response.type.starts_with(web::kPlainText.substr(0, 10)));
  std::string_view body = response.body;
  if (body.ends_with('\n')) body.remove_suffix(1);
  REQUIRE_FALSE(body.empty());
  REQUIRE(body.size() <= kErrorBytesMax);
  REQUIRE(IsPrintable(body));
}

// A view with no more rows than were asked for.
void CheckView(std::string_view text) {
  const auto view = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  REQUIRE(view.is_object());
  REQUIRE(view.contains("totals"));
  if (view.contains("rows")) REQUIRE(view["rows"].size() <= web::ListQuery::kLimitMax);
}

void CheckApi(const Response& response) {
  if (!response.stream) {
    REQUIRE(response.type == web::kJson);
    CheckView(response.body);
    return;
  }
  REQUIRE(response.type == "text/event-stream");
  const std::string event = response.stream().value();
  constexpr std::string_view kData = "\ndata: ";
  const size_t data = event.find(kData);
  REQUIRE(event.starts_with("id: "));
  REQUIRE(data != std::string::npos);
  REQUIRE(event.find('\r') == std::string::npos);
  REQUIRE(event.find('\n', data + 1) == event.size() - 2);
  REQUIRE(event.ends_with("\n\n"));
  CheckView(event.substr(data + kData.size()));
  REQUIRE(response.stream().value().empty());
}

// NAME{LABEL="VALUE",...} NUMBER
void CheckSample(std::string_view line) {
  const size_t name = std::min(line.find_first_of("{ "), line.size());
  REQUIRE(name > 0);
  line.remove_prefix(name);
  if (line.starts_with('{')) {
    do {
      const size_t begin = line.find("=\"");
      REQUIRE(begin != std::string_view::npos);
      line.remove_prefix(begin + 2);
      while (!line.starts_with('"')) {
        REQUIRE_FALSE(line.empty());
        line.remove_prefix(line.starts_with('\\') ? std::min<size_t>(2, line.size()) : 1);
      }
      line.remove_prefix(1);
    } while (line.starts_with(','));
    REQUIRE(line.starts_with('}'));
    line.remove_prefix(1);
  }
  REQUIRE(line.starts_with(' '));
  line.remove_prefix(1);
  REQUIRE_FALSE(line.empty());
  REQUIRE(line.find(' ') == std::string_view::npos);
}

void CheckMetrics(const Response& response) {
  REQUIRE(IsUtf8(response.body));
  REQUIRE(response.body.ends_with('\n'));
  const bool is_open = response.type.starts_with("application/openmetrics-text");
  REQUIRE(response.body.ends_with("# EOF\n") == is_open);
  for (std::string_view rest = response.body; !rest.empty();) {
    const std::string_view line = TakeTo('\n', &rest);
    if (!line.starts_with("# ")) CheckSample(line);
  }
}

void CheckServer(const Request& request, web::Api* api, const web::Snapshot& snapshot) {
  const web::Board board;
  Response response;
  if (request.path.starts_with("/api/")) {
    response = api->Handle(request, {});
    if (response.status == 200) return CheckApi(response);
  } else if (request.path == "/metrics") {
    response = web::AnswerMetrics(request, std::make_shared<web::Snapshot>(snapshot), board, {}, 0);
    if (response.status == 200) {
      response.body = testing::WholeBody(response);
      return CheckMetrics(response);
    }
  } else {
    response = web::ServeAsset(request);
    if (response.status == 200) return;
  }
  REQUIRE((response.status == 400 || response.status == 404));
  CheckError(response);
}

void CheckCommand(const Request& request, const web::CommandCenter& center) {
  const Response response = center.Handle(request);
  if (response.status != 200) {
    REQUIRE(response.status == 400);
    return CheckError(response);
  }
  REQUIRE(IsUtf8(response.body));
  if (request.path.ends_with("version")) return;
  if (!request.path.ends_with("metric")) {
    REQUIRE(ordered_json::accept(response.body));
    return;
  }
  for (std::string_view rest = response.body; !rest.empty();) {
    const std::string_view line = TakeTo('\n', &rest);
    REQUIRE(std::count(line.begin(), line.end(), '|') == 9);
  }
}

// What is taken for a name of this machine is that name, and a port.
void CheckHost(std::string_view header) {
  const std::string host = web::HostOf(header);
  if (host != "localhost" && host != "::1") return;
  const size_t end = header.starts_with('[') ? host.size() + 2 : host.size();
  const std::string_view port = header.substr(end);
  REQUIRE(port.find_first_not_of(":0123456789") == std::string_view::npos);
}

}  // namespace

void FuzzHttp(std::string_view input) {
  const std::string_view target = TakeTo('\n', &input);
  CheckHost(TakeTo('\n', &input));
  const Request request = RequestOf(target, TakeTo('\n', &input));
  const bool is_name = IsPrintable(input) && !input.empty();
  testing::FixedSource source(SnapshotWith(is_name ? std::string(input) : "name"));
  const web::Board board;
  web::Api api(&source, &board);
  CheckServer(request, &api, *source.snapshot);
  CheckCommand(request, web::CommandCenter({}, &source));
}

}  // namespace nowcalls::fuzz
