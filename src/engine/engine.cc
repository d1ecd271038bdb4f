#include "engine/engine.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "core/rule_set.h"
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
  connection.state = ConnectionState::kOpen;
  connection.peer = std::string(peer);
  ++impl_->connections_open;
  return id;
}

void Engine::OnBytes(ConnectionId id, std::string_view bytes, Instant now) {
  impl_->current = now;
  Connection& connection = impl_->connections[id];
  NOWCALLS_CHECK(connection.state != ConnectionState::kFree);
  if (connection.open()) impl_->TakeBytes(&connection, bytes, now);
}

void Engine::OnEndOfInput(ConnectionId id, Instant now) {
  impl_->current = now;
  Connection& connection = impl_->connections[id];
  NOWCALLS_CHECK(connection.state != ConnectionState::kFree);
  if (connection.open()) impl_->End(&connection);
}

void Engine::OnSent(ConnectionId id, size_t kept, Instant now) {
  impl_->current = now;
  Connection& connection = impl_->connections[id];
  NOWCALLS_CHECK(connection.state != ConnectionState::kFree);
  impl_->SetKept(&connection, kept);
  if (connection.input_waits == InputWaits::kForPeer && kept < kKeptPauseBytes) {
    impl_->WaitForTurn(&connection);
  }
}

void Engine::OnDisconnect(ConnectionId id, Instant now) {
  impl_->current = now;
  Connection& connection = impl_->connections[id];
  NOWCALLS_CHECK(connection.state != ConnectionState::kFree);
  impl_->EndSession(&connection);
  impl_->SetKept(&connection, 0);
  impl_->DropInput(&connection);
  impl_->buffers.TakeBack(&connection.ready);
  for (auto& waiting : connection.waiting) impl_->buffers.TakeBack(&waiting);
  impl_->CountWaiting(&connection);
  connection = Connection{};
  impl_->free_connections.push_back(id);
  --impl_->connections_open;
}

void Engine::ResumeInput(Instant now) {
  impl_->current = now;
  impl_->ResumeInput(now);
}

void Engine::OnDiskSpace(std::optional<uint64_t> free_bytes) {
  const std::string news = impl_->disk.Update(free_bytes);
  impl_->core->SetDiskLow(impl_->disk.low());
  if (!news.empty()) impl_->driver->Log(LogLevel::kWarn, news);
}

bool Engine::input_waits() const { return !impl_->for_turn.empty() || !impl_->for_work.empty(); }

bool Engine::input_held() const { return impl_->held > 0; }

void Engine::OnTime(Instant now) {
  impl_->current = now;
  impl_->CloseTooSlow(now);
  // What the core would do adds records; while the batch is full it waits with everything else.
  if (!impl_->BatchFull() && !impl_->draining) {
    const core::Step turn = impl_->TurnForDue(now);
    impl_->core->OnTime(turn);
    impl_->CountDue(turn);
  }
  impl_->SendLateAnswers();
}

void Engine::CloseTooSlow(Instant now) {
  impl_->current = now;
  impl_->CloseTooSlow(now);
}

