#include "web/api.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "web/json_text.h"
#include "web/views.h"

namespace nowcalls::web {
namespace {

constexpr size_t kFilterBytesMax = 256;
constexpr std::string_view kRoutes =
    "there are /api/flows, /api/flow?id=N&kind=flow|value, /api/clients, /api/client?id=N, "
    "/api/history, "
    "/api/server, /api/look?view=VIEW and /api/stream?view=VIEW";

struct OrderWord {
  std::string_view word;
  FlowOrder order;
};
constexpr OrderWord kOrders[] = {
    {"fullness", FlowOrder::kFullness}, {"now_calls", FlowOrder::kNowCalls},
    {"waiting", FlowOrder::kWaiting},   {"oldest", FlowOrder::kOldest},
    {"granted", FlowOrder::kGranted},   {"refused", FlowOrder::kRefused},
    {"held", FlowOrder::kHeld},         {"id", FlowOrder::kId},
};

Response BadNumber(const std::string& name, const std::string& range, const std::string& got) {
  return ErrorResponse(400, name + " must be " + range + ", got " + Quoted(got));
}

Response ParseList(const Request& request, ListQuery* query) {
  query->filter = request.Query("filter");
  query->name_space = request.Query("namespace");
  if (query->filter.size() > kFilterBytesMax || query->name_space.size() > kFilterBytesMax) {
    return ErrorResponse(400, "filter and namespace must be at most " +
                                  std::to_string(kFilterBytesMax) + " bytes each");
  }
  const std::string offset = request.Query("offset", "0");
  const auto begin = NumberOf<uint64_t>(offset);
  if (!begin.has_value() || *begin > UINT32_MAX) {
    return BadNumber("offset", "a number below 2^32", offset);
  }
  query->offset = *begin;
  const std::string limit = request.Query("limit", std::to_string(query->limit));
  const auto rows = NumberOf<uint64_t>(limit);
  if (!rows.has_value() || *rows == 0 || *rows > ListQuery::kLimitMax) {
    return BadNumber("limit", "1.." + std::to_string(ListQuery::kLimitMax), limit);
  }
  query->limit = *rows;
  return {};
}

Response ParseOrder(const Request& request, ListQuery* query) {
  const std::string word = request.Query("sort", "fullness");
  std::string words;
  for (const OrderWord& order : kOrders) {
    if (order.word == word) {
      query->order = order.order;
      return {};
    }
    words += (words.empty() ? "" : ", ") + std::string(order.word);
  }
  return ErrorResponse(400, "sort must be one of " + words + ", got " + Quoted(word));
}

Response JsonResponse(std::string body) {
  return {.status = 200,
          .type = std::string(kJson),
          .body = std::move(body),
          .headers = {{"Cache-Control", "no-store"}}};
}

// The view is a parameter.
bool NamesView(std::string_view path) { return path == "/api/stream" || path == "/api/look"; }

// Of a part. A list that is not whole says nothing of sessions behind its last.
bool MayBeSeen(const Snapshot& part, uint64_t session) {
  const auto detail = part.session_details.find(session);
  if (detail != part.session_details.end()) return detail->second.row.has_value();
  return part.has_sessions &&
         (part.more_sessions ||
          std::any_of(part.sessions.begin(), part.sessions.end(),
                      [&](const wire::SessionRow& row) { return row.session == session; }));
}

std::string EventOf(uint64_t number, const std::string& json) {
  return "id: " + std::to_string(number) + "\ndata: " + json + "\n\n";
}

}  // namespace

struct Api::Question {
  enum class View : uint8_t { kFlows, kFlow, kClients, kClient, kHistory, kServer };

