// What the info method tells: the server, its ledger, what is in it, what has happened, and its
// limits.
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/text.h"
#include "core/books.h"
#include "core/mass_expiry.h"
#include "core/wait_queues.h"
#include "engine/engine_impl.h"

namespace nowcalls::engine {
namespace {

using nlohmann::ordered_json;

ordered_json ByLimit(const std::array<uint64_t, kRefusedByCount>& counts) {
  ordered_json object = ordered_json::object();
  for (size_t i = 1; i < counts.size(); ++i) {
    object[std::string(RefusedByName(static_cast<RefusedBy>(i)))] = counts[i];
  }
  return object;
}

ordered_json TotalsOf(const core::FlowCounters& totals) {
  ordered_json ended = ordered_json::object();
  for (int reason = 1; reason < kEndReasonCount; ++reason) {
    ended[std::string(EndReasonName(static_cast<EndReason>(reason)))] =
        totals.ended[static_cast<size_t>(reason)];
  }
  return {{"granted", totals.granted},
          {"refused", ByLimit(totals.refused)},
          {"shadow_refused", ByLimit(totals.shadow_refused)},
          {"queued", totals.queued},
          {"granted_from_queue", totals.granted_from_queue},
          {"longest_wait_ms", totals.longest_wait_ms},
          {"kept", totals.kept},
          {"ended", std::move(ended)}};
}

ordered_json SettingsOf(const std::string& expire_strategy, const core::CoreOptions& options) {
  return {{"expire_strategy", expire_strategy},
          {"restart_grace_ms", options.restart_grace_ms},
          {"resource_timeout_factor", options.resource_timeout_factor},
          {"mass_expiry_percent", options.mass_expiry.percent},
          {"mass_expiry_sessions_min", options.mass_expiry.sessions_min},
          {"mass_expiry_factor", options.mass_expiry_factor},
          {"sweep_interval_ms", options.sweep_interval_ms},
          {"sweep_keys_max", options.sweep_keys_max}};
}

}  // namespace

nlohmann::ordered_json Engine::Impl::Info(Instant now) const {
  const Limits& limits = options.limits;
  return {
      {"version", options.version},
      {"uptime_ms", now - started},
      {"ledger",
       {{"data_dir", TerminalText(options.data_dir)},  // It may be no UTF-8.
        {"durability", options.durability},
        {"format", ledger::kFormatVersion},
        {"ledger_ms", now.ms},
        {"batches", core->books().batch_number()},
        {"next_fence", core->books().next_fence()},
        {"disk_free_bytes", disk.free_bytes() ? ordered_json(*disk.free_bytes()) : nullptr},
        {"disk_low", disk.low()}}},
      {"counts",
       {{"connections", connections_open},
        {"sessions", core->sessions().size()},
        {"namespaces", core->flows().namespaces()},
        {"rules", core->flows().rules()},
        {"flows", core->flows().size()},
        {"tokens", core->tokens().size()},
        {"waiters", core->wait_queues().size()},
        {"mass_expiries", core->mass_expiry().masses()},
        {"mass_sessions", core->mass_expiry().sessions()},
        {"now_calls", core->books().live_count_sum()},
        {"history", core->books().history().size()},
        {"oldest_issued_ms", core->tokens().oldest_issued_ms()},
        {"token_table_bytes", core->tokens().MemoryBytes()}}},
      {"totals", TotalsOf(core->books().totals())},
      {"settings", SettingsOf(options.expire_strategy, core->options())},
      {"limits",
       {{"connections_max", limits.connections_max},
        {"sessions_max", limits.sessions_max},
        {"rules_max", limits.rules_max},
        {"flows_max", limits.flows_max()},
        {"namespaces_max", limits.namespaces_max},
        {"tokens_max", limits.tokens_max},
        {"requests_in_flight_max", limits.requests_in_flight_max},
        {"waiters_per_rule_max", limits.waiters_per_rule_max},
        {"waiters_per_connection_max", limits.waiters_per_connection_max},
        {"waiters_max", limits.waiters_max},
        {"message_bytes_max", kMessageBytesMax},
        {"input_total_bytes_max", limits.input_total_bytes_max},
        {"output_bytes_max", limits.output_bytes_max},
        {"output_total_bytes_max", limits.output_total_bytes_max},
        {"output_stalled_ms", limits.output_stalled_ms},
        {"message_incomplete_ms", limits.message_incomplete_ms},
        {"batch_bytes_max", limits.batch_bytes_max},
        {"listings_max", limits.listings_max},
        {"listings_per_connection_max", limits.listings_per_connection_max},
        {"listing_idle_ms", limits.listing_idle_ms},
        {"cancels_per_session_max", limits.cancels_per_session_max},
        {"cancels_max", limits.cancels_max},
        {"cancel_remembered_ms", limits.cancel_remembered_ms},
        {"history_max", limits.history_max},
        {"disk_free_low_bytes", limits.disk_free_low_bytes},
        {"disk_free_high_bytes", limits.disk_free_high()}}},
  };
}

}  // namespace nowcalls::engine
