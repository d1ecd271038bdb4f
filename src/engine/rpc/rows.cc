#include "engine/rpc/rows.h"

#include <algorithm>

#include "core/books.h"
#include "core/rates/rates.h"
#include "core/tables/wait_queues.h"

namespace nowcalls::engine::rpc {

namespace {

std::optional<ParamValue> ParamOf(const core::Core& core, core::TokenSlot slot) {
  const core::KeySlot key = core.books().tokens().KeyOf(slot);
  if (key == core::kNoKey) return std::nullopt;
  return core.flows().keys().at(key).value;
}

// Told only where it tells processes apart: a client id with one instance has none in its rows.
std::optional<uint64_t> InstanceOf(const core::SessionState& session) {
  if (session.instances() < 2) return std::nullopt;
  return session.instance;
}

}  // namespace

wire::TokenRow RowOf(const core::Core& core, core::TokenSlot slot) {
  const core::TokenEntry& entry = core.books().tokens().at(slot);
  const core::SessionState& session = core.books().sessions().at(entry.session_slot);
  return {.token_id = core.books().IdOf(entry).value,
          .flow_id = core.flows().at(entry.flow_slot).id.value,
          .name_space = core.flows().name_space(session.name_space).name,
          .client_id = session.client_id,
          .session = session.id.value,
          .count = entry.count,
          .fence = entry.fence,
          .issued_ms = entry.issued_ms,
          .deadline_ms = entry.deadline_ms,
          .online = session.online(),
          .param = ParamOf(core, slot),
          .instance = InstanceOf(session)};
}

namespace {

// CountBelow is exact only where a bucket begins.
static_assert(std::all_of(wire::kTimeBoundsMs.begin(), wire::kTimeBoundsMs.end(),
                          core::TimeHistogram::IsEdge));

void FillTimes(const core::TimeHistogram& histogram, wire::Times* times) {
  const auto reading = histogram.Read();
  times->p50_ms = reading.Quantile(0.5);
  times->p90_ms = reading.Quantile(0.9);
  times->p99_ms = reading.Quantile(0.99);
  times->sum_ms = histogram.sum_ms();
  times->count = reading.count();
  std::transform(wire::kTimeBoundsMs.begin(), wire::kTimeBoundsMs.end(), times->upto.begin(),
                 [&](uint64_t bound_ms) { return reading.CountBelow(bound_ms); });
}

}  // namespace

void FillCounters(const core::Flow& flow, wire::FlowRow* row) {
  wire::FlowCounters& counters = row->counters.emplace();
  const core::TokenCounters& from = flow.counters;
  counters.granted = from.granted;
  std::copy(from.refused.begin(), from.refused.end(), counters.refused.begin());
  std::copy(from.shadow_refused.begin(), from.shadow_refused.end(),
            counters.shadow_refused.begin());
  counters.queued = from.queued;
  counters.granted_from_queue = from.granted_from_queue;
  counters.longest_wait_ms = static_cast<uint64_t>(from.longest_wait_ms);
  counters.kept = from.kept;
  std::copy(from.ended.begin(), from.ended.end(), counters.ended.begin());
  // The core does not count kOk, the wire's array has a place for it.
  std::copy(from.outcomes.begin(), from.outcomes.end(), counters.outcomes.begin() + 1);
  FillTimes(flow.held_times, &counters.held);
  counters.held.longest_ms = flow.held_times.longest_ms();
  // The histogram of waits is made when the first wait ends: most flows have none.
  if (flow.waited_times != nullptr) FillTimes(*flow.waited_times, &counters.waited);
  if (from.other_kind > 0) row->other_kind = from.other_kind;
}

namespace {

std::optional<wire::FlowRate> RateOf(const core::Core& core, core::FlowSlot slot, Instant now) {
  const core::Flow& flow = core.flows().at(slot);
  const core::RateState* from = core.books().rates().Find(slot);
  if (from == nullptr) return std::nullopt;
  // A copy moves to now: a listing changes nothing.
  core::SlidingWindow window = from->window;
  window.Advance(now.ms);
  wire::FlowRate rate{.in_window = static_cast<uint64_t>(window.passed()),
                      .window_ms = static_cast<uint64_t>(window.interval_ms()),
                      .passed = from->counters.passed,
                      .borrowed = from->counters.borrowed,
                      .blocked = from->counters.blocked,
                      .requests_passed = from->counters.requests_passed,
                      .requests_blocked = from->counters.requests_blocked};
  // With a parameter each value has a limit of its own, so the flow has none.
  if (flow.rule->param.has_value()) {
    rate.values = from->values.list.size;
    rate.forgotten = from->values.forgotten;
  } else if (!flow.removed) {
    rate.limit = static_cast<uint64_t>(core::Rates::WindowLimitOf(core.flows(), flow));
  }
  return rate;
}

}  // namespace

wire::FlowRow RowOf(const core::Core& core, core::FlowSlot slot, Instant now) {
  const core::Flow& flow = core.flows().at(slot);
  wire::FlowRow row;
  row.flow_id = flow.id.value;
  row.kind = FlowKindName(flow.key().kind);
  row.removed = flow.removed;
  row.draining = flow.draining;
  // A removed flow keeps its rule while tokens are out, but no level.
  const core::Namespace& name_space = core.flows().name_space(flow.name_space);
  row.name_space = name_space.name;
  row.resource = flow.rule->resource;
  if (!flow.removed && !flow.keyed) {
    row.level = static_cast<uint64_t>(core.flows().LevelOf({slot}));
  }
  if (flow.keyed) row.keys = flow.keys;
  row.sessions = name_space.sessions_online;
  row.now_calls = static_cast<uint64_t>(flow.lane.now_calls);
  row.tokens = flow.tokens.size;
  // The list of tokens is in the order of issue, and waiters have an index of their own: a row
  // walks neither.
  if (flow.tokens.head != core::kNoToken) {
    row.oldest_issued_ms = core.books().tokens().at(flow.tokens.head).issued_ms;
  }
  const core::WaiterPlaces* const waiters = core.wait_queues().OfFlow(flow.key(), slot);
  row.waiters = waiters == nullptr ? 0 : waiters->size();
  if (waiters != nullptr) {
    row.waiting_since_ms = core.wait_queues().at(waiters->begin()->second).since_ms;
  }
  FillCounters(flow, &row);
  row.rate = RateOf(core, slot, now);
  return row;
}

wire::HistoryRow RowOf(const ledger::HistoryEntry& entry) {
  std::optional<uint64_t> instance;
  if (entry.instance != 0) instance = entry.instance;
  std::optional<std::string> outcome;
  if (entry.outcome != CallOutcome::kOk) outcome = CallOutcomeName(entry.outcome);
  return {.sequence = entry.sequence,
          .ended_ms = entry.ended_ms,
          .reason = std::string(EndReasonName(entry.reason)),
          .token_id = entry.token_id.value,
          .flow_id = entry.flow.value,
          .name_space = entry.name_space,
          .client_id = entry.client_id,
          .session = entry.session.value,
          .count = entry.count,
          .fence = entry.fence.value,
          .issued_ms = entry.issued_ms,
          .held_ms = entry.ended_ms - entry.issued_ms,
          .note = entry.note,
          .param = entry.param,
          .instance = instance,
          .outcome = outcome};
}

wire::ParamRow RowOf(const core::Core& core, core::FlowSlot slot, const core::ValueUse& use) {
  wire::ParamRow row{.now_calls = static_cast<uint64_t>(use.now_calls), .waiters = 0};
  // A value may be known for calls a second, for tokens and waiters, or for both.
  if (use.value != core::kNoValue) {
    row.param = core.books().rates().values().at(use.value).value;
    row.passed = use.recent.passed;
    row.blocked = use.recent.blocked;
    row.minute_passed = use.minute.passed;
    row.minute_blocked = use.minute.blocked;
  }
  if (use.key != core::kNoKey) {
    const core::Key& key = core.flows().keys().at(use.key);
    row.param = key.value;
    row.tokens = key.tokens;
    row.waiters = key.lane.waiting();
  }
  const core::Flow& flow = core.flows().at(slot);
  if (flow.active() && flow.keyed) {
    row.level = static_cast<uint64_t>(core.flows().LevelOfValue(slot, row.param.view()));
  }
  return row;
}

wire::WaiterRow RowOf(const core::Core& core, const core::WaiterPlace& place) {
  const core::Waiter& waiter = core.wait_queues().at(place.waiter);
  const core::SessionState& session = core.books().sessions().at(waiter.session_slot);
  wire::WaiterRow row{.flow_id = core.flows().at(waiter.lane.flow_slot).id.value,
                      .name_space = core.flows().name_space(session.name_space).name,
                      .client_id = session.client_id,
                      .count = waiter.count,
                      .prioritized = waiter.prioritized,
                      .place = place.place,
                      .since_ms = waiter.since_ms,
                      .deadline_ms = waiter.deadline_ms,
                      .instance = InstanceOf(session)};
  if (waiter.lane.key_slot != core::kNoKey) {
    row.param = core.flows().keys().at(waiter.lane.key_slot).value;
  }
  return row;
}

namespace {

std::optional<std::vector<std::string>> AddressesOf(const core::SessionState& session) {
  if (!session.online()) return std::nullopt;
  // A session without a client id has one connection, whose address is its name: "@HOST:PORT".
  if (session.client == nullptr) return {{session.client_id.substr(1)}};
  std::vector<std::string> addresses;
  for (const std::string& peer : session.peers) {
    if (addresses.size() == wire::kSessionAddressesMax) break;
    addresses.push_back(peer);
  }
  return addresses;
}

}  // namespace

wire::SessionRow RowOf(const core::Core& core, const core::SessionState& session) {
  wire::SessionRow row;
  row.session = session.id.value;
  row.name_space = core.flows().name_space(session.name_space).name;
  row.client_id = session.client_id;
  row.kind = session.kind == ledger::SessionKind::kNamed ? "named" : "connection";
  row.online = session.online();
  row.connections = session.connections;
  if (session.waiters > 0) row.waiters = session.waiters;
  if (session.hosts > 1 && session.instance == 0) row.hosts = session.hosts;
  row.addresses = AddressesOf(session);
  if (session.last_message_ms > 0) row.last_message_ms = session.last_message_ms;
  if (session.instance != 0) row.instance = session.instance;
  if (session.instances() > 1) row.instances = session.instances();
  row.tokens = session.tokens.size;
  row.now_calls = static_cast<uint64_t>(session.now_calls);
  row.opened_ms = session.opened_ms;
  if (!session.online()) row.offline_since_ms = session.offline_since_ms;
  return row;
}

}  // namespace nowcalls::engine::rpc