  View view = View::kFlows;
  ListQuery list{};
  int64_t id = 0;  // Of a flow, or of a client's session.
  // Of a flow; none: the rule of the flow, or by value if there is only that.
  std::optional<FlowKind> kind{};
  std::string key{};    // The same for those that have the same parameters.
  std::string sight{};  // Who may see the answer (SightOf).
};

Response Api::Parse(const std::string& view, const Request& request, Question* question) {
  using View = Question::View;
  Response parsed;
  if (view == "flow" || view == "client") {
    question->view = view == "flow" ? View::kFlow : View::kClient;
    const std::string id = request.Query("id");
    const auto number = NumberOf<uint64_t>(id);
    if (!number.has_value() || *number == 0 || *number > INT64_MAX) {
      return BadNumber("id", "the number of a " + (view == "flow" ? view : "session"), id);
    }
    question->id = static_cast<int64_t>(*number);
    const std::string kind = view == "flow" ? request.Query("kind") : "";
    question->kind = FlowKindNamed(kind);
    if (!kind.empty() && !question->kind) {
      return ErrorResponse(400, "kind must be flow or value, got " + Quoted(kind));
    }
  } else if (view == "server") {
    question->view = View::kServer;
  } else if (view == "flows" || view == "clients" || view == "history") {
    question->view = view == "flows"     ? View::kFlows
                     : view == "clients" ? View::kClients
                                         : View::kHistory;
    parsed = ParseList(request, &question->list);
    if (parsed.status == 200 && view == "flows") parsed = ParseOrder(request, &question->list);
  } else {
    return ErrorResponse(NamesView(request.path) ? 400 : 404,
                         "there is no view " + Quoted(view) + "; " + std::string(kRoutes));
  }
  // Equal views and parameters have equal answers, which Answer shares.
  question->key = view;
  for (const auto& [name, value] : request.query) {
    question->key += '\0' + name + '\0' + value;
  }
  return parsed;
}

Response Api::Handle(const Request& request, const Viewer& reader) {
  constexpr std::string_view kPrefix = "/api/";
  const std::string route =
      request.path.starts_with(kPrefix) ? request.path.substr(kPrefix.size()) : "";
  const bool named = NamesView(request.path);
  Question question;
  Response parsed = Parse(named ? request.Query("view", "flows") : route, request, &question);
  if (parsed.status != 200) return parsed;
  // A stream watches with each event that it sends.
  if (route == "stream") return Stream(question, reader);
  // A new watch serves the next snapshot. This answer comes from the latest one and does not wait.
  question.sight = SightOf(reader.principal);
  const SnapshotPtr snapshot = LatestFor(reader.principal);
  Watch(*snapshot, question);
  if (route == "look") return Look(*snapshot, question, request);
  // With a problem the rows are old, so a row that is missing proves nothing.
  if (snapshot->problem.empty() && IsGone(*snapshot, question)) {
    const std::string id = std::to_string(question.id);
    return ErrorResponse(404, question.view == Question::View::kFlow
                                  ? "no flow " + id + ": it has neither a rule nor tokens"
                                  : "no session " + id + ": its client left, and holds nothing");
  }
  return JsonResponse(Answer(*snapshot, question) + "\n");
}

SnapshotPtr Api::LatestFor(const access::Principal& principal) {
  return visible_.For(principal, source_->latest());
}

FlowKey Api::FlowOf(const Snapshot& snapshot, const Question& question) {
  // Without `kind` the rule of the flow answers. The rule by value does only if it is alone.
  const FlowKey of_flow{FlowId{question.id}, FlowKind::kFlow};
  const bool only_by_value = FindFlow(snapshot, of_flow) == nullptr && HasOther(snapshot, of_flow);
  return {of_flow.id, question.kind.value_or(FlowKindIf(only_by_value))};
}

bool Api::IsGone(const Snapshot& snapshot, const Question& question) {
  if (question.view == Question::View::kFlow) {
    return FindFlow(snapshot, FlowOf(snapshot, question)) == nullptr;
  }
  if (question.view != Question::View::kClient) return false;
  // A session that no look has asked for may exist: it is not gone.
  const auto session = static_cast<uint64_t>(question.id);
  const auto found = snapshot.session_details.find(session);
  if (found != snapshot.session_details.end()) return !found->second.row.has_value();
  return snapshot.is_part && snapshot.has_sessions && !MayBeSeen(snapshot, session);
}

// There is room for a few watches of rows. Who sees a part only must not push out others' by rows
// that it may not see.
void Api::Watch(const Snapshot& snapshot, const Question& question) {
  switch (question.view) {
    case Question::View::kFlow: {
      const FlowKey flow = FlowOf(snapshot, question);
      if (!snapshot.is_part || FindFlow(snapshot, flow) != nullptr) source_->WatchFlow(flow);
      break;
    }
    case Question::View::kClient: WatchSession(snapshot, static_cast<uint64_t>(question.id)); break;
    case Question::View::kClients: source_->WatchSessions(); break;
    case Question::View::kHistory: source_->WatchHistory(); break;
    case Question::View::kFlows:
    case Question::View::kServer: break;
  }
}

void Api::WatchSession(const Snapshot& snapshot, uint64_t session) {
  if (snapshot.is_part) {
    // The list tells whose the session is.
    source_->WatchSessions();
    if (!MayBeSeen(snapshot, session)) return;
  }
  source_->WatchSession(session);
}

std::string Api::Answer(const Snapshot& snapshot, const Question& question) {
  const std::pair key(question.sight, question.key);
  const std::lock_guard lock(mutex_);
  // Ten pages that show the same cost as much as one. Each snapshot begins anew, which bounds what
  // is remembered.
  if (snapshot.number != remembered_of_) {
    remembered_.clear();
    remembered_of_ = snapshot.number;
  }
  const auto found = remembered_.find(key);
  if (found != remembered_.end()) return found->second;
  std::string answer = Write(snapshot, question);
  if (remembered_.size() < kRememberedMax) remembered_.emplace(key, answer);
  return answer;
}

std::string Api::Write(const Snapshot& snapshot, const Question& question) const {
  nlohmann::ordered_json json;
  switch (question.view) {
    case Question::View::kFlows: json = FlowsView(snapshot, question.list); break;
    case Question::View::kFlow: {
      const FlowKey flow = FlowOf(snapshot, question);
      // The series has the flows of all readers.
      const bool hidden = snapshot.is_part && FindFlow(snapshot, flow) == nullptr;
      json = FlowView(snapshot, flow,
                      hidden ? std::vector<Point>{} : source_->series().PointsOf(flow));
      break;
    }
    case Question::View::kClients: json = ClientsView(snapshot, question.list); break;
    case Question::View::kClient:
      json = ClientView(snapshot, static_cast<uint64_t>(question.id));
      // The list has told it without a look at the session itself.
      if (IsGone(snapshot, question)) json["asked"] = true;
      break;
    case Question::View::kHistory: json = HistoryView(snapshot, question.list); break;
    case Question::View::kServer:
      json = ServerView(snapshot, *board_, BoottimeMs(), source_->series().PointsOf({}));
      break;
  }
  if (const std::string standby = StandbyText(*board_); !standby.empty()) json["standby"] = standby;
  return JsonText(json);
}

Response Api::Look(const Snapshot& snapshot, const Question& question, const Request& request) {
  // A server that starts anew counts its snapshots from the beginning, at another time.
  const std::string etag =
      '"' + std::to_string(snapshot.unix_ms) + '-' + std::to_string(snapshot.number) + '"';
  const bool known = HasEtag(request, etag);
  Response response = JsonResponse(known ? "" : Answer(snapshot, question) + "\n");
  response.headers.emplace_back("ETag", etag);
  if (known) response.status = 304;
  return response;
}

Response Api::Stream(Question question, const Viewer& reader) {
  // The snapshot that was sent last; none yet.
  const auto sent = std::make_shared<std::optional<uint64_t>>();
  return {.status = 200,
          .type = "text/event-stream",
          .body = "retry: 1000\n\n",
          // A proxy that buffers or packs passes no event on.
          .headers = {{"Cache-Control", "no-store, no-transform"}, {"X-Accel-Buffering", "no"}},
          .stream = [this, question, reader, sent]() mutable -> std::optional<std::string> {
            // Also without an event, so that it ends soon.
            const auto principal = reader.again ? reader.again() : reader.principal;
            if (!principal) return std::nullopt;
            if (source_->latest()->number == *sent) return "";
            question.sight = SightOf(*principal);
            const SnapshotPtr latest = LatestFor(*principal);
            *sent = latest->number;
            Watch(*latest, question);
            return EventOf(latest->number, Answer(*latest, question));
          }};
}

}  // namespace nowcalls::web
