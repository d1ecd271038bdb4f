#include "admin/offline_source.h"

#include <algorithm>
#include <deque>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "admin/oldest_heap.h"
#include "core/rules/param_items.h"
#include "core/rules/rule_json.h"
#include "core/rules/stand_in_rule.h"

namespace nowcalls::admin {
namespace {

using wire::FlowRow;
using wire::HistoryRow;
using wire::SessionRow;
using wire::TokenRow;

Result<RuleRow> RuleRowOf(const ledger::RuleEntry& entry) {
  Result<core::Rule> rule = core::ParseRule(entry.json);
  if (!rule.ok()) {
    return Status::Corruption("rules: namespace " + entry.name_space + ", flow " +
                              std::to_string(entry.flow.value) + ": " + rule.status().message());
  }
  return RuleRow{entry.name_space, *std::move(rule), entry.state == ledger::RuleState::kRemoved,
                 entry.state == ledger::RuleState::kDraining};
}

// `row` is reused from token to token, so that its strings keep their memory.
void FillTokenRow(const ledger::Token& token, const ledger::Session* session, TokenRow* row) {
  row->token_id = token.key.id.value;
  row->flow_id = token.flow.value;
  row->session = token.session.value;
  row->count = token.count;
  row->fence = token.fence.value;
  row->issued_ms = token.issued_ms;
  row->deadline_ms = token.key.deadline_ms;
  constexpr std::string_view kUnknown;
  row->param = token.param;
  row->name_space = session == nullptr ? kUnknown : session->name_space;
  row->client_id = session == nullptr ? kUnknown : session->client_id;
  row->instance.reset();
  if (session != nullptr && session->instance != 0) row->instance = session->instance;
}

Status OrphanToken(const ledger::Token& token) {
  return Status::Corruption(std::string(ledger::FamilyName(token.key.family)) + ": token " +
                            std::to_string(token.key.id.value) + " is of session " +
                            std::to_string(token.session.value) + ", which is not in the ledger");
}

void AddRule(const RuleRow& rule, FlowRow* row) {
  row->name_space = rule.name_space;
  row->resource = rule.rule.resource;
  row->removed = rule.removed;
  row->draining = rule.draining;
  if (!rule.removed && !rule.rule.param.has_value() &&
      rule.rule.threshold_type == core::ThresholdType::kGlobal) {
    row->level = static_cast<uint64_t>(core::WholeCalls(rule.rule.count));
  }
}

// Tokens of formats without kinds may have a rule of the other kind only, which says whose they
// are.
void AddStandIns(std::map<FlowKey, FlowRow>* rows) {
  for (auto& [key, row] : *rows) {
    const auto other = rows->find({key.id, OtherThan(key.kind)});
    if (!row.resource.empty() || other == rows->end()) continue;
    row.name_space = other->second.name_space;
    row.resource = other->second.resource;
    row.removed = true;
  }
}

// Of one value, if the ledger tells.
std::optional<uint64_t> LevelOf(const RuleRow& rule, const ParamValue& value) {
  const bool known = !rule.removed && rule.rule.param.has_value() &&
                     rule.rule.threshold_type == core::ThresholdType::kGlobal;
  if (!known) return std::nullopt;
  return static_cast<uint64_t>(core::WholeCalls(core::CountOf(rule.rule, value.view())));
}

struct TokenSums {
  uint64_t tokens = 0;
  uint64_t now_calls = 0;
};

SessionRow SessionRowOf(const ledger::Session& session, const TokenSums& sums) {
  SessionRow row;
  row.session = session.id.value;
  row.name_space = session.name_space;
  row.client_id = session.client_id;
  row.kind = session.kind == ledger::SessionKind::kNamed ? "named" : "connection";
  row.tokens = sums.tokens;
  row.now_calls = sums.now_calls;
  row.opened_ms = session.opened_ms;
  if (session.instance != 0) row.instance = session.instance;
  return row;
}

HistoryRow HistoryRowOf(const ledger::HistoryEntry& entry) {
  HistoryRow row;
  row.sequence = entry.sequence;
  row.ended_ms = entry.ended_ms;
  row.reason = EndReasonName(entry.reason);
  row.token_id = entry.token_id.value;
  row.flow_id = entry.flow.value;
  row.name_space = entry.name_space;
  row.client_id = entry.client_id;
  row.session = entry.session.value;
  row.count = entry.count;
  row.fence = entry.fence.value;
  row.issued_ms = entry.issued_ms;
  row.held_ms = entry.ended_ms - entry.issued_ms;
  row.note = entry.note;
  row.param = entry.param;
  if (entry.instance != 0) row.instance = entry.instance;
  if (entry.outcome != CallOutcome::kOk) row.outcome = CallOutcomeName(entry.outcome);
  return row;
}

// As the server says it. `rows` are by number.
Status SeveralFlows(const std::string& resource, const std::vector<const FlowRow*>& rows) {
  constexpr size_t kShownMax = 4;
  std::string numbers;
  for (size_t i = 0; i < std::min(rows.size(), kShownMax); ++i) {
    numbers += (i == 0 ? "" : ", ") + std::to_string(rows[i]->flow_id) +
               (wire::KeyOf(*rows[i]).kind == FlowKind::kValue ? " by value" : "") +
               " of namespace " + rows[i]->name_space;
  }
  if (rows.size() > kShownMax) numbers += " and more";
  return Status::InvalidArgument("flow " + Quoted(resource) +
                                 " is the resource of several rules: " + numbers +
                                 "; ask by number");
}

}  // namespace

Result<int64_t> OfflineSource::NowMs() {
  LedgerWalk walk(LedgerWalk::Until::kSeal, progress_);
  NOWCALLS_RETURN_IF_ERROR(walk.Run(store_));
  return walk.NowMs(machine_);
}

Status OfflineSource::Tokens(const RowFilter& filter, const RowSink<TokenRow>& sink) {
  TokenRow row;
  std::optional<int64_t> now_ms;
  LedgerWalk walk(LedgerWalk::Until::kEnd, progress_, [&](const ledger::Token& token) {
    // The clock and the seal come before the tokens in the walk.
    if (!now_ms.has_value()) now_ms = walk.NowMs(machine_);
    const ledger::Session* session = walk.FindSession(token.session);
    // Damage, but the token counts: it is shown without a client.
    if (session == nullptr) walk.AddDamage(OrphanToken(token));
    FillTokenRow(token, session, &row);
    return filter.Matches(row, *now_ms) ? sink(row) : Status::Ok();
  });
  NOWCALLS_RETURN_IF_ERROR(walk.Run(store_));
  return walk.damage();
}

Status OfflineSource::OldestTokens(const RowFilter& filter, size_t limit,
                                   const RowSink<TokenRow>& sink) {
  // The ledger has tokens by deadline, not by age, so all are looked at and the oldest held.
  OldestHeap oldest(limit);
  Status status = Tokens(filter, [&oldest](const TokenRow& row) {
    oldest.Offer(row);
    return Status::Ok();
  });
  progress_->Erase();
  for (const TokenRow& row : oldest.Take()) NOWCALLS_RETURN_IF_ERROR(sink(row));
  return status;
}

// `damage` is what is wrong beside the sums; what is wrong with them is returned.
Status OfflineSource::CollectFlows(FlowRows* rows, Status* damage) {
  LedgerWalk walk(LedgerWalk::Until::kEnd, progress_, [rows](const ledger::Token& token) {
    FlowRow& row = (*rows)[{token.flow, FlowKindIf(token.param.has_value())}];
    row.tokens += 1;
    row.now_calls += token.count;
    row.oldest_issued_ms = std::min(row.oldest_issued_ms.value_or(INT64_MAX), token.issued_ms);
    return Status::Ok();
  });
  NOWCALLS_RETURN_IF_ERROR(walk.Run(store_));
  // A rule names the row of its tokens, or makes a row of its own. One that does not parse is
  // damage, and its tokens keep a row without a name.
  for (const ledger::RuleEntry& entry : walk.rules()) {
    const Result<RuleRow> rule = RuleRowOf(entry);
    if (rule.ok()) {
      AddRule(*rule, &(*rows)[{entry.flow, rule->rule.key().kind}]);
    } else {
      walk.AddDamage(rule.status());
    }
  }
  // Before formats with kinds a flow id had one rule, which counts for tokens of both.
  if (walk.format_version() < core::kFirstFormatWithKinds) AddStandIns(rows);
  for (auto& [key, row] : *rows) {
    row.flow_id = key.id.value;
    row.kind = FlowKindName(key.kind);
  }
  // Sums that lack something look like others.
  if (!walk.whole()) return walk.damage();
  *damage = walk.damage();
  return {};
}

Status OfflineSource::Flows(const RowSink<FlowRow>& sink) {
  FlowRows rows;
  Status damage;
  NOWCALLS_RETURN_IF_ERROR(CollectFlows(&rows, &damage));
  progress_->Erase();
  for (const auto& [key, row] : rows) NOWCALLS_RETURN_IF_ERROR(sink(row));
  return damage;
}

Result<std::vector<FlowRow>> OfflineSource::Flow(const FlowChoice& choice) {
  FlowRows rows;
  Status damage;
  NOWCALLS_RETURN_IF_ERROR(CollectFlows(&rows, &damage));
  NOWCALLS_RETURN_IF_ERROR(damage);
  std::vector<FlowRow> chosen;
  for (const FlowKind kind : kFlowKinds) {
    const auto found = rows.find({choice.id, kind});
    if (found == rows.end() || choice.kind.value_or(kind) != kind) continue;
    chosen.push_back(found->second);
  }
  if (chosen.empty()) return NoSuchFlow(choice);
  return chosen;
}

Result<FlowChoice> OfflineSource::FindFlow(const std::string& resource,
                                           const std::optional<FlowKind>& kind) {
  FlowRows rows;
  Status damage;
  NOWCALLS_RETURN_IF_ERROR(CollectFlows(&rows, &damage));
  NOWCALLS_RETURN_IF_ERROR(damage);
  std::vector<const FlowRow*> found;
  for (const bool removed : {false, true}) {
    for (const auto& [key, row] : rows) {
      const bool is_it =
          row.resource == resource && row.removed == removed && kind.value_or(key.kind) == key.kind;
      if (is_it) found.push_back(&row);
    }
    if (!found.empty()) break;
  }
  if (found.empty()) return NoSuchFlow(resource, kind);
  if (found.front()->flow_id != found.back()->flow_id) return SeveralFlows(resource, found);
  FlowChoice choice{FlowId{found.front()->flow_id}};
  if (found.size() == 1) choice.kind = wire::KeyOf(*found.front()).kind;
  return choice;
}

Status OfflineSource::Waiters(const RowFilter& /*filter*/, size_t /*limit*/,
                              const RowSink<wire::WaiterRow>& /*sink*/) {
  return Status::FailedPrecondition("a ledger has no waiters: ask the running server");
}

Status OfflineSource::Params(int64_t flow_id, size_t limit, bool /*by_minute*/,
                             const RowSink<wire::ParamRow>& sink) {
  // Values by type and bytes: 7 as an int and as a long are two values.
  std::map<std::pair<ParamType, std::string>, TokenSums> sums;
  bool found = false;
  LedgerWalk walk(LedgerWalk::Until::kEnd, progress_, [&](const ledger::Token& token) {
    if (token.flow.value != flow_id) return Status::Ok();
    found = true;
    if (token.param.has_value()) {
      TokenSums& value = sums[{token.param->type, token.param->bytes}];
      value.tokens += 1;
      value.now_calls += token.count;
    }
    return Status::Ok();
  });
  NOWCALLS_RETURN_IF_ERROR(walk.Run(store_));
  if (!walk.whole()) return walk.damage();
  std::optional<RuleRow> rule;
  for (const ledger::RuleEntry& entry : walk.rules()) {
    if (entry.flow.value != flow_id) continue;
    found = true;
    Result<RuleRow> parsed = RuleRowOf(entry);
    if (parsed.ok() && parsed->rule.param.has_value()) rule = *std::move(parsed);
  }
  // Neither a token nor a rule was met.
  if (!found) return NoSuchFlow(FlowId{flow_id});
  std::vector<wire::ParamRow> rows;
  for (const auto& [value, sum] : sums) {
    rows.push_back(
        {.param = {value.first, value.second}, .now_calls = sum.now_calls, .tokens = sum.tokens});
    if (rule.has_value()) rows.back().level = LevelOf(*rule, rows.back().param);
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.now_calls > b.now_calls; });
  progress_->Erase();
  if (rows.size() > limit) rows.resize(limit);
  for (const wire::ParamRow& row : rows) NOWCALLS_RETURN_IF_ERROR(sink(row));
  return walk.damage();
}

