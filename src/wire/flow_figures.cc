#include "wire/flow_figures.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/limits.h"
#include "wire/field_reader.h"
#include "wire/flow_values.h"
#include "wire/packing.h"
#include "wire/row_fields.h"

namespace nowcalls::wire {

// Argument-dependent lookup finds these overloads from row_fields.h; they are defined below.
void PackValue(const FlowCounters& counters, Packer* packer);
bool ReadValue(std::string_view key, FieldReader* fields, std::optional<FlowCounters>* counters);
void PackValue(const FlowRate& rate, Packer* packer);
bool ReadValue(std::string_view key, FieldReader* fields, std::optional<FlowRate>* rate);
// The row within a row. A vector stands for an optional: a FlowRow cannot hold itself.
uint32_t Pairs(const std::vector<FlowRow>& row) { return row.empty() ? 0 : 1; }
void PackField(std::string_view key, const std::vector<FlowRow>& row, Packer* packer);
bool ReadValue(std::string_view key, FieldReader* fields, std::vector<FlowRow>* row);

// The table. Parts of maps come before it.

using enum FlowFigureKind;

template <typename Row, typename Value>
struct FigureField {
  std::string_view key;
  Value Row::*member;
  FlowFigure shown;  // Without name, getter and map.
  std::span<const FlowFigure> parts{};
};
template <typename Row, typename Value>
FigureField(std::string_view, Value Row::*, FlowFigure, std::span<const FlowFigure> = {})
    -> FigureField<Row, Value>;

template <auto kCounts, auto kReason>
FlowValue CountAt(const FlowRow& row) {
  if (!row.counters) return {};
  return ((*row.counters).*kCounts)[static_cast<size_t>(kReason)];
}
template <auto kCounts>
FlowValue SumOf(const FlowRow& row) {
  if (!row.counters) return {};
  return ((*row.counters).*kCounts).sum();
}
template <auto kTimes, auto kNumber>
FlowValue TimeAt(const FlowRow& row) {
  if (!row.counters) return {};
  return ((*row.counters).*kTimes).*kNumber;
}
FlowValue Reclaimed(const FlowRow& row) {
  if (!row.counters) return {};
  uint64_t sum = 0;
  for (size_t i = 1; i < kEndReasonCount; ++i) {
    if (IsReclaim(static_cast<EndReason>(i))) sum += row.counters->ended[i];
  }
  return sum;
}

template <auto kCounts, auto kReason>
constexpr FlowFigure Part(std::string_view name, FlowColumn column) {
  return {.name = name, .get = CountAt<kCounts, kReason>, .kind = kCounter, .column = column};
}
template <RefusedBy kLimit>
constexpr FlowFigure Refused(std::string_view name, uint8_t place) {
  return Part<&FlowCounters::refused, kLimit>(name, {place});
}
template <EndReason kReason>
constexpr FlowFigure Ended(std::string_view name, uint8_t place) {
  return Part<&FlowCounters::ended, kReason>(name, {place});
}
template <auto kTimes, auto kNumber>
constexpr FlowFigure TimePart(std::string_view name, uint8_t place, uint8_t json = 0) {
  return {.name = name, .get = TimeAt<kTimes, kNumber>, .column = {place}, .json = json};
}

constexpr auto kRefusedParts = std::to_array<FlowFigure>({
    {.name = "refused",
     .get = SumOf<&FlowCounters::refused>,
     .kind = kCounter,
     .column = {13, "REFUSED", 1}},
    Refused<RefusedBy::kLevel>("refused_level", 14),
    Refused<RefusedBy::kTokenLimit>("refused_token_limit", 15),
    Refused<RefusedBy::kClientCap>("refused_client_cap", 16),
    Refused<RefusedBy::kWaitersAhead>("refused_waiters_ahead", 17),
    Refused<RefusedBy::kQueueFull>("refused_queue_full", 18),
    Refused<RefusedBy::kQueueTimeout>("refused_queue_timeout", 19),
    Refused<RefusedBy::kCancelled>("refused_cancelled", 20),
    Refused<RefusedBy::kSuperseded>("refused_superseded", 21),
    Refused<RefusedBy::kDraining>("refused_draining", 40),
    Refused<RefusedBy::kRequestId>("refused_request_id", 41),
    Refused<RefusedBy::kDiskLow>("refused_disk_low", 42),
    Refused<RefusedBy::kOverLevel>("refused_over_level", 43),
    Refused<RefusedBy::kNamespaceQps>("refused_namespace_qps", 44),
    Refused<RefusedBy::kParam>("refused_param", 45),
    Refused<RefusedBy::kRate>("refused_rate", 46),
    Refused<RefusedBy::kKeyLimit>("refused_key_limit", 47),
});

constexpr auto kShadowRefusedParts = std::to_array<FlowFigure>({
    {.name = "shadow_refused",
     .get = SumOf<&FlowCounters::shadow_refused>,
     .kind = kCounter,
     .column = {22}},
});

constexpr auto kEndedParts = std::to_array<FlowFigure>({
    {.name = "reclaimed", .get = Reclaimed, .kind = kCounter, .column = {27, "RECLAIMED", 6}},
    Ended<EndReason::kReleased>("ended_released", 28),
    Ended<EndReason::kReleasedLate>("ended_released_late", 29),
    Ended<EndReason::kClientOffline>("ended_client_offline", 30),
    Ended<EndReason::kResourceTimeout>("ended_resource_timeout", 31),
    Ended<EndReason::kRuleRemoved>("ended_rule_removed", 32),
    Ended<EndReason::kAdmin>("ended_admin", 33),
    Ended<EndReason::kCancelled>("ended_cancelled", 34),
});

constexpr auto kOutcomesParts = std::to_array<FlowFigure>({
    Part<&FlowCounters::outcomes, CallOutcome::kFailed>("outcome_failed", {68, "FAILED", 12}),
    Part<&FlowCounters::outcomes, CallOutcome::kTimeout>("outcome_timeout", {69, "TIMED_OUT", 12}),
});

constexpr auto kHeld = &FlowCounters::held;
constexpr auto kHeldParts = std::to_array<FlowFigure>({
    TimePart<kHeld, &Times::p50_ms>("held_p50_ms", 35, 13),
    TimePart<kHeld, &Times::p90_ms>("held_p90_ms", 36, 14),
    TimePart<kHeld, &Times::p99_ms>("held_p99_ms", 37, 15),
    TimePart<kHeld, &HeldTimes::longest_ms>("held_longest_ms", 38, 16),
    TimePart<kHeld, &Times::sum_ms>("held_sum_ms", 59),
    TimePart<kHeld, &Times::count>("held_count", 60),
});

constexpr auto kWaited = &FlowCounters::waited;
constexpr auto kWaitedParts = std::to_array<FlowFigure>({
    TimePart<kWaited, &Times::p50_ms>("waited_p50_ms", 61, 6),
    TimePart<kWaited, &Times::p90_ms>("waited_p90_ms", 62),
    TimePart<kWaited, &Times::p99_ms>("waited_p99_ms", 63, 7),
    TimePart<kWaited, &Times::sum_ms>("waited_sum_ms", 64),
    TimePart<kWaited, &Times::count>("waited_count", 65, 8),
});

template <>
inline constexpr auto kFieldsOf<FlowCounters> = std::tuple(
    FigureField{
        "granted",
        &FlowCounters::granted,
        {.kind = kCounter,
         .help = "also from the queue, also beyond a limit in shadow mode",
         .column = {12, "GRANTED", 2},
         .metric = {7, "nowcalls_flow_grants",
                    "Acquires granted, also from the queue or in shadow mode."},
         .json = 1},
    },
    FigureField{
        "refused",
        &FlowCounters::refused,
        {.kind = kCounter,
         .help = "map of refused_by words to numbers; those that are 0 are left out",
         .metric = {8, "nowcalls_flow_refusals", "Acquires refused, by the limit that refused.",
                    "reason"},
         .json = 2},
        kRefusedParts,
    },
    FigureField{
        "shadow_refused",
        &FlowCounters::shadow_refused,
        {.kind = kCounter,
         .help = "the same for what shadow mode granted nevertheless",
         .metric = {9, "nowcalls_flow_shadow_refusals", "What shadow mode granted beyond a limit.",
                    "reason"},
         .json = 3},
        kShadowRefusedParts,
    },
    FigureField{
        "queued",
        &FlowCounters::queued,
        {.kind = kCounter,
         .help = "acquires that waited",
         .column = {23},
         .metric = {13, "nowcalls_flow_queued", "Acquires that waited."},
         .json = 4},
    },
    FigureField{
        "granted_from_queue",
        &FlowCounters::granted_from_queue,
        {.kind = kCounter,
         .help = "those of them granted",
         .column = {24},
         .metric = {14, "nowcalls_flow_queue_grants", "Acquires that waited and were granted."},
         .json = 5},
    },
    FigureField{
        "longest_wait_ms",
        &FlowCounters::longest_wait_ms,
        {.help = "the longest wait that has ended", .column = {25}, .json = 9},
    },
    FigureField{
        "kept",
        &FlowCounters::kept,
        {.kind = kCounter,
         .help = "keeps",
         .column = {26},
         .metric = {12, "nowcalls_flow_keeps", "Keeps."},
         .json = 10},
    },
    FigureField{
        "ended",
        &FlowCounters::ended,
        {.kind = kCounter,
         .help = "map {`released`, `released_late`, `client_offline`, `resource_timeout`, "
                 "`rule_removed`, `admin`, `cancelled`}, all present",
         .metric = {10, "nowcalls_flow_ended", "Tokens that ended, by reason.", "reason"},
         .json = 11},
        kEndedParts,
    },
    FigureField{
        "held_ms",
        &FlowCounters::held,
        {.kind = kTimes,
         .help = "map {`p50`, `p90`, `p99`, `longest`}: how long ended tokens were held; the "
                 "quantiles are up to a quarter too high; once a token has ended, `sum`, `count` "
                 "and `upto` too",
         .metric = {15, "nowcalls_flow_hold_seconds", "How long ended tokens were held."}},
        kHeldParts,
    },
    FigureField{
        "waited_ms",
        &FlowCounters::waited,
        {.kind = kTimes,
         .help = "map {`p50`, `p90`, `p99`, `sum`, `count`, `upto`}: how long acquires waited that "
                 "were answered, whatever the answer; absent until one was",
         .metric = {16, "nowcalls_flow_wait_seconds",
                    "How long acquires waited, whatever the answer."}},
        kWaitedParts,
    },
    FigureField{
        "outcomes",
        &FlowCounters::outcomes,
        {.kind = kCounter,
         .help = "map {`failed`, `timeout`}: releases that say so of their call, whatever the "
                 "reason; absent until one did",
         .metric = {11, "nowcalls_flow_outcomes",
                    "Releases of calls that failed or timed out, by which.", "outcome"},
         .json = 12},
        kOutcomesParts,
    });

constexpr FlowColumn RateColumn(std::string_view name, uint8_t place, std::string_view title = {},
                                uint8_t rank = 0) {
  return {.place = place, .title = title, .rank = rank, .name = name};
}

template <>
inline constexpr auto kFieldsOf<FlowRate> = std::tuple(
    FigureField{
        "in_window",
        &FlowRate::in_window,
        {.help = "calls in the window that ends now",
         .column = RateColumn("rate_in_window", 48, "RATE", 10),
         .metric = {21, "nowcalls_flow_rate_window_calls",
                    "Calls in the rule's window that ends now."},
         .json = 1},
    },
    FigureField{
        "limit",
        &FlowRate::limit,
        {.help = "the most that the window may have; absent once removed, or if each value has a "
                 "limit of its own",
         .column = RateColumn("rate_limit", 49, "RATE_LIMIT", 10),
         .metric = {22, "nowcalls_flow_rate_window_limit", "Most calls that the window may have."},
         .json = 2},
    },
    FigureField{
        "window_ms",
        &FlowRate::window_ms,
        {.help = "the rule's windowIntervalMs",
         .column = RateColumn("rate_window_ms", 50),
         .json = 3},
    },
    FigureField{
        "passed",
        &FlowRate::passed,
        {.kind = kCounter,
         .help = "calls that passed at once, also beyond the limit in shadow mode",
         .column = RateColumn("rate_passed", 51),
         .metric = {17, "nowcalls_flow_rate_passed", "Calls a second that passed at once."},
         .json = 4},
    },
    FigureField{
        "borrowed",
        &FlowRate::borrowed,
        {.kind = kCounter,
         .help = "calls that passed and were told to wait",
         .column = RateColumn("rate_borrowed", 52),
         .metric = {18, "nowcalls_flow_rate_borrowed", "Calls that passed and were told to wait."},
         .json = 5},
    },
    FigureField{
        "blocked",
        &FlowRate::blocked,
        {.kind = kCounter,
         .help = "calls that were blocked",
         .column = RateColumn("rate_blocked", 53),
         .metric = {19, "nowcalls_flow_rate_blocked", "Calls that a rate or a parameter blocked."},
         .json = 6},
    },
    FigureField{
        "requests_passed",
        &FlowRate::requests_passed,
        {.kind = kCounter,
         .help = "the requests for calls that passed; one for several values counts its calls once",
         .column = RateColumn("rate_requests_passed", 54)},
    },
    FigureField{
        "requests_blocked",
        &FlowRate::requests_blocked,
        {.kind = kCounter,
         .help = "the requests for calls that were blocked, likewise",
         .column = RateColumn("rate_requests_blocked", 55)},
    },
    FigureField{
        "values",
        &FlowRate::values,
        {.help = "values of the parameter that are remembered; absent without a parameter",
         .column = RateColumn("rate_values", 56),
         .json = 7},
    },
    FigureField{
        "forgotten",
        &FlowRate::forgotten,
        {.kind = kCounter,
         .help = "values that were forgotten for others while their limit was in use, so that it "
                 "began anew; absent likewise",
         .column = RateColumn("rate_values_forgotten", 66),
         .metric = {20, "nowcalls_flow_rate_values_forgotten",
                    "Values of the parameter that were forgotten while their limit was in use."},
         .json = 8},
    });

template <>
inline constexpr auto kFieldsOf<FlowRow> = std::tuple(
    FigureField{"flow_id", &FlowRow::flow_id, {.column = {1, "FLOW_ID"}}},
    FigureField{"kind", &FlowRow::kind, {.kind = kText, .column = {67, "KIND", 0, /*rare=*/true}}},
    FigureField{"namespace", &FlowRow::name_space, {.kind = kText, .column = {2, "NAMESPACE", 3}}},
    FigureField{"resource", &FlowRow::resource, {.kind = kText, .column = {3, "RESOURCE"}}},
    FigureField{"removed", &FlowRow::removed, {.kind = kFlag, .column = {8, "REMOVED", 7}}},
    FigureField{"draining", &FlowRow::draining, {.kind = kFlag, .column = {39, "DRAINING", 8}}},
    FigureField{
        "level",
        &FlowRow::level,
        {.column = {5, "LEVEL"},
         .metric = {2, "nowcalls_flow_level", "Most calls in progress that the rule allows now."}},
    },
    FigureField{
        "now_calls",
        &FlowRow::now_calls,
        {.column = {4, "NOW_CALLS"},
         .metric = {1, "nowcalls_flow_now_calls", "Calls in progress."}},
    },
    FigureField{
        "tokens",
        &FlowRow::tokens,
        {.column = {6, "TOKENS", 4}, .metric = {3, "nowcalls_flow_tokens", "Live tokens."}},
    },
    FigureField{
        "waiters",
        &FlowRow::waiters,
        {.column = {9, "WAITERS"},
         .metric = {4, "nowcalls_flow_waiting", "Acquires that wait for room."}},
    },
    FigureField{"waiting_since_ms", &FlowRow::waiting_since_ms, {.kind = kInstant, .column = {10}}},
    FigureField{"sessions", &FlowRow::sessions, {.column = {11, "SESSIONS", 5}}},
    FigureField{
        "oldest_issued_ms",
        &FlowRow::oldest_issued_ms,
        {.kind = kInstant,
         .column = {7, "OLDEST"},
         .metric = {6, "nowcalls_flow_oldest_token_seconds", "Age of the oldest live token."}},
    },
    Field{"counters", &FlowRow::counters}, Field{"rate", &FlowRow::rate},
    FigureField{
        "other_kind",
        &FlowRow::other_kind,
        {.kind = kCounter, .column = {57, "OTHER_KIND", 11}},
    },
    FigureField{
        "keys",
        &FlowRow::keys,
        {.column = {58},
         .metric = {5, "nowcalls_flow_keys",
                    "Values of the rule's parameter that tokens hold or acquires wait for."}},
    },
    Field{"by_value", &FlowRow::by_value});

// The maps within a row, by the table.

void PackValue(const FlowCounters& counters, Packer* packer) { PackRow(counters, packer); }
bool ReadValue(std::string_view key, FieldReader* fields, std::optional<FlowCounters>* counters) {
  // Offline a row has no counters: the optional stays empty.
  return fields->TakeMissing() || ReadMap(key, fields, &counters->emplace());
}
void PackValue(const FlowRate& rate, Packer* packer) { PackRow(rate, packer); }
bool ReadValue(std::string_view /*key*/, FieldReader* fields, std::optional<FlowRate>* rate) {
  return fields->TakeMissing() || ReadRow(fields, &rate->emplace());
}
void PackField(std::string_view key, const std::vector<FlowRow>& row, Packer* packer) {
  if (row.empty()) return;
  PackString(key, packer);
  PackRow(row.front(), packer);
}
bool ReadValue(std::string_view /*key*/, FieldReader* fields, std::vector<FlowRow>* row) {
  row->clear();  // Of equal keys the last counts.
  return fields->TakeMissing() || ReadRow(fields, &row->emplace_back());
}

void EncodeFlowPage(uint32_t msgid, const std::vector<FlowRow>& rows, uint64_t next_cursor,
                    OutputBuffer* out) {
  EncodeRows(msgid, rows, next_cursor, out);
}

void EncodeFlow(uint32_t msgid, const FlowRow& row, OutputBuffer* out) {
  Packer packer(*out);
  BeginResult(msgid, &packer);
  PackRow(row, &packer);
}

Result<Page<FlowRow>> DecodeFlowPage(std::string_view result) {
  return DecodeRows<FlowRow>("flows answer", result);
}

Result<FlowRow> DecodeFlowRow(std::string_view result) {
  RequestError error;
  FieldReader fields("flow answer", result, kReplyBytesMax, &error);
  FlowRow row;
  if (!ReadRow(&fields, &row) || !fields.Close()) return Status::Corruption(error.message);
  return row;
}

// The figures, from the same table.

namespace {

FlowValue ValueOf(uint64_t value) { return value; }
FlowValue ValueOf(int64_t value) { return value; }
FlowValue ValueOf(bool value) { return value; }
FlowValue ValueOf(const std::string& value) { return std::string_view{value}; }
FlowValue ValueOf(const Times& value) { return &value; }
template <typename Value>
FlowValue ValueOf(const std::optional<Value>& value) {
  return value ? ValueOf(*value) : FlowValue();
}
template <typename Reason, size_t kCount>
FlowValue ValueOf(const CountsBy<Reason, kCount>& counts) {
  return WordedCounts{counts, WordAt<Reason>};
}

const FlowRow* Find(const FlowRow& row, const FlowRow* /*type*/) { return &row; }
const FlowCounters* Find(const FlowRow& row, const FlowCounters* /*type*/) {
  return row.counters ? &*row.counters : nullptr;
}
const FlowRate* Find(const FlowRow& row, const FlowRate* /*type*/) {
  return row.rate ? &*row.rate : nullptr;
}

template <typename Map, size_t kIndex>
FlowValue ValueAt(const FlowRow& row) {
  const Map* map = Find(row, static_cast<const Map*>(nullptr));
  return map == nullptr ? FlowValue() : ValueOf(map->*std::get<kIndex>(kFieldsOf<Map>).member);
}

template <typename Map, size_t kIndex>
void AddFigure(FlowMap map, std::vector<FlowFigure>* figures) {
  const auto& field = std::get<kIndex>(kFieldsOf<Map>);
  // A plain Field is a map whose figures come from its own table.
  if constexpr (requires { field.shown; }) {
    const auto add = [&](FlowFigure figure) {
      figure.map = map;
      if (figure.column.name.empty()) figure.column.name = figure.name;
      figures->push_back(figure);
    };
    FlowFigure whole = field.shown;
    whole.name = field.key;
    whole.get = ValueAt<Map, kIndex>;
    add(whole);
    for (const FlowFigure& part : field.parts) add(part);
  }
}

template <typename Map, size_t... kIndex>
void AddFigures(FlowMap map, std::index_sequence<kIndex...> /*fields*/,
                std::vector<FlowFigure>* figures) {
  (AddFigure<Map, kIndex>(map, figures), ...);
}

template <typename Map>
void AddFigures(FlowMap map, std::vector<FlowFigure>* figures) {
  using Fields = std::remove_const_t<decltype(kFieldsOf<Map>)>;
  AddFigures<Map>(map, std::make_index_sequence<std::tuple_size_v<Fields>>(), figures);
}

}  // namespace

std::span<const FlowFigure> FlowFigures() {
  static const std::vector<FlowFigure> figures = [] {
    std::vector<FlowFigure> all;
    AddFigures<FlowRow>(FlowMap::kRow, &all);
    AddFigures<FlowCounters>(FlowMap::kCounters, &all);
    AddFigures<FlowRate>(FlowMap::kRate, &all);
    return all;
  }();
  return figures;
}

std::vector<const FlowFigure*> ByPlace(uint8_t (*place)(const FlowFigure& figure)) {
  std::vector<const FlowFigure*> shown;
  for (const FlowFigure& figure : FlowFigures()) {
    if (place(figure) > 0) shown.push_back(&figure);
  }
  std::sort(shown.begin(), shown.end(),
            [place](const FlowFigure* a, const FlowFigure* b) { return place(*a) < place(*b); });
  return shown;
}

}  // namespace nowcalls::wire
