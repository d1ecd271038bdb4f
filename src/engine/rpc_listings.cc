// What a request may ask to see: rules, flows, tokens, sessions, history, and the server itself.
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/books.h"
#include "core/rule_json.h"
#include "engine/rows.h"
#include "engine/rpc_handler.h"
#include "wire/json.h"
#include "wire/rows.h"

namespace nowcalls::engine {
namespace {

// What one page may cost, so that neither a filter that matches little nor large rows hold up the
// loop; such a page has fewer rows than asked, even none, and goes on.
constexpr size_t kPageCostMax = 2000;
constexpr size_t kLookCost = 1;            // Of an entry, whether it matches or not.
constexpr size_t kRuleBytesPerCost = 256;  // What it costs to make a row of a rule.

// One page of an ordered map of slots: rows for those that `add_row` accepts, behind the cursor.
// The cursor is the last key looked at. `add_row` returns what that has cost.
template <typename Map, typename Rows, typename AddRow>
uint64_t FillPage(const Map& map, const wire::PageParams& page, Rows* rows, AddRow add_row) {
  using Key = typename Map::key_type;
  if (page.cursor > static_cast<uint64_t>(std::numeric_limits<Key>::max())) return 0;
  uint64_t last = 0;
  auto it = map.upper_bound(static_cast<Key>(page.cursor));
  size_t cost = 0;
  for (; it != map.end() && rows->size() < page.limit && cost < kPageCostMax; ++it) {
    cost += add_row(it->second);
    last = static_cast<uint64_t>(it->first);
  }
  return it == map.end() ? 0 : last;
}

}  // namespace

void RpcHandler::RulesList(const Call& call) {
  wire::RulesListParams params;
  wire::RequestError error;
  if (!wire::DecodeRulesList(call.request.params, &params, &error)) return ReplyError(call, error);
  std::vector<nlohmann::ordered_json> rows;
  const uint64_t next =
      FillPage(core_->flows().by_id(), params.page, &rows, [&](core::FlowSlot slot) {
        const core::Flow& flow = core_->flows().at(slot);
        if (!flow.active()) return kLookCost;
        const std::string& name_space = core_->flows().name_space(flow.name_space).name;
        if (params.name_space.has_value() && name_space != *params.name_space) return kLookCost;
        nlohmann::ordered_json row = {{"namespace", name_space}};
        const std::string json = core::RuleToJson(*flow.rule);
        row.update(nlohmann::ordered_json::parse(json));
        rows.push_back(std::move(row));
        return kLookCost + json.size() / kRuleBytesPerCost;
      });
  wire::EncodeJsonPage(call.request.msgid, rows, next, replies_->AfterCommit(call.connection));
}

void RpcHandler::Flow(const Call& call) {
  wire::FlowParams params;
  wire::RequestError error;
  if (!wire::DecodeFlow(call.request.params, &params, &error)) return ReplyError(call, error);
  const core::FlowSlot slot = core_->flows().Find(FlowId{params.flow_id});
  if (slot == core::kNoFlow) {
    return ReplyErrorAfterCommit(
        call, {wire::ErrorCode::kBadParams, "flow: flow_id " + std::to_string(params.flow_id) +
                                                " has neither a rule nor tokens"});
  }
  wire::EncodeFlow(call.request.msgid, RowOf(*core_, core_->flows().at(slot)),
                   replies_->AfterCommit(call.connection));
}

void RpcHandler::Flows(const Call& call) {
  wire::PageParams page;
  wire::RequestError error;
  if (!wire::DecodePage(call.request.method, call.request.params, &page, &error))
    return ReplyError(call, error);
  std::vector<wire::FlowRow> rows;
  const uint64_t next = FillPage(core_->flows().by_id(), page, &rows, [&](core::FlowSlot slot) {
    rows.push_back(RowOf(*core_, core_->flows().at(slot)));
    return kLookCost;
  });
  wire::EncodeFlowPage(call.request.msgid, rows, next, replies_->AfterCommit(call.connection));
}

void RpcHandler::Tokens(const Call& call) {
  wire::TokensParams params;
  wire::RequestError error;
  if (!wire::DecodeTokens(call.request.params, &params, &error)) return ReplyError(call, error);
  core::TokenFilter filter;
  if (params.flow_id.has_value()) filter.flow = FlowId{*params.flow_id};
  if (params.client_id.has_value()) filter.client_id = std::string(*params.client_id);
  filter.min_age_ms = params.min_age_ms;
  Result<core::TokenPage> page = core_->ListTokens(call.turn.now, call.connection->id, filter,
                                                   params.page.limit, params.page.cursor);
  if (!page.ok()) return ReplyError(call, ErrorOf(page.status().WithContext("tokens")));
  std::vector<wire::TokenRow> rows;
  rows.reserve(page->tokens.size());
  for (const core::TokenSlot slot : page->tokens) {
    rows.push_back(RowOf(*core_, core_->tokens().at(slot)));
  }
  wire::EncodeTokenPage(call.request.msgid, rows, page->next_cursor,
                        replies_->AfterCommit(call.connection));
}

void RpcHandler::Sessions(const Call& call) {
  wire::PageParams page;
  wire::RequestError error;
  if (!wire::DecodePage(call.request.method, call.request.params, &page, &error))
    return ReplyError(call, error);
  std::vector<wire::SessionRow> rows;
  const uint64_t next =
      FillPage(core_->sessions().by_id(), page, &rows, [&](core::SessionSlot slot) {
        rows.push_back(RowOf(*core_, core_->sessions().at(slot)));
        return kLookCost;
      });
  wire::EncodeSessionPage(call.request.msgid, rows, next, replies_->AfterCommit(call.connection));
}

void RpcHandler::History(const Call& call) {
  wire::PageParams params;
  wire::RequestError error;
  if (!wire::DecodePage(call.request.method, call.request.params, &params, &error))
    return ReplyError(call, error);
  const core::HistoryPage page = core_->books().history().Page(params.cursor, params.limit);
  std::vector<wire::HistoryRow> rows;
  rows.reserve(page.entries.size());
  for (const ledger::HistoryEntry* entry : page.entries) rows.push_back(RowOf(*entry));
  wire::EncodeHistoryPage(call.request.msgid, rows, page.next_cursor,
                          replies_->AfterCommit(call.connection));
}

void RpcHandler::Info(const Call& call) {
  wire::RequestError error;
  if (!wire::DecodeNoParams(call.request.method, call.request.params, &error))
    return ReplyError(call, error);
  wire::EncodeJsonResult(call.request.msgid, info_(call.turn.now),
                         replies_->Immediate(call.connection));
}

}  // namespace nowcalls::engine
