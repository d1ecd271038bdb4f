#include "engine/engine.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "engine/engine_impl.h"

namespace nowcalls::engine {

Engine::Engine(EngineOptions options, core::Core* core, Driver* driver, Instant now)
    : impl_(std::make_unique<Impl>(std::move(options), core, driver, now)) {}

Engine::~Engine() = default;

std::optional<ConnectionId> Engine::OnConnect(std::string_view peer, Instant now) {
  impl_->current = now;
  if (impl_->connections_open >= impl_->options.limits.connections_max) return std::nullopt;
  ConnectionId id = 0;
  if (impl_->free_connections.empty()) {
    id = static_cast<ConnectionId>(impl_->connections.size());
    impl_->connections.emplace_back();
  } else {
    id = impl_->free_connections.back();
    impl_->free_connections.pop_back();
  }
  Connection& connection = impl_->connections[id];
  connection.id = id;
  connection.open = true;
  connection.peer = std::string(peer);
  ++impl_->connections_open;
  return id;
}

void Engine::OnBytes(ConnectionId id, std::string_view bytes, Instant now) {
  impl_->current = now;
  Connection& connection = impl_->connections[id];
  NOWCALLS_CHECK(connection.open);
  if (!connection.closing && !connection.ending) impl_->TakeBytes(&connection, bytes, now);
}

void Engine::OnEndOfInput(ConnectionId id, Instant now) {
  impl_->current = now;
  Connection& connection = impl_->connections[id];
  NOWCALLS_CHECK(connection.open);
  if (!connection.closing && !connection.ending) impl_->End(&connection);
}

void Engine::OnSent(ConnectionId id, size_t kept, Instant now) {
  impl_->current = now;
  Connection& connection = impl_->connections[id];
  NOWCALLS_CHECK(connection.open);
  impl_->SetKept(&connection, kept);
  if (!connection.closing) impl_->Resume(&connection, now);
}

void Engine::OnDisconnect(ConnectionId id, Instant now) {
  impl_->current = now;
  Connection& connection = impl_->connections[id];
  NOWCALLS_CHECK(connection.open);
  impl_->EndSession(&connection);
  impl_->SetKept(&connection, 0);
  if (connection.incomplete_since) impl_->incomplete.erase({connection.incomplete_since->ms, id});
  if (connection.paused) {
    std::erase(impl_->stalled, id);
    std::erase(impl_->yielded, id);
  }
  impl_->buffers.TakeBack(&connection.input);
  impl_->buffers.TakeBack(&connection.ready);
  for (auto& waiting : connection.waiting) impl_->buffers.TakeBack(&waiting);
  connection = Connection{};
  impl_->free_connections.push_back(id);
  --impl_->connections_open;
}

void Engine::OnTime(Instant now) {
  impl_->current = now;
  impl_->CloseTooSlow(now);
  impl_->ResumeYielded(now);
  // What the core would do adds records; while the batch is full it waits with everything else.
  if (!impl_->BatchFull() && !impl_->draining) impl_->core->OnTime(impl_->TurnAt(now));
  impl_->SendLateAnswers();
}

Instant Engine::NextDeadline() const {
  if (!impl_->yielded.empty()) return Instant{0};
  Instant next = impl_->BatchFull() || impl_->draining ? kNever : impl_->core->NextDeadline();
  if (!impl_->committing) next = std::min(next, impl_->core->NextMark());
  const Limits& limits = impl_->options.limits;
  if (!impl_->incomplete.empty()) {
    next = std::min(next, Instant{impl_->incomplete.begin()->first} + limits.message_incomplete_ms);
  }
  if (!impl_->keeping.empty()) {
    next = std::min(next, Instant{impl_->keeping.begin()->first} + limits.output_stalled_ms);
  }
  return next;
}

void Engine::TurnEnd() {
  impl_->SendLateAnswers();  // Of rules that a source has replaced.
  // Flushing may close a connection, which may end waits of others and so make them dirty.
  std::vector<ConnectionId> flushing;
  while (!impl_->dirty.empty()) {
    flushing.swap(impl_->dirty);
    for (const ConnectionId id : flushing) {
      Connection& connection = impl_->connections[id];
      if (connection.open && connection.dirty) impl_->Flush(&connection);
    }
    flushing.clear();
  }
  if (flushing.capacity() > 0) flushing.swap(impl_->dirty);
  impl_->work_left = kWorkPerTurn;
  impl_->LogNotices();
}

void Engine::BeginDrain(Instant now) {
  impl_->current = now;
  impl_->draining = true;
  impl_->commit_due = true;  // For the next start: until when this server ran.
  impl_->core->CloseQueues(impl_->TurnAt(now));
  impl_->SendLateAnswers();
}

Status Engine::LoadRules(const std::vector<core::RuleSet>& sets, Instant now) {
  impl_->current = now;
  Status loaded = impl_->core->ReplaceRules(impl_->TurnAt(now), sets);
  impl_->LogNotices();
  impl_->SendLateAnswers();
  return loaded;
}

RuleSink* Engine::RulesAt(Instant now) {
  impl_->current = now;
  return &impl_->intake;
}

const ledger::CommitBatch* Engine::BeginCommit(const ClockSample& clock, Instant now) {
  Impl& impl = *impl_;
  impl.current = now;
  if (impl.committing) return nullptr;
  const bool due = impl.commit_due || impl.core->NextMark() <= now;
  if (impl.batches[impl.open].empty() && !due) return nullptr;
  impl.commit_due = false;
  impl.core->Seal(impl.TurnAt(now), clock);
  impl.committing = true;
  impl.open = impl.in_flight();
  NOWCALLS_CHECK(impl.batches[impl.open].empty());
  for (const ConnectionId id : std::exchange(impl.stalled, {})) {
    impl.Resume(&impl.connections[id], now);
  }
  return &impl.batches[impl.in_flight()];
}

void Engine::OnCommitDone(Instant now) {
  Impl& impl = *impl_;
  impl.current = now;
  NOWCALLS_CHECK(impl.committing);
  impl.committing = false;
  const size_t done = impl.in_flight();
  impl.batches[done].Clear();
  std::vector<ConnectionId> waiters;
  waiters.swap(impl.waiters[done]);
  for (const ConnectionId id : waiters) impl.MoveToReady(&impl.connections[id], done);
  for (const ConnectionId id : waiters) {
    Connection& connection = impl.connections[id];
    if (connection.ending) impl.CloseIfAnswered(&connection);
    if (connection.paused) impl.Resume(&connection, now);
  }
  waiters.clear();
  impl.waiters[done].swap(waiters);
}

bool Engine::commit_in_flight() const { return impl_->committing; }

bool Engine::idle() const {
  return !impl_->committing && impl_->batches[impl_->open].empty() && !impl_->commit_due &&
         impl_->dirty.empty() && impl_->yielded.empty();
}

std::optional<ledger::ScanRequest> Engine::BeginScan(Instant now) {
  if (impl_->BatchFull() || impl_->draining) return std::nullopt;
  return impl_->core->BeginScan(now);
}

Status Engine::OnScanDone(const ledger::ScanResult& result, Instant now) {
  impl_->current = now;
  Status status = impl_->core->OnScanDone(impl_->TurnAt(now), result);
  impl_->SendLateAnswers();
  return status;
}

}  // namespace nowcalls::engine
