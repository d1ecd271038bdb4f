#include "engine/engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "core/rules/rule_set.h"
#include "engine/engine_impl.h"
#include "engine/figures.h"

namespace nowcalls::engine {
Engine::Impl::Impl(EngineOptions engine_options, core::Core* the_core, Driver* the_driver,
                   Instant now)
    : options(std::move(engine_options)),
      core(the_core),
      driver(the_driver),
      started(now),
      disk(options.limits),
      batches(core, options.limits),
      // Parts know each other in cycles: constructors only store pointers to parts that come later.
      outputs(options.limits, driver, &connections, &batches, &buffers, &closing),
      late(core, &connections, &outputs),
      closing(core, driver, &batches, &inputs, &outputs, &late),
      identities(options.limits, core, driver, &connections, &inputs, &closing),
      intake(core, [this] { return batches.Step(); }),
      rpc(core, &intake, &outputs, &late, driver, &identities, options.version,
          [this] {
            return FiguresOf({*core, options, disk, connections, identities, rpc.requests,
                              sentinel.counters, sweep, started, batches.now()});
          }),
      sentinel(core, &outputs, driver, &identities, &shutting_down),
      protocols(&rpc, &sentinel),
      inputs(options.limits, core, driver, &connections, &batches, &buffers, &protocols, &outputs,
             &late, &closing, identities.strangers()) {
  batches.SetNow(now);
}

// Closes connections whose peers send or read too slowly.
void Engine::Impl::CloseTooSlow() {
  const Instant now = batches.now();
  // A peer that stops within a message can still read: it is told why.
  const int64_t message_ms = options.limits.message_incomplete_ms;
  for (auto slow = inputs.OldestIncomplete(); slow && slow->since + message_ms <= now;
       slow = inputs.OldestIncomplete()) {
    closing.Refuse(connections.Get(slow->id),
                   "did not complete a message within " + std::to_string(message_ms) + " ms");
  }
  // A peer that does not read would not see an answer: its connection closes at once.
  const int64_t stalled_ms = options.limits.output_stalled_ms;
  for (auto slow = outputs.OldestStalled(); slow && slow->since + stalled_ms <= now;
       slow = outputs.OldestStalled()) {
    closing.Abort(connections.Get(slow->id),
                  "has read none of its replies for " + std::to_string(stalled_ms) + " ms");
  }
}

void Engine::Impl::LogNotices() const {
  for (const core::Notice& notice : core->TakeNotices()) {
    driver->Log(notice.warning ? Severity::kWarn : Severity::kInfo, notice.topic, notice.text,
                notice.fields);
  }
}

Engine::Engine(EngineOptions options, core::Core* core, Driver* driver, Instant now)
    : impl_(std::make_unique<Impl>(std::move(options), core, driver, now)) {}

Engine::~Engine() = default;

void Engine::SetAccess(access::Gate gate) { impl_->identities.SetGate(std::move(gate)); }

// --- Connections. ---

std::optional<ConnectionId> Engine::OnConnect(net::Peer peer, Instant now) {
  impl_->batches.SetNow(now);
  // Invariant 8: each connection may hold buffers, so their number is bounded.
  if (impl_->connections.count() >= impl_->options.limits.connections_max) return std::nullopt;
  Connection* connection = impl_->connections.Add(std::move(peer));
  impl_->identities.Greet(connection, now);
  return connection->id;
}

void Engine::OnIdentity(ConnectionId id, const net::Peer& peer, Instant now) {
  impl_->batches.SetNow(now);
  Connection* connection = impl_->connections.GetUsed(id);
  if (!connection->open()) return;
  // Its name stays: a session is shown and left by it.
  NOWCALLS_CHECK(connection->peer.name == peer.name);
  connection->peer = peer;
  impl_->identities.Greet(connection, now);
}

void Engine::OnBytes(ConnectionId id, std::string_view bytes, Instant now) {
  impl_->batches.SetNow(now);
  Connection* connection = impl_->connections.GetUsed(id);
  if (connection->open()) impl_->inputs.TakeBytes(connection, bytes);
}

void Engine::OnEndOfInput(ConnectionId id, Instant now) {
  impl_->batches.SetNow(now);
  Connection* connection = impl_->connections.GetUsed(id);
  if (connection->open()) impl_->closing.End(connection);
}

void Engine::OnSent(ConnectionId id, size_t kept, Instant now) {
  impl_->batches.SetNow(now);
  Connection* connection = impl_->connections.GetUsed(id);
  impl_->outputs.SetKept(connection, kept);
  // The peer reads again: its input goes on, behind the connections that wait for a turn already.
  if (connection->input_waits == InputWaits::kForPeer && kept < kKeptPauseBytes) {
    impl_->inputs.lines()->WaitForTurn(connection);
  }
}

void Engine::OnDisconnect(ConnectionId id, Instant now) {
  impl_->batches.SetNow(now);
  Connection* connection = impl_->connections.GetUsed(id);
  // Every part forgets the connection before Remove: the next OnConnect may get its id.
  impl_->closing.EndSession(connection);
  impl_->identities.Forget(connection);
  impl_->inputs.Drop(connection);
  impl_->outputs.Forget(connection);
  impl_->connections.Remove(connection);
}

// --- Turns. ---

bool Engine::input_waits() const { return impl_->inputs.lines()->turn_is_wanted(); }

bool Engine::input_held() const { return impl_->inputs.lines()->held(); }

void Engine::ResumeInput(Instant now) {
  impl_->batches.SetNow(now);
  impl_->inputs.Resume();
}

void Engine::OnTime(Instant now) {
  impl_->batches.SetNow(now);
  impl_->CloseTooSlow();
  impl_->identities.OnTime(now);
  if (impl_->due_may_end()) {
    const core::Step step = impl_->batches.StepForDue();
    impl_->core->OnTime(step);
    impl_->batches.CountDue(step);
  }
  // Waits may have ended: by time, or by the room of tokens that ended.
  impl_->late.Send();
}

void Engine::CloseTooSlow(Instant now) {
  impl_->batches.SetNow(now);
  impl_->CloseTooSlow();
}

Instant Engine::NextDeadline() const {
  // Left-over input wants the next turn at once.
  if (input_waits()) return Instant{0};
  // Deadlines of due tokens wait for room in the batch: an earlier alarm would find none.
  Instant next = kNever;
  if (impl_->due_may_end()) {
    next = std::min(impl_->core->NextDeadline(false),
                    std::max(impl_->core->NextDeadline(true), impl_->batches.RoomForDueAt()));
  }
  // During a commit no mark can be sealed; the turn of OnCommitDone asks again.
  if (!impl_->batches.committing()) next = std::min(next, impl_->core->NextMark());
  const Limits& limits = impl_->options.limits;
  if (const auto slow = impl_->inputs.OldestIncomplete()) {
    next = std::min(next, slow->since + limits.message_incomplete_ms);
  }
  if (const auto slow = impl_->outputs.OldestStalled()) {
    next = std::min(next, slow->since + limits.output_stalled_ms);
  }
  return std::min(next, impl_->identities.NextDeadline());
}

void Engine::TurnEnd() {
  impl_->late.Send();  // Of rules that a source has replaced.
  // Flush before the notices: it may abort connections, and a mass of lost sessions is a notice.
  impl_->outputs.FlushAll();
  impl_->inputs.BeginTurn();
  impl_->LogNotices();
}

void Engine::BeginShutdown(Instant now) {
  impl_->batches.SetNow(now);
  impl_->shutting_down = true;
  impl_->batches.MarkClock();  // For the next start: until when this server ran.
  impl_->core->CloseQueues(impl_->batches.Step());
  impl_->late.Send();
}

size_t Engine::DropWaitingInput() { return impl_->inputs.DropWaiting(); }

// --- Rules. ---

Status Engine::LoadRules(const std::vector<core::RuleSet>& sets, Instant now) {
  impl_->batches.SetNow(now);
  Status loaded = impl_->core->ReplaceRules(impl_->batches.Step(), core::RefsTo(sets));
  impl_->LogNotices();
  impl_->late.Send();
  return loaded;
}

RuleSink* Engine::RulesAt(Instant now) {
  impl_->batches.SetNow(now);
  return &impl_->intake;
}

// --- The commit path. ---

const ledger::CommitBatch* Engine::BeginCommit(const ClockSample& clock, Instant now) {
  // Never seal a batch earlier than its decisions, whichever clock the driver reads.
  impl_->batches.SetNow(std::max(impl_->batches.now(), now));
  const ledger::CommitBatch* batch =
      impl_->batches.Begin(clock, /*may_be_last=*/impl_->shutting_down);
  // The next batch is empty: input that waited for room in the last one goes on.
  if (batch != nullptr) impl_->inputs.lines()->AfterBegin();
  return batch;
}

void Engine::OnCommitDone(Instant now) {
  impl_->batches.SetNow(now);
  const size_t done = impl_->batches.End();
  // The replies of the batch become ready and leave with TurnEnd (invariant 1).
  for (const ConnectionId id : impl_->outputs.Committed(done)) {
    Connection* connection = impl_->connections.Get(id);
    // Its last answer may be among them; the other batch may still hold some.
    if (connection->state == ConnectionState::kEnding) impl_->closing.CloseIfAnswered(connection);
    if (connection->input_waits == InputWaits::kForReplies) {
      impl_->inputs.lines()->WaitForTurn(connection);
    }
  }
  // Committed replies no longer count as waiting: long replies have room again.
  impl_->inputs.lines()->AfterCommit();
}

bool Engine::idle() const {
  return impl_->batches.idle() && !impl_->outputs.dirty() && !input_waits();
}

// --- Work beside the loop. ---

void Engine::OnBackupDone(ConnectionId asker, const Result<wire::BackupReply>& made, Instant now) {
  impl_->batches.SetNow(now);
  // The id may belong to another connection by now. One backup is made at a time, so a connection
  // that waits for one is the asker. What a backup holds was committed before: no gate.
  Connection* connection = impl_->connections.Get(asker);
  if (connection->protocol != nullptr) connection->protocol->AnswerBackup(connection, made);
  if (connection->state == ConnectionState::kEnding) impl_->closing.CloseIfAnswered(connection);
}

void Engine::OnDiskSpace(std::optional<uint64_t> free_bytes, std::optional<uint64_t> free_files) {
  const std::string news = impl_->disk.Update(free_bytes, free_files);
  impl_->core->SetDiskLow(impl_->disk.low());
  if (!news.empty()) impl_->driver->Log(Severity::kWarn, LogTopic::kServer, news, {});
}

void Engine::SetOptions(const core::CoreOptions& options) {
  impl_->options.limits = options.limits;
  impl_->core->SetOptions(options);
  impl_->disk.SetMarks(options.limits);
  // Judge the last look by the new marks at once.
  OnDiskSpace(impl_->disk.free_bytes(), impl_->disk.free_files());
}

std::optional<ledger::ScanRequest> Engine::BeginScan(Instant now) {
  // Without room for their ends no due tokens are searched for.
  if (!impl_->due_may_end()) return std::nullopt;
  return impl_->core->BeginScan(now);
}

Status Engine::OnScanDone(const ledger::ScanResult& result, Instant now) {
  impl_->batches.SetNow(now);
  ++impl_->sweep.scans;
  impl_->sweep.keys += result.expired.size();
  const core::Step step = impl_->batches.StepForDue();
  Status status = impl_->core->OnScanDone(step, result);
  impl_->batches.CountDue(step);
  impl_->late.Send();
  return status;
}

}  // namespace nowcalls::engine
