// Listings: rules, flows, tokens, sessions, history, and the figures of the server.
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/books.h"
#include "core/rates/top_values.h"
#include "core/reclaims.h"
#include "core/rules/rule_json.h"
#include "engine/permission.h"
#include "engine/rpc/flow_name.h"
#include "engine/rpc/handlers.h"
#include "engine/rpc/rows.h"
#include "wire/figures.h"
#include "wire/flow_cursor.h"
#include "wire/json.h"
#include "wire/rows.h"

namespace nowcalls::engine::rpc {
namespace {

// Bounds the price of one page: neither a filter that matches little nor large rows hold up the
// loop. A page that reaches the bound has fewer rows than asked, perhaps none, and a cursor.
constexpr size_t kPageCostMax = 2000;
constexpr size_t kLookCost = 1;           // An entry, whether it matches or not.
constexpr size_t kFlowLooks = 16;         // Of a flow's row: its held times are summed up.
constexpr size_t kRuleBytesPerCost = 64;  // Of a rule that becomes a row.

// Fills one page from an ordered map of slots, from `it` on. `add_row` adds a row or none, and
// returns the price. Returns where the next page begins.
template <typename Map, typename Rows, typename AddRow>
auto FillPage(const Call& call, const Map& map, typename Map::const_iterator it, uint32_t limit,
              Rows* rows, AddRow add_row) {
  size_t cost = 0;
  for (; it != map.end() && rows->size() < limit && cost < kPageCostMax; ++it) {
    cost += add_row(it->second);
  }
  // The walk is charged to the message: Inputs reads the looks.
  call.core()->books().looks() += cost;
  return it;
}

// Returns the next cursor; 0 at the end. The cursor is a key, not a place in the map, so flows that
// come or go between two pages neither repeat nor hide others.
template <typename Rows, typename AddRow>
uint64_t FillFlowPage(const Call& call, const wire::PageParams& page, Rows* rows, AddRow add_row) {
  const auto& map = call.core()->flows().by_key();
  const auto begin = map.upper_bound(wire::CoveredBy(page.cursor));
  const auto next = FillPage(call, map, begin, page.limit, rows, add_row);
  return next == map.end() ? 0 : wire::FlowCursor(std::prev(next)->first, next->first);
}

// Finds the one or two flows of the choice that are in reach. Empty: the call is answered with an
// error, which waits for the commit, since the record that removed the flow may be on its way.
std::vector<core::FlowSlot> FindFlows(const Call& call, std::string_view name, FlowChoice choice) {
  if (!NarrowToReach(call, name, &choice)) return {};
  std::vector<core::FlowSlot> slots = FindAll(call.core()->flows(), choice);
  if (slots.empty()) {
    ReplyErrorAfterCommit(call, ErrorOf(core::NoSuchFlow(choice).WithContext(
                                    std::string(wire::MethodName(call.request.method)))));
  }
  return slots;
}

// The flows that the request names, of both kinds, perhaps out of sight.
std::vector<core::FlowSlot> FlowsOf(const Call& call, const wire::RulesListParams& params) {
  const core::FlowTable& flows = call.core()->flows();
  if (params.flow_name.empty()) return FindAll(flows, FlowId{*params.flow_id});
  const core::NamespaceSlot space =
      params.name_space.has_value() ? flows.FindNamespace(*params.name_space) : core::kNoNamespace;
  std::vector<core::FlowSlot> slots;
  for (const FlowKind kind : kFlowKinds) {
    const auto found = FindInSight(call, {.resource = params.flow_name, .kind = kind}, space);
    slots.insert(slots.end(), found.begin(), found.end());
  }
  return slots;
}

// Sets the flow of the filter, if the request names one. False: the call was answered.
template <typename AnyParams, typename Filter>
bool FilterByFlow(const Call& call, const AnyParams& params, Filter* filter) {
  const bool by_name = !params.flow_name.empty();
  if (!by_name && !params.flow_id.has_value()) return true;
  FlowChoice choice{FlowId{params.flow_id.value_or(0)}, params.kind};
  if (!NarrowToReach(call, params.flow_name, &choice)) return false;
  filter->flow = choice.id;
  // Of a number, rows out of sight are left out anyway; a name may be of one kind only.
  if (by_name) filter->kind = choice.kind;
  return true;
}

// By its session, and by its flow, which may have moved since. A flow that is gone has no namespace
// any more.
bool IsSeen(const Call& call, const core::Sight& sight, const ledger::HistoryEntry& entry) {
  if (sight.all()) return true;
  if (!sight.Has(entry.name_space)) return false;
  const core::FlowTable& flows = call.core()->flows();
  const core::FlowSlot slot = flows.Find({entry.flow, FlowKindIf(entry.param.has_value())});
  return slot == core::kNoFlow || sight.Has(flows, slot);
}

}  // namespace

void RulesList(const Call& call) {
  wire::RulesListParams params;
  wire::RequestError error;
  if (!wire::DecodeRulesList(call.request.params, &params, &error)) return ReplyError(call, error);
  if (params.name_space.has_value() && !MayReach(call, *params.name_space)) return;
  const core::Sight sight = SightOf(*call.connection);
  std::vector<wire::RuleRow> rows;
  const auto add_row = [&](core::FlowSlot slot) {
    const core::Flow& flow = call.core()->flows().at(slot);
    // Rules of other namespaces and removed ones make no row, but their look counts.
    if (!flow.active()) return kLookCost;
    const std::string& name_space = call.core()->flows().name_space(flow.name_space).name;
    if (params.name_space.has_value() && name_space != *params.name_space) return kLookCost;
    if (!sight.Has(call.core()->flows(), flow.name_space)) return kLookCost;
    rows.push_back({flow.key().kind, name_space, core::RuleToJson(*flow.rule)});
    return kLookCost + rows.back().json.size() / kRuleBytesPerCost;
  };
  if (params.flow_id.has_value() || !params.flow_name.empty()) {
    for (const core::FlowSlot slot : FlowsOf(call, params)) {
      call.core()->books().looks() += add_row(slot);
    }
    return wire::EncodeRulesPage(call.request.msgid, rows, 0, call.AfterCommit());
  }
  const uint64_t next = FillFlowPage(call, params.page, &rows, add_row);
  wire::EncodeRulesPage(call.request.msgid, rows, next, call.AfterCommit());
}

void Flow(const Call& call) {
  wire::FlowParams params;
  wire::RequestError error;
  if (!wire::DecodeFlow(call.request.params, &params, &error)) return ReplyError(call, error);
  const auto slots = FindFlows(call, params.flow_name, {FlowId{params.flow_id}, params.kind});
  if (slots.empty()) return;
  // Asked for no kind, a flow id may stand for two flows: the row by value goes into the other.
  wire::FlowRow row = RowOf(*call.core(), slots.front(), call.step.now);
  if (slots.size() > 1) row.by_value.push_back(RowOf(*call.core(), slots.back(), call.step.now));
  wire::EncodeFlow(call.request.msgid, row, call.AfterCommit());
}

void Flows(const Call& call) {
  wire::PageParams page;
  wire::RequestError error;
  if (!wire::DecodePage(call.request.method, call.request.params, &page, &error))
    return ReplyError(call, error);
  const core::Sight sight = SightOf(*call.connection);
  std::vector<wire::FlowRow> rows;
  const uint64_t next = FillFlowPage(call, page, &rows, [&](core::FlowSlot slot) {
    if (!sight.Has(call.core()->flows(), slot)) return kLookCost;
    rows.push_back(RowOf(*call.core(), slot, call.step.now));
    call.core()->books().looks() += kFlowLooks;
    return kLookCost;
  });
  wire::EncodeFlowPage(call.request.msgid, rows, next, call.AfterCommit());
}

void Params(const Call& call) {
  wire::ValuesParams params;
  wire::RequestError error;
  if (!wire::DecodeParams(call.request.params, &params, &error)) return ReplyError(call, error);
  FlowChoice choice(FlowId{params.flow_id});
  if (!params.flow_name.empty()) choice.kind = FlowKind::kValue;
  const auto slots = FindFlows(call, params.flow_name, choice);
  if (slots.empty()) return;
  const core::FlowSlot slot = slots.back();  // The flow by value, or the only one.
  const std::vector<core::ValueUse> top =
      core::TopValues(call.core()->books(), slot, params.limit, call.step.now.ms,
                      params.by_minute ? core::TopBy::kMinute : core::TopBy::kInterval);
  std::vector<wire::ParamRow> rows;
  rows.reserve(top.size());
  for (const core::ValueUse& use : top) rows.push_back(RowOf(*call.core(), slot, use));
  wire::EncodeParamRows(call.request.msgid, rows, call.AfterCommit());
}

void Waiters(const Call& call) {
  wire::WaitersParams params;
  wire::RequestError error;
  if (!wire::DecodeWaiters(call.request.params, &params, &error)) return ReplyError(call, error);
  core::WaiterFilter filter{
      .kind = params.kind, .client_id = params.client_id, .instance = params.instance};
  if (!FilterByFlow(call, params, &filter)) return;
  const core::Sight sight = SightOf(*call.connection);
  std::vector<wire::WaiterRow> rows;
  for (const core::WaiterPlace& waiter : core::ListWaiters(
           call.core()->books(), call.core()->wait_queues(), filter, params.limit, sight)) {
    rows.push_back(RowOf(*call.core(), waiter));
  }
  wire::EncodeWaiterRows(call.request.msgid, rows, call.AfterCommit());
}

void Tokens(const Call& call) {
  wire::TokensParams params;
  wire::RequestError error;
  if (!wire::DecodeTokens(call.request.params, &params, &error)) return ReplyError(call, error);
  core::TokenFilter filter;
  filter.kind = params.kind;
  if (!FilterByFlow(call, params, &filter)) return;
  if (params.client_id.has_value()) filter.client_id = std::string(*params.client_id);
  filter.instance = params.instance;
  if (params.session.has_value()) filter.session = SessionId{*params.session};
  filter.min_age_ms = params.min_age_ms;
  // The core remembers the place of a listing by the connection and its cursor, within limits.
  Result<core::TokenPage> page =
      call.core()->ListTokens(call.step.now, call.connection->id, filter, params.page.limit,
                              params.page.cursor, SightOf(*call.connection));
  if (!page.ok()) return ReplyError(call, ErrorOf(page.status().WithContext("tokens")));
  std::vector<wire::TokenRow> rows;
  rows.reserve(page->tokens.size());
  for (const core::TokenSlot slot : page->tokens) {
    rows.push_back(RowOf(*call.core(), slot));
  }
  wire::EncodeTokenPage(call.request.msgid, rows, page->next_cursor, call.AfterCommit());
}

void Sessions(const Call& call) {
  wire::PageParams page;
  wire::RequestError error;
  if (!wire::DecodePage(call.request.method, call.request.params, &page, &error))
    return ReplyError(call, error);
  const core::Sight sight = SightOf(*call.connection);
  std::vector<wire::SessionRow> rows;
  const auto& by_id = call.core()->books().sessions().by_id();
  const auto next = FillPage(
      call, by_id, by_id.upper_bound(page.cursor), page.limit, &rows, [&](core::SessionSlot slot) {
        const core::SessionState& session = call.core()->books().sessions().at(slot);
        if (sight.Has(call.core()->flows(), session.name_space)) {
          rows.push_back(RowOf(*call.core(), session));
        }
        return kLookCost;
      });
  const uint64_t cursor = next == by_id.end() ? 0 : std::prev(next)->first;
  wire::EncodeSessionPage(call.request.msgid, rows, cursor, call.AfterCommit());
}

void History(const Call& call) {
  wire::PageParams params;
  wire::RequestError error;
  if (!wire::DecodePage(call.request.method, call.request.params, &params, &error))
    return ReplyError(call, error);
  const core::Sight sight = SightOf(*call.connection);
  const core::History& history = call.core()->books().history();
  std::vector<wire::HistoryRow> rows;
  uint64_t cursor = params.cursor;
  size_t looks = 0;
  // Each round asks for the rows that lack, so none is looked at in vain. One is enough for
  // principals of all namespaces.
  do {
    const core::HistoryPage page =
        history.Page(cursor, params.limit - static_cast<uint32_t>(rows.size()));
    for (const ledger::HistoryEntry* entry : page.entries) {
      if (IsSeen(call, sight, *entry)) rows.push_back(RowOf(*entry));
    }
    looks += page.entries.size();
    cursor = page.next_cursor;
  } while (cursor != 0 && rows.size() < params.limit && looks < kPageCostMax);
  call.core()->books().looks() += looks - rows.size();
  wire::EncodeHistoryPage(call.request.msgid, rows, cursor, call.AfterCommit());
}

void Info(const Call& call) {
  wire::RequestError error;
  if (!wire::DecodeNoParams(call.request.method, call.request.params, &error))
    return ReplyError(call, error);
  wire::EncodeFigures(call.request.msgid, call.service.figures(), call.Immediate());
}

void Cluster(const Call& call) {
  wire::RequestError error;
  if (!wire::DecodeNoParams(call.request.method, call.request.params, &error))
    return ReplyError(call, error);
  const Result<wire::ClusterReply> cluster = call.service.driver->DescribeCluster();
  if (!cluster.ok()) return ReplyError(call, ErrorOf(cluster.status().WithContext("cluster")));
  wire::EncodeCluster(call.request.msgid, *cluster, call.Immediate());
}

}  // namespace nowcalls::engine::rpc
