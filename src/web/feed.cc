#include "web/feed.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/background_thread.h"
#include "base/clock.h"
#include "base/limits.h"
#include "wire/flow_cursor.h"
#include "wire/json.h"

namespace nowcalls::web {
namespace {

using client::BlockingClient;

// The first flow behind the key.
template <typename Iterator>
Iterator Behind(Iterator begin, Iterator end, const FlowKey& key) {
  return std::upper_bound(begin, end, key, [](const FlowKey& last, const FlowLook& flow) {
    return last < wire::KeyOf(flow.row);
  });
}

// Puts a page in the place of the flows that it covers: those behind `from` up to its last one, or
// all that follow `from` if it is the last page.
void Renew(std::vector<FlowLook>* flows, wire::Page<wire::FlowRow> page, uint64_t from,
           int64_t now_ms) {
  // The part of the list that the page covers. Rows and flows are both in the order of their keys.
  const auto begin = Behind(flows->begin(), flows->end(), wire::CoveredBy(from));
  const auto end = page.next_cursor == 0
                       ? flows->end()
                       : Behind(begin, flows->end(), wire::CoveredBy(page.next_cursor));
  // One pass over both finds the earlier look of each row, which LookOf needs for its sums.
  std::vector<FlowLook> fresh;
  fresh.reserve(page.rows.size());
  auto before = begin;
  for (wire::FlowRow& row : page.rows) {
    while (before != end && wire::KeyOf(before->row) < wire::KeyOf(row)) ++before;
    const bool known = before != end && wire::KeyOf(before->row) == wire::KeyOf(row);
    fresh.push_back(LookOf(std::move(row), known ? &*before : nullptr, now_ms));
  }
  // Nearly always as many flows as before: nothing behind them moves.
  if (std::distance(begin, end) == static_cast<ptrdiff_t>(fresh.size())) {
    std::move(fresh.begin(), fresh.end(), begin);
    return;
  }
  const auto place = flows->erase(begin, end);
  flows->insert(place, std::make_move_iterator(fresh.begin()),
                std::make_move_iterator(fresh.end()));
}

}  // namespace

Feed::Feed(std::function<void()> on_new)
    : on_new_(std::move(on_new)), latest_([] {
        auto none = std::make_shared<Snapshot>();
        none->unix_ms = WallMs();
        none->problem = "the server does not serve yet";
        return none;
      }()) {}

void Feed::Stop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Feed::Start(const std::vector<std::string>& addresses) {
  // On any CPU of the process, and behind the token loop: a look is work that can wait.
  thread_ = std::thread([this, addresses] {
    UseCpusOfProcess();
    StepBack();
    Run(addresses);
  });
}

SnapshotPtr Feed::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

// With the mutex.
void Feed::Watch(int64_t* watched_ms) {
  // A watch that is new, or was given up, is not in the latest snapshot: it hurries the next look.
  const int64_t now_ms = BoottimeMs();
  if (*watched_ms < now_ms - kWatchMs || *watched_ms == 0) {
    hurries_ = true;
    changed_.notify_all();
  }
  *watched_ms = now_ms;
}

template <typename Id>
void Feed::WatchOne(Id id, WatchedMs<Id>* watched_ms) {
  const std::lock_guard lock(mutex_);
  if (watched_ms->size() < kWatchedMax || watched_ms->contains(id)) {
    return Watch(&(*watched_ms)[id]);
  }
  // Every watch is full. The next scheduled look has the newcomer. If it hurried, pages that take
  // each other's room would cause five looks a second.
  watched_ms->erase(
      std::min_element(watched_ms->begin(), watched_ms->end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; }));
  (*watched_ms)[id] = BoottimeMs();
}

void Feed::WatchFlow(const FlowKey& flow) { WatchOne(flow, &flows_watched_ms_); }

void Feed::WatchSession(uint64_t session) { WatchOne(session, &session_details_watched_ms_); }

void Feed::WatchSessions() {
  const std::lock_guard lock(mutex_);
  Watch(&sessions_watched_ms_);
}