Status OfflineSource::Sessions(const RowSink<SessionRow>& sink) {
  // Sessions come before tokens, but their sums are known only at the end.
  absl::flat_hash_map<uint64_t, TokenSums> sums;
  LedgerWalk walk(LedgerWalk::Until::kEnd, progress_, [&](const ledger::Token& token) {
    if (walk.FindSession(token.session) == nullptr) walk.AddDamage(OrphanToken(token));
    TokenSums& session = sums[token.session.value];
    session.tokens += 1;
    session.now_calls += token.count;
    return Status::Ok();
  });
  NOWCALLS_RETURN_IF_ERROR(walk.Run(store_));
  if (!walk.whole()) return walk.damage();
  progress_->Erase();
  std::vector<uint64_t> ids;
  for (const auto& [id, session] : walk.sessions()) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const uint64_t id : ids) {
    NOWCALLS_RETURN_IF_ERROR(sink(SessionRowOf(walk.sessions().at(id), sums[id])));
  }
  return walk.damage();
}

// The ledger has the oldest first, so the last ones that match are held until its end.
Status OfflineSource::History(const HistoryFilter& filter, size_t limit,
                              const RowSink<HistoryRow>& sink) {
  std::deque<HistoryRow> newest;
  std::optional<int64_t> now_ms;
  LedgerWalk walk(LedgerWalk::Until::kHistory, progress_);
  walk.set_history([&](const ledger::HistoryEntry& entry) {
    progress_->Count();
    HistoryRow row = HistoryRowOf(entry);
    if (!now_ms.has_value()) now_ms = walk.NowMs(machine_);
    if (!filter.Matches(row, *now_ms)) return Status::Ok();
    // At most `limit` rows are held; the oldest makes room.
    newest.push_back(std::move(row));
    if (newest.size() > limit) newest.pop_front();
    return Status::Ok();
  });
  NOWCALLS_RETURN_IF_ERROR(walk.Run(store_));
  progress_->Erase();
  for (; !newest.empty(); newest.pop_back()) NOWCALLS_RETURN_IF_ERROR(sink(newest.back()));
  return walk.damage();
}

Status OfflineSource::Rules(const std::optional<std::string>& name_space,
                            const RowSink<RuleRow>& sink) {
  LedgerWalk walk(LedgerWalk::Until::kRules, progress_);
  NOWCALLS_RETURN_IF_ERROR(walk.Run(store_));
  std::vector<RuleRow> rows;
  for (const ledger::RuleEntry& entry : walk.rules()) {
    if (name_space.has_value() && entry.name_space != *name_space) continue;
    Result<RuleRow> rule = RuleRowOf(entry);
    if (!rule.ok()) {
      walk.AddDamage(rule.status());
    } else if (!rule->removed) {
      rows.push_back(*std::move(rule));
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RuleRow& a, const RuleRow& b) { return a.rule.key() < b.rule.key(); });
  for (const RuleRow& row : rows) NOWCALLS_RETURN_IF_ERROR(sink(row));
  return walk.damage();
}

}  // namespace nowcalls::admin
