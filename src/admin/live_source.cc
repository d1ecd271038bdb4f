#include "admin/live_source.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "admin/paging.h"
#include "base/limits.h"
#include "core/rules/rule_json.h"
#include "wire/json.h"

namespace nowcalls::admin {
namespace {

using nlohmann::ordered_json;
using wire::FlowRow;
using wire::HistoryRow;
using wire::SessionRow;
using wire::TokenRow;

// Asks for page after page and shows their rows. `ask(cursor)` answers Result<Page<Row>>.
template <typename Row, typename Ask>
Status ShowPages(std::string method, Progress* progress, const RowSink<Row>& sink, Ask ask) {
  Paging paging(std::move(method));
  while (!paging.at_end()) {
    const Result<wire::Page<Row>> page = ask(paging.cursor());
    if (!page.ok()) return page.status();
    // The rows come out before the page is judged: what was read is shown even if it leads nowhere.
    for (const Row& row : page->rows) {
      progress->Count();
      NOWCALLS_RETURN_IF_ERROR(sink(row));
    }
    NOWCALLS_RETURN_IF_ERROR(paging.Take(page->rows.size(), page->next_cursor));
  }
  return {};
}

Status NotUnderstood(const std::string& what) {
  return Status::OutcomeUnknown("the server's answer to rules_list was not understood: " + what);
}

Result<RuleRow> RuleRowOf(const ordered_json& object) {
  if (!object.is_object()) return NotUnderstood("a row is no map");
  const auto name_space = object.find("namespace");
  if (name_space == object.end() || !name_space->is_string()) {
    return NotUnderstood("a row names no namespace");
  }
  Result<core::Rule> rule = core::ParseRule(object.dump());
  if (!rule.ok()) return NotUnderstood(rule.status().message());
  return RuleRow{name_space->get<std::string>(), *std::move(rule)};
}

Result<wire::Page<RuleRow>> DecodeRulePage(std::string_view result) {
  const Result<ordered_json> page = wire::JsonFromMessagePack(result);
  if (!page.ok()) return NotUnderstood(page.status().message());
  // A later server may have more members behind the cursor.
  if (!page->is_array() || page->size() < 2 || !(*page)[0].is_array()) {
    return NotUnderstood("it is no page of rows");
  }
  wire::Page<RuleRow> rules;
  for (const ordered_json& object : (*page)[0]) {
    Result<RuleRow> row = RuleRowOf(object);
    if (!row.ok()) return row.status();
    rules.rows.push_back(*std::move(row));
  }
  const ordered_json& cursor = (*page)[1];
  if (cursor.is_number_unsigned()) rules.next_cursor = cursor.get<uint64_t>();
  return rules;
}

}  // namespace

// The server's words are about a parameter of a method; the operator has named a flow.
Result<std::vector<FlowRow>> AskFlow(const FlowChoice& choice, client::BlockingClient* client) {
  Result<FlowRow> flow = client->Flow({choice.id.value, choice.kind});
  if (!flow.ok()) {
    // BAD_PARAMS has one cause here: neither a rule nor tokens.
    if (!flow.status().message().starts_with("BAD_PARAMS: ")) return flow.status();
    return NoSuchFlow(choice);
  }
  // A flow id with two rules answers the one of the flow, with the one by value in it.
  std::vector<FlowRow> rows = std::exchange(flow->by_value, {});
  rows.insert(rows.begin(), *std::move(flow));
  return rows;
}

Result<FlowChoice> LiveSource::FindFlow(const std::string& resource,
                                        const std::optional<FlowKind>& kind) {
  const Result<FlowRow> flow = client_->Flow({.kind = kind, .flow_name = resource});
  if (!flow.ok()) {
    const std::string& why = flow.status().message();
    if (why.starts_with("BAD_PARAMS: ") && why.ends_with(kNoRuleAndTokens)) {
      return NoSuchFlow(resource, kind);
    }
    return flow.status();
  }
  FlowChoice choice{FlowId{flow->flow_id}};
  if (flow->by_value.empty()) choice.kind = wire::KeyOf(*flow).kind;
  return choice;
}

Status LiveSource::Params(int64_t flow_id, size_t limit, bool by_minute,
                          const RowSink<wire::ParamRow>& sink) {
  // Asked first: its error names the flow, while that of params names a parameter.
  NOWCALLS_RETURN_IF_ERROR(AskFlow(FlowId{flow_id}, client_).status());
  const Result<std::vector<wire::ParamRow>> rows =
      client_->Params({flow_id, static_cast<uint32_t>(limit), by_minute});
  if (!rows.ok()) return rows.status();
  for (const wire::ParamRow& row : *rows) NOWCALLS_RETURN_IF_ERROR(sink(row));
  return {};
}

Status LiveSource::Waiters(const RowFilter& filter, size_t limit,
                           const RowSink<wire::WaiterRow>& sink) {
  wire::WaitersParams params{
      .flow_id = filter.flow_id, .limit = static_cast<uint32_t>(limit), .kind = filter.kind};
  if (filter.client_id.has_value()) params.client_id = *filter.client_id;
  params.instance = filter.instance;
  const Result<std::vector<wire::WaiterRow>> rows = client_->Waiters(params);
  if (!rows.ok()) return rows.status();
  for (const wire::WaiterRow& row : *rows) NOWCALLS_RETURN_IF_ERROR(sink(row));
  return {};
}

Result<int64_t> LiveSource::NowMs() {
  const Result<uint64_t> ledger_ms = client_->Ping();
  if (!ledger_ms.ok()) return ledger_ms.status();
  return static_cast<int64_t>(*ledger_ms);
}

Status LiveSource::ListTokens(const RowFilter& filter, size_t limit,
                              const RowSink<TokenRow>& sink) {
  // The server filters what the protocol can say, so few rows travel.
  wire::TokensParams params;
  params.flow_id = filter.flow_id;
  params.kind = filter.kind;
  if (filter.client_id.has_value()) params.client_id = *filter.client_id;
  params.instance = filter.instance;
  params.min_age_ms = filter.min_age_ms;
  // The protocol has no filter by namespace, so those rows are dropped here.
  const bool all_match = !filter.name_space.has_value();
  // The tokens of a client, of a kind and of both rules of a flow are found by looking at all.
  Paging paging = Paging::OfTokens(/*may_be_sparse=*/filter.client_id.has_value() ||
                                   filter.flow_id.has_value() || filter.kind.has_value());
  for (size_t left = limit; left > 0 && !paging.at_end();) {
    params.page.cursor = paging.cursor();
    params.page.limit =
        static_cast<uint32_t>(std::min<size_t>(all_match ? left : kListRowsMax, kListRowsMax));
    const Result<wire::Page<TokenRow>> page = client_->Tokens(params);
    if (!page.ok()) return page.status();
    for (const TokenRow& row : page->rows) {
      progress_->Count();
      // Rows beyond the limit were asked for only because some are dropped here.
      if (left == 0 || (!all_match && row.name_space != *filter.name_space)) continue;
      --left;
      NOWCALLS_RETURN_IF_ERROR(sink(row));
    }
    NOWCALLS_RETURN_IF_ERROR(paging.Take(page->rows.size(), page->next_cursor));
  }
  return {};
}

Status LiveSource::Tokens(const RowFilter& filter, const RowSink<TokenRow>& sink) {
  return ListTokens(filter, std::numeric_limits<size_t>::max(), sink);
}

Status LiveSource::OldestTokens(const RowFilter& filter, size_t limit,
                                const RowSink<TokenRow>& sink) {
  return ListTokens(filter, limit, sink);
}

Status LiveSource::Flows(const RowSink<FlowRow>& sink) {
  return ShowPages("flows", progress_, sink, [this](uint64_t cursor) {
    return client_->Flows({kListRowsMax, cursor});
  });
}

Result<std::vector<FlowRow>> LiveSource::Flow(const FlowChoice& choice) {
  return AskFlow(choice, client_);
}

Status LiveSource::Sessions(const RowSink<SessionRow>& sink) {
  return ShowPages("sessions", progress_, sink, [this](uint64_t cursor) {
    return client_->Sessions({kListRowsMax, cursor});
  });
}

// The protocol has no filters here: the whole history is a few pages, the newest first.
Status LiveSource::History(const HistoryFilter& filter, size_t limit,
                           const RowSink<HistoryRow>& sink) {
  int64_t now_ms = 0;
  if (filter.NeedsNow()) {
    const Result<int64_t> now = NowMs();
    if (!now.ok()) return now.status();
    now_ms = *now;
  }
  Paging paging("history");
  for (size_t left = limit; left > 0 && !paging.at_end();) {
    const Result<wire::Page<HistoryRow>> page = client_->History({kListRowsMax, paging.cursor()});
    if (!page.ok()) return page.status();
    for (const HistoryRow& row : page->rows) {
      progress_->Count();
      // The newest come first: all behind this one are too old as well.
      if (filter.IsTooOld(row, now_ms)) return {};
      if (left == 0 || !filter.Matches(row, now_ms)) continue;
      --left;
      NOWCALLS_RETURN_IF_ERROR(sink(row));
    }
    NOWCALLS_RETURN_IF_ERROR(paging.Take(page->rows.size(), page->next_cursor));
  }
  return {};
}

Status LiveSource::Rules(const std::optional<std::string>& name_space,
                         const RowSink<RuleRow>& sink) {
  return ShowPages("rules_list", progress_, sink,
                   [&](uint64_t cursor) -> Result<wire::Page<RuleRow>> {
                     wire::RulesListParams params;
                     if (name_space.has_value()) params.name_space = *name_space;
                     params.page = {kListRowsMax, cursor};
                     const Result<std::string_view> result = client_->RulesList(params);
                     if (!result.ok()) return result.status();
                     return DecodeRulePage(*result);
                   });
}

// The server lists them in no particular order; there are few, so they are sorted here.
Status LiveSource::Namespaces(const RowSink<wire::NamespaceRow>& sink) {
  std::map<std::string, wire::NamespaceRow> rows;
  const RowSink<wire::NamespaceRow> collect = [&rows](const wire::NamespaceRow& row) {
    rows[row.name_space] = row;
    return Status::Ok();
  };
  NOWCALLS_RETURN_IF_ERROR(ShowPages("namespaces", progress_, collect, [this](uint64_t cursor) {
    return client_->Namespaces({kListRowsMax, cursor});
  }));
  for (const auto& [name_space, row] : rows) NOWCALLS_RETURN_IF_ERROR(sink(row));
  return {};
}

}  // namespace nowcalls::admin