void Feed::WatchHistory() {
  const std::lock_guard lock(mutex_);
  Watch(&history_watched_ms_);
}

void Feed::WatchRules() {
  const std::lock_guard lock(mutex_);
  Watch(&rules_watched_ms_);
}

Feed::Watched Feed::TakeWatched() {
  const int64_t since_ms = BoottimeMs() - kWatchMs;
  const std::lock_guard lock(mutex_);
  Watched watched;
  const auto take = [&](auto* watched_ms, auto* ids) {
    // Watches that nobody renewed for kWatchMs end here.
    std::erase_if(*watched_ms, [&](const auto& one) { return one.second < since_ms; });
    for (const auto& [id, when_ms] : *watched_ms) ids->push_back(id);
  };
  take(&flows_watched_ms_, &watched.flows);
  take(&session_details_watched_ms_, &watched.session_details);
  watched.sessions = sessions_watched_ms_ >= since_ms && sessions_watched_ms_ != 0;
  watched.history = history_watched_ms_ >= since_ms && history_watched_ms_ != 0;
  watched.rules = rules_watched_ms_ >= since_ms && rules_watched_ms_ != 0;
  return watched;
}

bool Feed::Sleep(int64_t looked_ms) {
  const auto until = [this](int64_t due_ms, auto&& early) {
    std::unique_lock lock(mutex_);
    const auto left = std::chrono::milliseconds(std::max<int64_t>(0, due_ms - BoottimeMs()));
    changed_.wait_for(lock, left, early);
    return !ending_;
  };
  // First the least distance of two looks, which only the end cuts short.
  if (!until(looked_ms + kLeastEveryMs, [this] { return ending_; })) return false;
  // Then to the end of the second, so that the looks of a second cover that second. A hurry cuts it
  // short.
  const int64_t second_ends_ms = BoottimeMs() + kEveryMs - WallMs() % kEveryMs;
  return until(second_ends_ms, [this] { return ending_ || std::exchange(hurries_, false); });
}

// The thread.

void Feed::Run(const std::vector<std::string>& addresses) {
  std::unique_ptr<BlockingClient> client;
  int64_t looked_ms = 0;
  do {
    looked_ms = BoottimeMs();
    // A copy of the latest: flows that this look does not renew stay as they were.
    auto next = std::make_shared<Snapshot>(*latest());
    ++next->number;
    const int64_t unix_ms = WallMs();
    next->span_ms = std::max<int64_t>(1, unix_ms - next->unix_ms);
    next->unix_ms = unix_ms;
    next->server = addresses.back();
    // One connection for all looks; the server keeps some in reserve for this machine. A lost one
    // is replaced by the next look.
    Status status;
    if (client == nullptr) {
      // The server's socket may have been removed; its addresses still answer.
      for (const std::string& address : addresses) {
        auto connected = BlockingClient::Connect(address, kAskMsMax);
        status = connected.status();
        if (!connected.ok()) continue;
        client = *std::move(connected);
        break;
      }
    }
    if (client != nullptr) status = Look(client.get(), next.get());
    // A call without an answer has closed the connection. A server that started anew may have other
    // flows, so all are read anew.
    if (!status.ok()) {
      client.reset();
      flows_cursor_ = 0;
      read_once_ = false;
    }
    // A failure is published, too: pages show the rows of before with the problem. The series gets
    // no point, since nothing was counted.
    next->problem = status.ok() ? "" : status.message();
    if (status.ok()) series_.Add(*next);
    Publish(std::move(next));
  } while (Sleep(looked_ms));
}

void Feed::Publish(std::shared_ptr<Snapshot> next) {
  {
    const std::lock_guard lock(mutex_);
    latest_ = std::move(next);
  }
  // Without the mutex: readers that wake ask for the latest at once.
  on_new_();
}

