#include "engine/figures.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "base/joined.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/books.h"
#include "core/expiry/mass_expiry.h"
#include "core/tables/wait_queues.h"
#include "engine/engine.h"
#include "engine/identities.h"
#include "ledger/families.h"
#include "wire/method.h"

namespace nowcalls::engine {
namespace {

using Source = FigureSource;
using Value = wire::FigureValue;
using enum wire::FigureKind;

Value Count(uint64_t value) { return value; }

// Skips index 0, which counts nothing: no limit, no reason, kOk.
template <size_t kCount>
Value ByWord(const std::array<uint64_t, kCount>& counts, std::string_view (*word)(size_t)) {
  wire::WordCounts by_word;
  by_word.reserve(kCount - 1);
  for (size_t i = 1; i < kCount; ++i) by_word.emplace_back(word(i), counts[i]);
  return by_word;
}

template <size_t kCount>
Value ByLimit(const std::array<uint64_t, kCount>& counts) {
  return ByWord(counts, [](size_t i) { return RefusedByName(static_cast<RefusedBy>(i)); });
}

Value ByReason(const std::array<uint64_t, kEndReasonCount>& counts) {
  return ByWord(counts, [](size_t i) { return EndReasonName(static_cast<EndReason>(i)); });
}

Value ByOutcome(const core::TokenCounters& counters) {
  std::array<uint64_t, kCallOutcomeCount> counts{};
  std::copy(counters.outcomes.begin(), counters.outcomes.end(), counts.begin() + 1);
  return ByWord(counts, [](size_t i) { return CallOutcomeName(static_cast<CallOutcome>(i)); });
}

// A connection that has sent nothing yet has no protocol and is not counted.
Value ByProtocol(const Source& s) {
  static constexpr auto kWords = std::to_array<std::string_view>({"messagepack_rpc", "sentinel"});
  static_assert(kWords.size() == kProtocolKindCount);
  std::array<uint64_t, kProtocolKindCount> counts{};
  // A walk over all connections: `info` pays for it (core::Books::looks).
  s.core.books().looks() += s.connections.count();
  for (const Connection& connection : s.connections.all()) {
    if (connection.protocol == nullptr) continue;
    ++counts[static_cast<size_t>(connection.protocol->kind())];
  }
  wire::WordCounts by_word;
  for (size_t i = 0; i < kWords.size(); ++i) by_word.emplace_back(kWords[i], counts[i]);
  return by_word;
}

// In the order of kMethodNames; the methods that do not exist come last.
Value ByMethod(std::span<const uint64_t> requests) {
  wire::WordCounts by_word;
  const auto add = [&](wire::Method method) {
    by_word.emplace_back(wire::MethodName(method), requests[static_cast<size_t>(method)]);
  };
  for (const auto& [method, name] : wire::kMethodNames) add(method);
  add(wire::Method::kUnknown);
  return by_word;
}

Value ByRequest(const sentinel::Counters& counters) {
  wire::WordCounts by_word;
  for (size_t i = 0; i < counters.requests.size(); ++i) {
    by_word.emplace_back(sentinel::RequestWord(i), counters.requests[i]);
  }
  return by_word;
}

// Unknown (nil) if the file system does not tell its free bytes.
Value FreeBytes(const DiskRoom& disk) {
  if (disk.free_bytes().has_value()) return *disk.free_bytes();
  return {};
}

// The value of a member of core::TokenCounters, core::RateCounters, core::CoreOptions, Limits.
template <auto kMember>
Value Total(const Source& s) {
  return static_cast<uint64_t>(s.core.flows().totals().*kMember);
}
template <auto kMember>
Value RateTotal(const Source& s) {
  return static_cast<uint64_t>(s.core.books().rates().totals().*kMember);
}
template <auto kMember>
Value Option(const Source& s) {
  return static_cast<uint64_t>(s.core.books().options().*kMember);
}
template <auto kMember>
Value Limit(const Source& s) {
  return static_cast<uint64_t>(s.options.limits.*kMember);
}

using Totals = core::TokenCounters;
using Options = core::CoreOptions;

constexpr auto kServerFigures = std::to_array<Figure>({
    {{"version", kText, "", "version of the server"},
     [](const Source& s) -> Value { return s.options.version; }},
    {{"uptime_ms", kGauge, "ms", "time since the server began to serve"},
     [](const Source& s) -> Value { return s.now - s.started; }},
});

constexpr auto kLedgerFigures = std::to_array<Figure>({
    {{"ledger.data_dir", kText, "",
      "the data directory; bytes that are not printable UTF-8 as `\\xNN`"},
     [](const Source& s) -> Value { return TerminalText(s.options.data_dir); }},
    {{"ledger.durability", kText, "", "`sync`, `interval:MS` or `none`"},
     [](const Source& s) -> Value { return s.options.durability; }},
    {{"ledger.format", kSetting, "", "version of the ledger's format"},
     [](const Source&) { return Count(ledger::kFormatVersion); }},
    {{"ledger.ledger_ms", kGauge, "ms", "the ledger clock"},
     [](const Source& s) -> Value { return s.now.ms; }},
    {{"ledger.batches", kCounter, "", "commit batches since the ledger was made, across restarts"},
     [](const Source& s) { return Count(s.core.books().batch_number()); }},
    {{"ledger.next_fence", kCounter, "",
      "more than every fence and every number of a session that held a token"},
     [](const Source& s) { return Count(s.core.books().next_fence()); }},
    {{"ledger.disk_free_bytes", kGauge, "bytes",
      "free space of the ledger's disk, deleted files included; nil: unknown"},
     [](const Source& s) { return FreeBytes(s.disk); }},
    {{"ledger.disk_low", kFlag, "", "whether acquires are refused as `disk_low`"},
     [](const Source& s) -> Value { return s.disk.low(); }},
});

constexpr auto kCountsFigures = std::to_array<Figure>({
    {{"counts.connections", kGauge, "", "open connections, this one included"},
     [](const Source& s) { return Count(s.connections.count()); }},
    {{"counts.connections_by_protocol", kGauge, "",
      "the same by what they speak: `messagepack_rpc`, `sentinel`", "protocol"},
     [](const Source& s) { return ByProtocol(s); }},
    {{"counts.unidentified", kGauge, "",
      "open connections that the server does not know, see [identify](#identify)"},
     [](const Source& s) { return Count(s.identities.strangers().count()); }},
    {{"counts.sessions", kGauge, "", "sessions that are online, or offline with tokens"},
     [](const Source& s) { return Count(s.core.books().sessions().size()); }},
    {{"counts.namespaces", kGauge, "",
      "namespaces with rules, sessions or a source that claimed them"},
     [](const Source& s) { return Count(s.core.flows().namespaces()); }},
    {{"counts.rules", kGauge, "", "rules in force"},
     [](const Source& s) { return Count(s.core.flows().rules()); }},
    {{"counts.flows", kGauge, "", "flows with a rule, or with live tokens of a removed one"},
     [](const Source& s) { return Count(s.core.flows().size()); }},
    {{"counts.tokens", kGauge, "", "live tokens"},
     [](const Source& s) { return Count(s.core.books().tokens().size()); }},
    {{"counts.keys", kGauge, "", "values of parameters that tokens hold or acquires wait for"},
     [](const Source& s) { return Count(s.core.flows().keys().size()); }},
    {{"counts.key_bytes", kGauge, "bytes", "memory of these values"},
     [](const Source& s) { return Count(s.core.flows().keys().MemoryBytes()); }},
    {{"counts.waiters", kGauge, "", "acquires that wait"},
     [](const Source& s) { return Count(s.core.wait_queues().size()); }},
    {{"counts.waiter_bytes", kGauge, "bytes",
      "memory of acquires that wait, with the items of an `acquire_all`"},
     [](const Source& s) { return Count(s.core.wait_queues().bytes()); }},
    {{"counts.mass_expiries", kCounter, "", "times that many sessions went offline together"},
     [](const Source& s) { return Count(s.core.mass_expiry().masses()); }},
    {{"counts.mass_sessions", kCounter, "", "sessions that got more time because of that"},
     [](const Source& s) { return Count(s.core.mass_expiry().sessions()); }},
    {{"counts.now_calls", kGauge, "", "sum of the counts of live tokens"},
     [](const Source& s) { return Count(s.core.books().live_count_sum()); }},
    {{"counts.history", kGauge, "", "entries of the history"},
     [](const Source& s) { return Count(s.core.books().history().size()); }},
    {{"counts.oldest_issued_ms", kGauge, "ms",
      "issue of the oldest live token, by the ledger clock; 0: none"},
     [](const Source& s) -> Value { return s.core.books().tokens().oldest_issued_ms(); }},
    {{"counts.token_table_bytes", kGauge, "bytes",
      "memory of the table of live tokens, with their request ids"},
     [](const Source& s) { return Count(s.core.books().tokens().MemoryBytes()); }},
    {{"counts.param_values", kGauge, "",
      "values of parameters that are remembered for calls a second"},
     [](const Source& s) { return Count(s.core.books().rates().values().size()); }},
    {{"counts.param_value_bytes", kGauge, "bytes", "memory of these values"},
     [](const Source& s) { return Count(s.core.books().rates().values().bytes()); }},
});

constexpr auto kTotalsFigures = std::to_array<Figure>({
    {{"totals.granted", kCounter, "", "acquires granted, also from the queue or in shadow mode"},
     Total<&Totals::granted>},
    {{"totals.refused", kCounter, "", "acquires and requests refused, by the word of `refused_by`",
      "reason"},
     [](const Source& s) { return ByLimit(s.core.flows().totals().refused); }},
    {{"totals.shadow_refused", kCounter, "", "what shadow mode let pass, by the same words",
      "reason"},
     [](const Source& s) { return ByLimit(s.core.flows().totals().shadow_refused); }},
    {{"totals.queued", kCounter, "", "acquires that waited"}, Total<&Totals::queued>},
    {{"totals.granted_from_queue", kCounter, "", "acquires that waited and were granted"},
     Total<&Totals::granted_from_queue>},
    {{"totals.longest_wait_ms", kMaximum, "ms", "the longest wait that has ended"},
     Total<&Totals::longest_wait_ms>},
    {{"totals.kept", kCounter, "", "keeps"}, Total<&Totals::kept>},
    {{"totals.ended", kCounter, "", "tokens that ended, by reason", "reason"},
     [](const Source& s) { return ByReason(s.core.flows().totals().ended); }},
    {{"totals.outcomes", kCounter, "", "releases of calls that failed or timed out, by which",
      "outcome"},
     [](const Source& s) { return ByOutcome(s.core.flows().totals()); }},
    {{"totals.other_kind", kCounter, "",
      "acquires of rules that say calls a second, and requests of others"},
     Total<&Totals::other_kind>},
    {{"totals.rate_passed", kCounter, "", "calls a second that passed at once"},
     RateTotal<&core::RateCounters::passed>},
    {{"totals.rate_borrowed", kCounter, "", "calls that passed and were told to wait"},
     RateTotal<&core::RateCounters::borrowed>},
    {{"totals.rate_blocked", kCounter, "", "calls that were blocked by a rate or a parameter"},
     RateTotal<&core::RateCounters::blocked>},
    {{"totals.rate_requests_passed", kCounter, "", "requests for the calls that passed"},
     RateTotal<&core::RateCounters::requests_passed>},
    {{"totals.rate_requests_blocked", kCounter, "", "requests for the calls that were blocked"},
     RateTotal<&core::RateCounters::requests_blocked>},
    {{"totals.rate_values_forgotten", kCounter, "",
      "values that were forgotten for others while their limit was in use: it began anew"},
     [](const Source& s) { return Count(s.core.books().rates().values().forgotten()); }},
    {{"totals.requests", kCounter, "",
      "messages of MessagePack-RPC, by method; `unknown`: methods that do not exist", "method"},
     [](const Source& s) { return ByMethod(s.requests); }},
    {{"totals.sentinel_requests", kCounter, "",
      "requests in Sentinel's frames, by type; `unknown`: types that do not exist", "type"},
     [](const Source& s) { return ByRequest(s.sentinel); }},
    {{"totals.sentinel_malformed", kCounter, "",
      "Sentinel's frames that were too short or too long, or whose data was wrong"},
     [](const Source& s) { return Count(s.sentinel.malformed); }},
    {{"totals.wrong_secrets", kCounter, "", "secrets that `identify` did not take"},
     [](const Source& s) { return Count(s.identities.wrong_secrets()); }},
    {{"totals.refused_calls", kCounter, "",
      "requests that were refused for want of a role or of a namespace"},
     [](const Source& s) { return Count(s.identities.refused_calls()); }},
});

constexpr auto kSweepFigures = std::to_array<Figure>({
    {{"sweep.scans", kCounter, "", "steps of the search for due tokens in the ledger"},
     [](const Source& s) { return Count(s.sweep.scans); }},
    {{"sweep.keys", kCounter, "", "due tokens that these steps have found"},
     [](const Source& s) { return Count(s.sweep.keys); }},
});

// The value of a member of TlsCounters.
template <auto kMember>
Value Tls(const Source& s) {
  static constexpr TlsCounters kNone;
  return (s.options.tls != nullptr ? *s.options.tls : kNone).*kMember;
}

constexpr auto kTlsFigures = std::to_array<Figure>({
    {{"tls.certificate_ends_at", kGauge, "s",
      "end of the server's certificate in seconds since 1970; 0: TLS is off"},
     Tls<&TlsCounters::certificate_ends_at_s>},
    {{"tls.handshakes", kCounter, "", "handshakes that were done"}, Tls<&TlsCounters::handshakes>},
    {{"tls.handshakes_failed", kCounter, "",
      "connections to the port that failed before theirs was done, or were plain against "
      "`--plain`"},
     Tls<&TlsCounters::failed>},
});

constexpr auto kSettingsFigures = std::to_array<Figure>({
    {{"settings.expire_strategy", kText, "", "`default` or `strict`"},
     [](const Source& s) -> Value { return s.options.expire_strategy; }},
    {{"settings.restart_grace_ms", kSetting, "ms",
      "least time that sessions have to return after a restart; unused under `strict`"},
     Option<&Options::restart_grace_ms>},
    {{"settings.resource_timeout_factor", kSetting, "",
      "times a rule's resourceTimeout that a token lives without a keep"},
     [](const Source& s) -> Value { return s.core.books().options().resource_timeout_factor; }},
    {{"settings.mass_expiry_percent", kSetting, "percent",
      "part of the sessions that makes a mass expiry; unused under `strict`"},
     [](const Source& s) { return Count(s.core.books().options().mass_expiry.percent); }},
    {{"settings.mass_expiry_sessions_min", kSetting, "",
      "least sessions of a mass expiry; unused under `strict`"},
     [](const Source& s) { return Count(s.core.books().options().mass_expiry.sessions_min); }},
    {{"settings.mass_expiry_factor", kSetting, "",
      "times clientOfflineTime that a mass expiry waits; unused under `strict`"},
     [](const Source& s) -> Value { return s.core.books().options().mass_expiry_factor; }},
    {{"settings.sweep_interval_ms", kSetting, "ms",
      "time between two scans of the ledger for due tokens"},
     Option<&Options::sweep_interval_ms>},
    {{"settings.sweep_keys_max", kSetting, "", "keys that one scan looks at"},
     Option<&Options::sweep_keys_max>},
});

constexpr auto kLimitsFigures = std::to_array<Figure>({
    {{"limits.connections_max", kSetting, "", "connections"}, Limit<&Limits::connections_max>},
    {{"limits.unidentified_max", kSetting, "", "connections that the server does not know"},
     Limit<&Limits::unidentified_max>},
    {{"limits.sessions_max", kSetting, "", "sessions, online or offline with tokens"},
     Limit<&Limits::sessions_max>},
    {{"limits.rules_max", kSetting, "", "rules in force"}, Limit<&Limits::rules_max>},
    {{"limits.flows_max", kSetting, "", "flows, see [rules_load](#rules_load)"},
     [](const Source& s) { return Count(s.options.limits.flows_max()); }},
    {{"limits.namespaces_max", kSetting, "", "namespaces"}, Limit<&Limits::namespaces_max>},
    {{"limits.tokens_max", kSetting, "", "live tokens"}, Limit<&Limits::tokens_max>},
    {{"limits.keys_max", kSetting, "",
      "values of parameters that tokens hold or acquires wait for"},
     Limit<&Limits::keys_max>},
    {{"limits.requests_in_flight_max", kSetting, "",
      "requests of one connection whose answers have not left"},
     Limit<&Limits::requests_in_flight_max>},
    {{"limits.waiters_per_rule_max", kSetting, "", "acquires that wait for one rule"},
     Limit<&Limits::waiters_per_rule_max>},
    {{"limits.waiters_per_connection_max", kSetting, "", "acquires of one connection that wait"},
     Limit<&Limits::waiters_per_connection_max>},
    {{"limits.waiters_max", kSetting, "", "acquires that wait"}, Limit<&Limits::waiters_max>},
    {{"limits.waiter_bytes_max", kSetting, "bytes", "memory of acquires that wait"},
     Limit<&Limits::waiter_bytes_max>},
    {{"limits.sentinel_wait_ms_max", kSetting, "ms",
      "time that an acquire in Sentinel's frames waits; 0: it does not"},
     Limit<&Limits::sentinel_wait_ms_max>},
    {{"limits.namespace_qps_max", kSetting, "",
      "requests for calls a second of one namespace, in a second; 0: as many as come"},
     Limit<&Limits::namespace_qps_max>},
    {{"limits.param_value_bytes_max", kSetting, "bytes",
      "memory of the values that are remembered for calls a second"},
     Limit<&Limits::param_value_bytes_max>},
    {{"limits.message_bytes_max", kSetting, "bytes", "one message from a client"},
     [](const Source&) { return Count(kMessageBytesMax); }},
    {{"limits.input_total_bytes_max", kSetting, "bytes",
      "input of all connections that is not handled yet"},
     Limit<&Limits::input_total_bytes_max>},
});

constexpr auto kMoreLimitsFigures = std::to_array<Figure>({
    {{"limits.output_bytes_max", kSetting, "bytes", "answers that one client does not read"},
     Limit<&Limits::output_bytes_max>},
    {{"limits.output_total_bytes_max", kSetting, "bytes", "answers that all clients do not read"},
     Limit<&Limits::output_total_bytes_max>},
    {{"limits.output_stalled_ms", kSetting, "ms",
      "time in which a client reads nothing of its answers"},
     Limit<&Limits::output_stalled_ms>},
    {{"limits.message_incomplete_ms", kSetting, "ms",
      "time from the first to the last byte of a message"},
     Limit<&Limits::message_incomplete_ms>},
    {{"limits.batch_bytes_max", kSetting, "bytes",
      "one commit batch; beyond it the server stops reading"},
     Limit<&Limits::batch_bytes_max>},
    {{"limits.listings_max", kSetting, "", "cursors of `tokens` that the server remembers"},
     Limit<&Limits::listings_max>},
    {{"limits.listings_per_connection_max", kSetting, "", "the same of one connection"},
     Limit<&Limits::listings_per_connection_max>},
    {{"limits.listing_idle_ms", kSetting, "ms", "time that an unused cursor is remembered"},
     Limit<&Limits::listing_idle_ms>},
    {{"limits.cancels_per_session_max", kSetting, "",
      "cancelled request ids that the server remembers of one session"},
     Limit<&Limits::cancels_per_session_max>},
    {{"limits.cancels_max", kSetting, "", "the same of all sessions"}, Limit<&Limits::cancels_max>},
    {{"limits.cancel_remembered_ms", kSetting, "ms",
      "time that a cancelled request id is remembered"},
     Limit<&Limits::cancel_remembered_ms>},
    {{"limits.history_max", kSetting, "", "entries of the history"}, Limit<&Limits::history_max>},
    {{"limits.disk_free_low_bytes", kSetting, "bytes",
      "free space of the ledger's disk below which nothing is granted"},
     Limit<&Limits::disk_free_low_bytes>},
    {{"limits.disk_free_high_bytes", kSetting, "bytes",
      "free space from which on tokens are granted again"},
     [](const Source& s) { return Count(s.options.limits.disk_free_high()); }},
});

constexpr auto kFigures =
    Joined(kServerFigures, kLedgerFigures, kCountsFigures, kTotalsFigures, kSweepFigures,
           kTlsFigures, kSettingsFigures, kLimitsFigures, kMoreLimitsFigures);

constexpr auto kFigureInfos = [] {
  std::array<wire::FigureInfo, kFigures.size()> infos{};
  std::copy(kFigures.begin(), kFigures.end(), infos.begin());
  return infos;
}();

}  // namespace

std::span<const wire::FigureInfo> FigureInfos() { return kFigureInfos; }

std::span<const Figure> Figures() { return kFigures; }

std::vector<wire::FigureRow> FiguresOf(const FigureSource& source) {
  std::vector<wire::FigureRow> rows;
  rows.reserve(kFigures.size());
  for (const Figure& figure : kFigures) rows.push_back({figure.name, figure.value(source)});
  return rows;
}

}  // namespace nowcalls::engine
