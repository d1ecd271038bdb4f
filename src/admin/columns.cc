#include "admin/columns.h"

#include <array>
#include <numeric>

#include "base/joined.h"
#include "core/rules/rule_json.h"
#include "core/rules/rule_kind.h"
#include "nowcalls/types.h"

namespace nowcalls::admin {
namespace {

using wire::FlowCounters;
using wire::FlowRate;
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

// Of the server's counters, or absent when there are none.
template <typename Read>
Cell Counter(const FlowRow& row, Read read) {
  if (!row.counters.has_value()) return {};
  return Unsigned(read(*row.counters));
}

template <uint64_t FlowCounters::*kMember>
Cell OfCounter(const FlowRow& row) {
  return Counter(row, [](const FlowCounters& c) { return c.*kMember; });
}

template <EndReason reason>
Cell Ended(const FlowRow& row) {
  return Counter(row, [](const FlowCounters& c) { return c.ended[static_cast<size_t>(reason)]; });
}

template <CallOutcome outcome>
Cell OfOutcome(const FlowRow& row) {
  return Counter(row,
                 [](const FlowCounters& c) { return c.outcomes[static_cast<size_t>(outcome)]; });
}

template <RefusedBy limit>
Cell RefusedByLimit(const FlowRow& row) {
  return Counter(row, [](const FlowCounters& c) { return c.refused[static_cast<size_t>(limit)]; });
}

template <uint64_t FlowRate::*kMember>
Cell OfRate(const FlowRow& row) {
  return row.rate.has_value() ? Unsigned((*row.rate).*kMember) : Cell();
}

uint64_t ShadowRefused(const FlowCounters& counters) {
  return std::accumulate(std::begin(counters.shadow_refused), std::end(counters.shadow_refused),
                         uint64_t{0});
}

uint64_t Refused(const FlowCounters& counters) {
  return std::accumulate(std::begin(counters.refused), std::end(counters.refused), uint64_t{0});
}

// Tokens that ended otherwise than by their owner.
uint64_t Reclaimed(const FlowCounters& counters) {
  // By subtraction: whatever is neither a release nor a cancel was taken back.
  const uint64_t ended =
      std::accumulate(std::begin(counters.ended), std::end(counters.ended), uint64_t{0});
  return ended - counters.ended[static_cast<size_t>(EndReason::kReleased)] -
         counters.ended[static_cast<size_t>(EndReason::kReleasedLate)] -
         counters.ended[static_cast<size_t>(EndReason::kCancelled)];
}

constexpr auto kFlowColumnsFirst = std::to_array<Column<FlowRow>>({
    {{"flow_id", "FLOW_ID", Kind::kNumber}, [](const FlowRow& r) -> Cell { return r.flow_id; }},
    {{"namespace", "NAMESPACE", Kind::kText, 3},
     [](const FlowRow& r) { return Text(r.name_space); }},
    {{"resource", "RESOURCE", Kind::kText}, [](const FlowRow& r) { return Text(r.resource); }},
    {{"now_calls", "NOW_CALLS", Kind::kNumber},
     [](const FlowRow& r) -> Cell { return r.now_calls; }},
    {{"level", "LEVEL", Kind::kNumber}, [](const FlowRow& r) { return Optional(r.level); }},
    {{"tokens", "TOKENS", Kind::kNumber, 4}, [](const FlowRow& r) -> Cell { return r.tokens; }},
    {{"oldest_issued_ms", "OLDEST", Kind::kAge},
     [](const FlowRow& r) { return Optional(r.oldest_issued_ms); }},
    {{"removed", "REMOVED", Kind::kFlag, 7}, [](const FlowRow& r) -> Cell { return r.removed; }},
    {{"waiters", "WAITERS", Kind::kNumber}, [](const FlowRow& r) { return Optional(r.waiters); }},
    {{"waiting_since_ms", "", Kind::kAge},
     [](const FlowRow& r) { return Optional(r.waiting_since_ms); }},
    {{"sessions", "SESSIONS", Kind::kNumber, 5},
     [](const FlowRow& r) { return Optional(r.sessions); }},
    {{"granted", "GRANTED", Kind::kNumber, 2}, OfCounter<&FlowCounters::granted>},
    {{"refused", "REFUSED", Kind::kNumber, 1},
     [](const FlowRow& r) { return Counter(r, Refused); }},
    {{"refused_level", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kLevel>},
    {{"refused_token_limit", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kTokenLimit>},
    {{"refused_client_cap", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kClientCap>},
    {{"refused_waiters_ahead", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kWaitersAhead>},
    {{"refused_queue_full", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kQueueFull>},
    {{"refused_queue_timeout", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kQueueTimeout>},
    {{"refused_cancelled", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kCancelled>},
    {{"refused_superseded", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kSuperseded>},
    {{"shadow_refused", "", Kind::kNumber},
     [](const FlowRow& r) { return Counter(r, ShadowRefused); }},
    {{"queued", "", Kind::kNumber}, OfCounter<&FlowCounters::queued>},
    {{"granted_from_queue", "", Kind::kNumber}, OfCounter<&FlowCounters::granted_from_queue>},
    {{"longest_wait_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::longest_wait_ms>},
    {{"kept", "", Kind::kNumber}, OfCounter<&FlowCounters::kept>},
    {{"reclaimed", "RECLAIMED", Kind::kNumber, 6},
     [](const FlowRow& r) { return Counter(r, Reclaimed); }},
    {{"ended_released", "", Kind::kNumber}, Ended<EndReason::kReleased>},
    {{"ended_released_late", "", Kind::kNumber}, Ended<EndReason::kReleasedLate>},
    {{"ended_client_offline", "", Kind::kNumber}, Ended<EndReason::kClientOffline>},
    {{"ended_resource_timeout", "", Kind::kNumber}, Ended<EndReason::kResourceTimeout>},
    {{"ended_rule_removed", "", Kind::kNumber}, Ended<EndReason::kRuleRemoved>},
    {{"ended_admin", "", Kind::kNumber}, Ended<EndReason::kAdmin>},
    {{"ended_cancelled", "", Kind::kNumber}, Ended<EndReason::kCancelled>},
    {{"held_p50_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::held_p50_ms>},
    {{"held_p90_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::held_p90_ms>},
    {{"held_p99_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::held_p99_ms>},
    {{"held_longest_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::held_longest_ms>},
});

// Behind those that were there before, as scripts read csv by place.
constexpr auto kFlowColumnsBehind = std::to_array<Column<FlowRow>>({
    {{"draining", "DRAINING", Kind::kFlag, 8}, [](const FlowRow& r) -> Cell { return r.draining; }},
    {{"refused_draining", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kDraining>},
    {{"refused_request_id", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kRequestId>},
    {{"refused_disk_low", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kDiskLow>},
    {{"refused_over_level", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kOverLevel>},
    {{"refused_namespace_qps", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kNamespaceQps>},
    {{"refused_param", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kParam>},
    {{"refused_rate", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kRate>},
    {{"refused_key_limit", "", Kind::kNumber}, RefusedByLimit<RefusedBy::kKeyLimit>},
    {{"rate_in_window", "RATE", Kind::kNumber, 10}, OfRate<&FlowRate::in_window>},
    {{"rate_limit", "RATE_LIMIT", Kind::kNumber, 10},
     [](const FlowRow& r) { return r.rate.has_value() ? Optional(r.rate->limit) : Cell(); }},
    {{"rate_window_ms", "", Kind::kNumber}, OfRate<&FlowRate::window_ms>},
    {{"rate_passed", "", Kind::kNumber}, OfRate<&FlowRate::passed>},
    {{"rate_borrowed", "", Kind::kNumber}, OfRate<&FlowRate::borrowed>},
    {{"rate_blocked", "", Kind::kNumber}, OfRate<&FlowRate::blocked>},
    {{"rate_requests_passed", "", Kind::kNumber}, OfRate<&FlowRate::requests_passed>},
    {{"rate_requests_blocked", "", Kind::kNumber}, OfRate<&FlowRate::requests_blocked>},
    {{"rate_values", "", Kind::kNumber},
     [](const FlowRow& r) { return r.rate.has_value() ? Optional(r.rate->values) : Cell(); }},
    {{"other_kind", "OTHER_KIND", Kind::kNumber, 11},
     [](const FlowRow& r) { return Optional(r.other_kind); }},
    {{"keys", "", Kind::kNumber}, [](const FlowRow& r) { return Optional(r.keys); }},
    {{"held_sum_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::held_sum_ms>},
    {{"held_count", "", Kind::kNumber}, OfCounter<&FlowCounters::held_count>},
    {{"waited_p50_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::waited_p50_ms>},
    {{"waited_p90_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::waited_p90_ms>},
    {{"waited_p99_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::waited_p99_ms>},
    {{"waited_sum_ms", "", Kind::kNumber}, OfCounter<&FlowCounters::waited_sum_ms>},
    {{"waited_count", "", Kind::kNumber}, OfCounter<&FlowCounters::waited_count>},
    {{"rate_values_forgotten", "", Kind::kNumber},
     [](const FlowRow& r) { return r.rate.has_value() ? Optional(r.rate->forgotten) : Cell(); }},
    {{"kind", "KIND", Kind::kText, 0, /*rare=*/true},
     [](const FlowRow& r) { return Text(r.kind); }},
    {{"outcome_failed", "FAILED", Kind::kNumber, 12}, OfOutcome<CallOutcome::kFailed>},
    {{"outcome_timeout", "TIMED_OUT", Kind::kNumber, 12}, OfOutcome<CallOutcome::kTimeout>},
});

constexpr auto kFlowColumns = Joined(kFlowColumnsFirst, kFlowColumnsBehind);

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

template <>
std::span<const Column<TokenRow>> ColumnsOf() {
  return kTokenColumns;
}

template <>
std::span<const Column<FlowRow>> ColumnsOf() {
  return kFlowColumns;
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