Instant Engine::NextDeadline() const {
  if (input_waits()) return Instant{0};
  Instant next = kNever;
  if (!impl_->BatchFull() && !impl_->draining) {
    next = std::min(impl_->core->NextDeadline(false),
                    std::max(impl_->core->NextDeadline(true), impl_->RoomForDueAt()));
  }
  if (impl_->begun == 0) next = std::min(next, impl_->core->NextMark());
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
  // Closing a connection may end waits of others and so make them dirty.
  while (!impl_->dirty.empty()) {
    impl_->FlushDirty();
    impl_->BoundKept();
  }
  impl_->new_input_left = kCostPerTurn;
  impl_->old_input_left = kCostPerTurn;
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

size_t Engine::DropWaitingInput() {
  size_t dropped = 0;
  for (ConnectionQueue* queue : {&impl_->for_turn, &impl_->for_work}) {
    for (; queue->front() != nullptr; ++dropped) impl_->DropInput(queue->front());
  }
  return dropped;
}

Status Engine::LoadRules(const std::vector<core::RuleSet>& sets, Instant now) {
  impl_->current = now;
  Status loaded = impl_->core->ReplaceRules(impl_->TurnAt(now), core::RefsTo(sets));
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
  // A batch is sealed no earlier than what is in it was decided, whichever clock the driver reads.
  now = impl.current = std::max(impl.current, now);
  if (impl.begun == kBatches - 1) return nullptr;
  const bool due = impl.commit_due || impl.core->NextMark() <= now;
  if (impl.batches[impl.open].empty() && !due) return nullptr;
  impl.commit_due = false;
  impl.core->Seal(impl.TurnAt(now), clock, /*may_be_last=*/impl.draining);
  impl.may_reopen = impl.begun > 0;
  ++impl.begun;
  impl.open = (impl.open + 1) % kBatches;
  NOWCALLS_CHECK(impl.batches[impl.open].empty());
  while (!impl.for_batch.empty()) impl.WaitForTurn(impl.for_batch.front());
  return &impl.batches[impl.Before(1)];
}

void Engine::OnCommitDone(Instant now) {
  Impl& impl = *impl_;
  impl.current = now;
  NOWCALLS_CHECK(impl.begun > 0);
  const size_t done = impl.Before(impl.begun);
  --impl.begun;
  impl.may_reopen = false;
  impl.batches[done].Clear();
  std::vector<ConnectionId> waiters;
  waiters.swap(impl.waiters[done]);
  for (const ConnectionId id : waiters) impl.MoveToReady(&impl.connections[id], done);
  for (const ConnectionId id : waiters) {
    Connection& connection = impl.connections[id];
    if (connection.state == ConnectionState::kEnding) impl.CloseIfAnswered(&connection);
    if (connection.input_waits == InputWaits::kForReplies) impl.WaitForTurn(&connection);
  }
  waiters.clear();
  impl.waiters[done].swap(waiters);
  impl.WorkAfterCommit();
}

size_t Engine::open_records() const { return impl_->batches[impl_->open].records(); }

bool Engine::idle() const {
  return impl_->begun == 0 && impl_->batches[impl_->open].empty() && !impl_->commit_due &&
         impl_->dirty.empty() && !input_waits();
}

// A turn in which due tokens may be decided upon; CountDue follows.
core::Step Engine::Impl::TurnForDue(Instant now) {
  core::Step turn = TurnAt(now);
  const int64_t passed_ms = std::min(now - due_left_at, kDueAtOnce / kDuePerMs);
  due_left = std::min(due_left + passed_ms * kDuePerMs, kDueAtOnce);
  due_left_at = now;
  due_before = turn.batch->due();
  turn.due_max = std::min(due_before + static_cast<uint32_t>(due_left), kDuePerBatchMax);
  return turn;
}

void Engine::Impl::CountDue(const core::Step& turn) { due_left -= turn.batch->due() - due_before; }

// When there is room for due tokens in the batch of the next turn: that which the driver gives
// back, if it does.
Instant Engine::Impl::RoomForDueAt() const {
  const size_t which = may_reopen && batches[open].empty() ? Before(1) : open;
  if (batches[which].due() >= kDuePerBatchMax) return kNever;
  return due_left > 0 ? due_left_at : due_left_at + 1;
}

void Engine::OnBackupDone(ConnectionId asker, const Result<wire::BackupReply>& made, Instant now) {
  impl_->current = now;
  // Only one backup is made at a time, so whoever has this id now and waits for one has asked.
  Connection* const connection = &impl_->connections[asker];
  impl_->rpc.ReplyBackup(connection, made);
  if (connection->state == ConnectionState::kEnding) impl_->CloseIfAnswered(connection);
}

std::optional<ledger::ScanRequest> Engine::BeginScan(Instant now) {
  if (impl_->BatchFull() || impl_->draining) return std::nullopt;
  return impl_->core->BeginScan(now);
}

Status Engine::OnScanDone(const ledger::ScanResult& result, Instant now) {
  impl_->current = now;
  const core::Step turn = impl_->TurnForDue(now);
  Status status = impl_->core->OnScanDone(turn, result);
  impl_->CountDue(turn);
  impl_->SendLateAnswers();
  return status;
}

}  // namespace nowcalls::engine