Status Feed::Look(BlockingClient* client, Snapshot* next) {
  // The clock comes first: the ages of all rows of this look count from it.
  const Result<uint64_t> ledger_ms = client->Ping();
  if (!ledger_ms.ok()) return ledger_ms.status();
  next->ledger_ms = static_cast<int64_t>(*ledger_ms);
  const Result<std::string_view> info = client->Info();
  if (!info.ok()) return info.status();
  Result<nlohmann::ordered_json> figures = wire::JsonFromMessagePack(*info);
  if (!figures.ok()) return figures.status();
  next->info = std::make_shared<const nlohmann::ordered_json>(*std::move(figures));
  NOWCALLS_RETURN_IF_ERROR(LookAtFlows(client, next));
  NOWCALLS_RETURN_IF_ERROR(LookAtNamespaces(client, next));
  return LookAtWatched(client, next);
}

Status Feed::LookAtFlows(BlockingClient* client, Snapshot* next) {
  const int64_t now_ms = BoottimeMs();
  // `came` is what this look adds. A flow that is watched may be renewed twice in it.
  for (FlowLook& look : next->flows) look.came = {};
  // Pages go on where the look before stopped. A new connection reads all flows once.
  for (size_t rows = 0; !read_once_ || rows < Snapshot::kFlowsPerLookMax;) {
    auto page = client->Flows({.limit = kListRowsMax, .cursor = flows_cursor_});
    if (!page.ok()) return page.status();
    rows += page->rows.size();
    const uint64_t from = std::exchange(flows_cursor_, page->next_cursor);
    Renew(&next->flows, *std::move(page), from, now_ms);
    if (flows_cursor_ == 0) break;
  }
  read_once_ = true;
  return Status::Ok();
}

Status Feed::LookAtNamespaces(BlockingClient* client, Snapshot* next) {
  std::vector<wire::NamespaceRow> rows;
  uint64_t cursor = 0;
  do {
    auto page = client->Namespaces({.limit = kListRowsMax, .cursor = cursor});
    if (!page.ok()) return page.status();
    std::move(page->rows.begin(), page->rows.end(), std::back_inserter(rows));
    cursor = page->next_cursor;
  } while (cursor != 0);
  next->namespaces = std::move(rows);
  return Status::Ok();
}

Status Feed::LookAtWatched(BlockingClient* client, Snapshot* next) {
  const Watched watched = TakeWatched();
  // Details are of this look alone: a flow that nobody watches has none.
  next->details.clear();
  for (const FlowKey& flow : watched.flows) {
    NOWCALLS_RETURN_IF_ERROR(LookAtFlow(client, flow, next));
  }
  next->session_details.clear();
  for (const uint64_t session : watched.session_details) {
    NOWCALLS_RETURN_IF_ERROR(LookAtSession(client, session, next));
  }
  return LookAtLists(client, watched, next);
}

Status Feed::LookAtLists(BlockingClient* client, const Watched& watched, Snapshot* next) {
  next->sessions.clear();
  next->has_sessions = watched.sessions;
  if (watched.sessions) {
    auto page = client->Sessions({.limit = Snapshot::kListRowsMax});
    if (!page.ok()) return page.status();
    next->sessions = std::move(page->rows);
    next->more_sessions = page->next_cursor != 0;
  }
  next->history.clear();
  next->has_history = watched.history;
  if (watched.history) {
    auto page = client->History({.limit = Snapshot::kListRowsMax});
    if (!page.ok()) return page.status();
    next->history = std::move(page->rows);
  }
  // Not old rules: a reader who comes back is told to wait until they are read.
  if (!watched.rules) {
    next->rules = nullptr;
    return Status::Ok();
  }
  return LookAtRules(client, next);
}

