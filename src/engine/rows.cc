#include "engine/rows.h"

#include <algorithm>

namespace nowcalls::engine {

wire::TokenRow RowOf(const core::Core& core, const core::TokenEntry& entry) {
  const core::SessionState& session = core.sessions().at(entry.session);
  return {.token_id = core.IdOf(entry).value,
          .flow_id = core.flows().at(entry.flow).id.value,
          .name_space = core.flows().name_space(session.name_space).name,
          .client_id = session.client_id,
          .session = session.id.value,
          .count = entry.count,
          .fence = entry.fence,
          .issued_ms = entry.issued_ms,
          .deadline_ms = entry.deadline_ms,
          .online = session.online()};
}

wire::FlowRow RowOf(const core::Core& core, const core::Flow& flow) {
  wire::FlowRow row;
  row.flow_id = flow.id.value;
  row.removed = flow.removed;
  const core::Namespace& name_space = core.flows().name_space(flow.name_space);
  row.name_space = name_space.name;
  row.resource = flow.rule->resource;
  if (!flow.removed) row.level = static_cast<uint64_t>(core.LevelOf(flow));
  row.sessions = name_space.sessions_online;
  row.now_calls = static_cast<uint64_t>(flow.now_calls);
  row.tokens = flow.tokens.size;
  if (flow.tokens.head != core::kNoToken) {
    row.oldest_issued_ms = core.tokens().at(flow.tokens.head).issued_ms;
  }
  wire::FlowCounters counters;
  counters.granted = flow.counters.granted;
  counters.refused_level = flow.counters.refused_level;
  counters.refused_token_limit = flow.counters.refused_token_limit;
  counters.kept = flow.counters.kept;
  std::copy(flow.counters.ended.begin(), flow.counters.ended.end(), counters.ended);
  row.counters = counters;
  return row;
}

wire::SessionRow RowOf(const core::Core& core, const core::SessionState& session) {
  wire::SessionRow row;
  row.session = session.id.value;
  row.name_space = core.flows().name_space(session.name_space).name;
  row.client_id = session.client_id;
  row.kind = session.kind == ledger::SessionKind::kNamed ? "named" : "connection";
  row.online = session.online();
  row.connections = session.connections;
  row.tokens = session.tokens.size;
  row.now_calls = static_cast<uint64_t>(session.now_calls);
  row.opened_ms = session.opened_ms;
  if (!session.online()) row.offline_since_ms = session.offline_since_ms;
  return row;
}

}  // namespace nowcalls::engine
