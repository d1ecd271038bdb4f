#include "admin/columns.h"

#include <variant>

#include "core/rules/rule_json.h"
#include "core/rules/rule_kind.h"
#include "nowcalls/types.h"

namespace nowcalls::admin {
namespace {

using wire::FlowFigure;
using wire::FlowRow;
using wire::HistoryRow;
using wire::ParamRow;
using wire::SessionRow;
using wire::TokenRow;
using wire::WaiterRow;

template <typename T>
Cell Optional(const std::optional<T>& value) {
  return value.has_value() ? Cell(*value) : Cell();
}

Cell Unsigned(uint64_t value) { return value; }

Cell OfParam(const ParamValue& value) { return value.view(); }

Cell OfParam(const std::optional<ParamValue>& value) {
  return value.has_value() ? OfParam(*value) : Cell();
}

constexpr Column<TokenRow> kTokenColumns[] = {
    {{"token_id", "TOKEN_ID", Kind::kNumber}, [](const TokenRow& r) -> Cell { return r.token_id; }},
    {{"flow_id", "FLOW_ID", Kind::kNumber}, [](const TokenRow& r) -> Cell { return r.flow_id; }},
    {{"namespace", "NAMESPACE", Kind::kText, 3},
     [](const TokenRow& r) { return Text(r.name_space); }},
    {{"client_id", "CLIENT_ID", Kind::kText}, [](const TokenRow& r) { return Text(r.client_id); }},
    {{"session", "", Kind::kNumber}, [](const TokenRow& r) -> Cell { return r.session; }},
    {{"count", "COUNT", Kind::kNumber}, [](const TokenRow& r) { return Unsigned(r.count); }},
    {{"fence", "FENCE", Kind::kNumber, 4}, [](const TokenRow& r) -> Cell { return r.fence; }},
    {{"issued_ms", "AGE", Kind::kAge}, [](const TokenRow& r) -> Cell { return r.issued_ms; }},
    {{"deadline_ms", "EXPIRES_IN", Kind::kUntil},
     [](const TokenRow& r) -> Cell { return r.deadline_ms; }},
    {{"online", "ONLINE", Kind::kFlag, 1}, [](const TokenRow& r) { return Optional(r.online); }},
    {{"token", "", Kind::kDigits}, [](const TokenRow& r) -> Cell { return r.token_id; }},
    {{"param", "PARAM", Kind::kText, 2}, [](const TokenRow& r) { return OfParam(r.param); }},
    {{"instance", "INSTANCE", Kind::kDigits, 1, /*rare=*/true},
     [](const TokenRow& r) { return Optional(r.instance); }},
};

struct ToCell {
  template <typename Plain>
  Cell operator()(const Plain& value) const {
    return value;
  }
  // A map has no column: its parts have.
  Cell operator()(const wire::WordedCounts& /*counts*/) const { return {}; }
  Cell operator()(const wire::Times* /*times*/) const { return {}; }
};

Kind KindOf(wire::FlowFigureKind kind) {
  switch (kind) {
    case wire::FlowFigureKind::kGauge:
    case wire::FlowFigureKind::kCounter:
    case wire::FlowFigureKind::kTimes: return Kind::kNumber;
    case wire::FlowFigureKind::kInstant: return Kind::kAge;
    case wire::FlowFigureKind::kFlag: return Kind::kFlag;
    case wire::FlowFigureKind::kText: return Kind::kText;
  }
  return Kind::kText;
}

std::vector<Column<FlowRow>> FlowColumns() {
  std::vector<Column<FlowRow>> columns;
  for (const FlowFigure* figure :
       wire::ByPlace([](const FlowFigure& f) { return f.column.place; })) {
    const wire::FlowColumn& column = figure->column;
    columns.push_back(
        {.info = {column.name, column.title, KindOf(figure->kind), column.rank, column.rare},
         .value = figure->get});
  }
  return columns;
}

constexpr Column<ParamRow> kParamColumns[] = {
    {{"param", "PARAM", Kind::kText}, [](const ParamRow& r) { return OfParam(r.param); }},
    {{"now_calls", "NOW_CALLS", Kind::kNumber},
     [](const ParamRow& r) -> Cell { return r.now_calls; }},
    {{"tokens", "TOKENS", Kind::kNumber, 1}, [](const ParamRow& r) -> Cell { return r.tokens; }},
    {{"level", "LEVEL", Kind::kNumber}, [](const ParamRow& r) { return Optional(r.level); }},
    {{"waiters", "WAITERS", Kind::kNumber}, [](const ParamRow& r) { return Optional(r.waiters); }},
    {{"passed", "PASSED", Kind::kNumber}, [](const ParamRow& r) { return Optional(r.passed); }},
    {{"blocked", "BLOCKED", Kind::kNumber}, [](const ParamRow& r) { return Optional(r.blocked); }},
    {{"minute_passed", "MINUTE_PASSED", Kind::kNumber},
     [](const ParamRow& r) { return Optional(r.minute_passed); }},
    {{"minute_blocked", "MINUTE_BLOCKED", Kind::kNumber},
     [](const ParamRow& r) { return Optional(r.minute_blocked); }},
};

constexpr Column<WaiterRow> kWaiterColumns[] = {
    {{"flow_id", "FLOW_ID", Kind::kNumber}, [](const WaiterRow& r) -> Cell { return r.flow_id; }},
    {{"place", "PLACE", Kind::kNumber}, [](const WaiterRow& r) { return Unsigned(r.place); }},
    {{"namespace", "NAMESPACE", Kind::kText, 2},
     [](const WaiterRow& r) { return Text(r.name_space); }},
    {{"client_id", "CLIENT_ID", Kind::kText}, [](const WaiterRow& r) { return Text(r.client_id); }},
    {{"count", "COUNT", Kind::kNumber}, [](const WaiterRow& r) { return Unsigned(r.count); }},
    {{"prioritized", "FIRST", Kind::kFlag, 1},
     [](const WaiterRow& r) -> Cell { return r.prioritized; }},
    {{"since_ms", "WAITED", Kind::kAge}, [](const WaiterRow& r) -> Cell { return r.since_ms; }},
    {{"deadline_ms", "GIVES_UP_IN", Kind::kUntil},
     [](const WaiterRow& r) -> Cell { return r.deadline_ms; }},
    {{"param", "PARAM", Kind::kText}, [](const WaiterRow& r) { return OfParam(r.param); }},
    {{"instance", "INSTANCE", Kind::kDigits, 1, /*rare=*/true},
     [](const WaiterRow& r) { return Optional(r.instance); }},
};

// A client id of one instance is shown as one without. Offline the ledger does not count them.
Cell InstanceWhereTwoAre(const SessionRow& row) {
  const bool shown = row.instances.has_value() || !row.online.has_value();
  return shown ? Optional(row.instance) : Cell();
}

// The last one's text lies here, since a cell is a view; the writer takes each before the next.
Cell AddressesOf(const SessionRow& row) {
  static std::string text;
  if (!row.addresses.has_value()) return {};
  text.clear();
  for (const std::string& address : *row.addresses) text += (text.empty() ? "" : " ") + address;
  return Text(text);
}

constexpr Column<SessionRow> kSessionColumns[] = {
    {{"session", "SESSION", Kind::kNumber, 4},
     [](const SessionRow& r) -> Cell { return r.session; }},
    {{"namespace", "NAMESPACE", Kind::kText},
     [](const SessionRow& r) { return Text(r.name_space); }},
    {{"client_id", "CLIENT_ID", Kind::kText},
     [](const SessionRow& r) { return Text(r.client_id); }},
    {{"kind", "KIND", Kind::kText, 3}, [](const SessionRow& r) { return Text(r.kind); }},
    {{"online", "ONLINE", Kind::kFlag}, [](const SessionRow& r) { return Optional(r.online); }},
    {{"connections", "CONNECTIONS", Kind::kNumber, 1},
     [](const SessionRow& r) { return r.online.has_value() ? Unsigned(r.connections) : Cell(); }},
    {{"tokens", "TOKENS", Kind::kNumber}, [](const SessionRow& r) -> Cell { return r.tokens; }},
    {{"now_calls", "NOW_CALLS", Kind::kNumber},
     [](const SessionRow& r) -> Cell { return r.now_calls; }},
    {{"opened_ms", "AGE", Kind::kAge, 2}, [](const SessionRow& r) -> Cell { return r.opened_ms; }},
    {{"offline_since_ms", "OFFLINE_FOR", Kind::kAge},
     [](const SessionRow& r) { return Optional(r.offline_since_ms); }},
    {{"waiters", "WAITERS", Kind::kNumber},
     [](const SessionRow& r) {
       return r.online.has_value() ? Unsigned(r.waiters.value_or(0)) : Cell();
     }},
    {{"hosts", "HOSTS", Kind::kNumber, 0, /*rare=*/true},
     [](const SessionRow& r) { return r.online == true ? Unsigned(r.hosts.value_or(1)) : Cell(); }},
    {{"instances", "", Kind::kNumber}, [](const SessionRow& r) { return Optional(r.instances); }},
    {{"instance", "INSTANCE", Kind::kDigits, 1, /*rare=*/true}, InstanceWhereTwoAre},
    {{"last_message_ms", "LAST_MESSAGE", Kind::kAge, 5},
     [](const SessionRow& r) { return Optional(r.last_message_ms); }},
    {{"addresses", "ADDRESSES", Kind::kText, 6}, AddressesOf},
};

constexpr Column<HistoryRow> kHistoryColumns[] = {
    {{"sequence", "", Kind::kNumber}, [](const HistoryRow& r) -> Cell { return r.sequence; }},
    {{"ended_ms", "ENDED_AGO", Kind::kAge}, [](const HistoryRow& r) -> Cell { return r.ended_ms; }},
    {{"reason", "REASON", Kind::kText}, [](const HistoryRow& r) { return Text(r.reason); }},
    {{"token_id", "TOKEN_ID", Kind::kNumber},
     [](const HistoryRow& r) -> Cell { return r.token_id; }},
    {{"flow_id", "FLOW_ID", Kind::kNumber}, [](const HistoryRow& r) -> Cell { return r.flow_id; }},
    {{"namespace", "NAMESPACE", Kind::kText, 3},
     [](const HistoryRow& r) { return Text(r.name_space); }},
    {{"client_id", "CLIENT_ID", Kind::kText},
     [](const HistoryRow& r) { return Text(r.client_id); }},
    {{"session", "", Kind::kNumber}, [](const HistoryRow& r) -> Cell { return r.session; }},
    {{"count", "COUNT", Kind::kNumber, 2}, [](const HistoryRow& r) { return Unsigned(r.count); }},
    {{"fence", "FENCE", Kind::kNumber, 4}, [](const HistoryRow& r) -> Cell { return r.fence; }},
    {{"issued_ms", "", Kind::kAge}, [](const HistoryRow& r) -> Cell { return r.issued_ms; }},
    {{"held_ms", "HELD", Kind::kDuration}, [](const HistoryRow& r) -> Cell { return r.held_ms; }},
    {{"note", "NOTE", Kind::kText}, [](const HistoryRow& r) { return Text(r.note); }},
    {{"token", "", Kind::kDigits}, [](const HistoryRow& r) -> Cell { return r.token_id; }},
    {{"param", "PARAM", Kind::kText, 1}, [](const HistoryRow& r) { return OfParam(r.param); }},
    {{"instance", "INSTANCE", Kind::kDigits, 1, /*rare=*/true},
     [](const HistoryRow& r) { return Optional(r.instance); }},
    {{"outcome", "OUTCOME", Kind::kText, 3},
     [](const HistoryRow& r) { return r.outcome ? Text(*r.outcome) : Cell(); }},
};

constexpr Column<ListedRule> kRuleColumns[] = {
    {{"namespace", "NAMESPACE", Kind::kText},
     [](const ListedRule& r) { return Text(r.row.name_space); }},
    {{"flow_id", "FLOW_ID", Kind::kNumber},
     [](const ListedRule& r) -> Cell { return r.row.rule.flow_id.value; }},
    {{"resource", "RESOURCE", Kind::kText},
     [](const ListedRule& r) { return Text(r.row.rule.resource); }},
    {{"count", "COUNT", Kind::kNumber, 1},
     [](const ListedRule& r) -> Cell { return r.row.rule.count; }},
    {{"threshold_type", "THRESHOLD", Kind::kText},
     [](const ListedRule& r) { return Text(ThresholdTypeName(r.row.rule.threshold_type)); }},
    {{"resource_timeout_ms", "TIMEOUT", Kind::kDuration},
     [](const ListedRule& r) -> Cell { return r.row.rule.resource_timeout_ms; }},
    {{"client_offline_time_ms", "OFFLINE", Kind::kDuration},
     [](const ListedRule& r) -> Cell { return r.row.rule.client_offline_time_ms; }},
    {{"max_per_client", "PER_CLIENT", Kind::kNumber, 1},
     [](const ListedRule& r) { return Text(r.max_per_client); }},
    {{"shadow", "SHADOW", Kind::kFlag, 2},
     [](const ListedRule& r) -> Cell { return r.row.rule.shadow; }},
    {{"acquire_refuse_strategy", "REFUSE", Kind::kNumber, 3},
     [](const ListedRule& r) { return Unsigned(r.row.rule.acquire_refuse_strategy); }},
    {{"kind", "KIND", Kind::kText, 1},
     [](const ListedRule& r) { return Text(core::RuleKindWord(core::KindOf(r.row.rule))); }},
    {{"max_hold_ms", "MAX_HOLD", Kind::kDuration, 0, /*rare=*/true},
     [](const ListedRule& r) -> Cell { return r.row.rule.max_hold_ms; }},
    {{"limit", "LIMIT", Kind::kText}, [](const ListedRule& r) { return Text(r.limit); }},
};

}  // namespace

Cell Column<FlowRow>::get(const FlowRow& row) const { return std::visit(ToCell{}, value(row)); }

template <>
std::span<const Column<TokenRow>> ColumnsOf() {
  return kTokenColumns;
}

template <>
std::span<const Column<FlowRow>> ColumnsOf() {
  static const std::vector<Column<FlowRow>> columns = FlowColumns();
  return columns;
}

template <>
std::span<const Column<ParamRow>> ColumnsOf() {
  return kParamColumns;
}

template <>
std::span<const Column<WaiterRow>> ColumnsOf() {
  return kWaiterColumns;
}

template <>
std::span<const Column<SessionRow>> ColumnsOf() {
  return kSessionColumns;
}

template <>
std::span<const Column<HistoryRow>> ColumnsOf() {
  return kHistoryColumns;
}

template <>
std::span<const Column<ListedRule>> ColumnsOf() {
  return kRuleColumns;
}

std::string_view ThresholdTypeName(core::ThresholdType type) {
  return type == core::ThresholdType::kGlobal ? "global" : "avg_local";
}

std::string RuleRowToJson(const RuleRow& row) {
  std::string json = "{\"namespace\":";
  AppendJsonString(row.name_space, &json);
  return json + "," + core::RuleToJson(row.rule).substr(1);
}

}  // namespace nowcalls::admin