Status Feed::LookAtRules(BlockingClient* client, Snapshot* next) {
  const int64_t now_ms = BoottimeMs();
  if (next->rules != nullptr && now_ms < rules_read_ms_ + kRulesEveryMs) return Status::Ok();
  auto rules = nlohmann::ordered_json::array();
  size_t bytes = 0;
  uint64_t cursor = 0;
  do {
    const auto answer =
        client->RulesList({.name_space = {}, .page = {.limit = kListRowsMax, .cursor = cursor}});
    if (!answer.ok()) return answer.status();
    // Counted behind each page, so the last may pass the bound by a page.
    bytes += answer->size();
    auto page = wire::JsonFromMessagePack(*answer);
    if (!page.ok()) return page.status();
    if (!page->is_array() || page->size() != 2 || !page->front().is_array()) {
      return Status::OutcomeUnknown("the answer to rules_list is no page of rows");
    }
    for (auto& rule : page->front()) rules.push_back(std::move(rule));
    cursor = page->back().is_number_unsigned() ? page->back().get<uint64_t>() : 0;
  } while (cursor != 0 && rules.size() < Snapshot::kRulesMax && bytes < Snapshot::kRulesBytesMax);
  next->rules = std::make_shared<const nlohmann::ordered_json>(std::move(rules));
  rules_read_ms_ = now_ms;
  return Status::Ok();
}

Status Feed::LookAtFlow(BlockingClient* client, const FlowKey& flow, Snapshot* next) {
  FlowDetail* const detail = &next->details[flow];
  const int64_t flow_id = flow.id.value;
  const auto listed = std::lower_bound(
      next->flows.begin(), next->flows.end(), flow,
      [](const FlowLook& look, const FlowKey& key) { return wire::KeyOf(look.row) < key; });
  const bool is_old = listed != next->flows.end() && wire::KeyOf(listed->row) == flow &&
                      listed->looked_ms < BoottimeMs() - kLeastEveryMs;
  // With many flows the row is older than this look: renew it, or its count would contradict the
  // tokens below. A flow without rule and tokens is an error, and stays until its page is read.
  if (is_old) {
    auto row = client->Flow({flow_id, flow.kind});
    if (row.ok()) *listed = LookOf(*std::move(row), &*listed, BoottimeMs());
  }
  auto tokens = client->Tokens(
      {.flow_id = flow_id, .page = {.limit = Snapshot::kDetailRowsMax}, .kind = flow.kind});
  if (!tokens.ok()) return tokens.status();
  detail->tokens = std::move(tokens->rows);
  detail->more_tokens = tokens->next_cursor != 0;
  auto waiters =
      client->Waiters({.flow_id = flow_id, .limit = Snapshot::kDetailRowsMax, .kind = flow.kind});
  if (!waiters.ok()) return waiters.status();
  detail->waiters = *std::move(waiters);
  if (flow.kind == FlowKind::kFlow) return Status::Ok();
  auto params = client->Params({.flow_id = flow_id, .limit = Snapshot::kDetailRowsMax});
  // kInvalidArgument: the flow has neither a rule by value nor tokens of one. It has no values
  // then.
  if (params.ok()) {
    detail->params = *std::move(params);
  } else if (params.status().code() != StatusCode::kInvalidArgument) {
    return params.status();
  }
  return Status::Ok();
}

Status Feed::LookAtSession(BlockingClient* client, uint64_t session, Snapshot* next) {
  SessionDetail* const detail = &next->session_details[session];
  // The listing begins behind its cursor. Another row first: this session is gone, and has no row.
  auto found = client->Sessions({.limit = 1, .cursor = session - 1});
  if (!found.ok()) return found.status();
  if (found->rows.empty() || found->rows.front().session != session) return Status::Ok();
  detail->row = std::move(found->rows.front());
  auto tokens = client->Tokens({.page = {.limit = Snapshot::kDetailRowsMax}, .session = session});
  if (!tokens.ok()) return tokens.status();
  detail->tokens = std::move(tokens->rows);
  detail->more_tokens = tokens->next_cursor != 0;
  if (detail->row->waiters.value_or(0) == 0) return Status::Ok();
  // No filter of the listing takes a session, so its name and instance choose.
  auto waiters = client->Waiters({.client_id = detail->row->client_id,
                                  .limit = Snapshot::kDetailRowsMax,
                                  .instance = detail->row->instance.value_or(0)});
  if (!waiters.ok()) return waiters.status();
  // Other namespaces may have a client of this name.
  std::erase_if(*waiters, [&](const wire::WaiterRow& row) {
    return row.name_space != detail->row->name_space;
  });
  detail->waiters = *std::move(waiters);
  return Status::Ok();
}

}  // namespace nowcalls::web
