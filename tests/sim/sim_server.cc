#include "sim/sim_server.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/books.h"
#include "node/limits.h"
#include "sim/lanes.h"
#include "sim/loading_tables.h"
#include "wire/client_messages.h"
#include "wire/rows.h"

namespace nowcalls::sim {
namespace {

constexpr engine::ConnectionId kNobody = UINT32_MAX;

}  // namespace

// What ends with the process.
struct SimServer::Process {
  Process(recovery::RecoveredLedger recovered, SimServer* driver, Instant now)
      : ledger(std::move(recovered)),
        engine(engine::EngineOptions{.limits = ledger.core->books().options().limits,
                                     .version = "0.1.0",
                                     .durability = "sync",
                                     .data_dir = "/data",
                                     .expire_strategy = "default"},
               ledger.core.get(), driver, now),
        turn(&engine, driver, driver) {}

  recovery::RecoveredLedger ledger;
  engine::Engine engine;
  node::Turn turn;
  std::map<engine::ConnectionId, LinkId> links;
  engine::ConnectionId observer = kNobody;
  std::string observed;

  // The commit thread.
  std::optional<ledger::CommitBatch> commit;  // A copy of the batch that is not durable yet.
  bool applying = false;                      // The batch before it, which is durable.
  bool commit_held = false;                   // Its commit begins when HoldCommits ends.
  bool commit_done = false;                   // And the loop does not know yet.
  bool commit_reported = false;               // By a saboteur, before its time.

  // The scan thread.
  std::optional<ledger::ScanResult> scanned;

  bool to_read = false;
  int64_t boottime_max_ms = 0;  // Of what it has read.
  int64_t busy_until_us = 0;
  std::optional<int64_t> turn_at_us;

  bool in_turn = false;
  std::optional<Fault> died_of;  // Within the turn: nothing that it still does is seen.
};

SimServer::SimServer(const ServerWorld& world, const core::CoreOptions& options, uint64_t seed)
    : world_(world), options_(options), prng_(seed) {}

SimServer::~SimServer() = default;

int64_t SimServer::AheadMs() const {
  return std::max<int64_t>(0, ahead_until_us_ - world_.timeline->now_us()) / kMs;
}

Instant SimServer::Now() const { return process_->ledger.clock.At(Sample().boottime_ms); }

ClockSample SimServer::Sample() const {
  ClockSample clocks = world_.machine->Sample();
  clocks.wall_ms += AheadMs();
  // A process reads no boot clock that goes back (base/clock.h).
  int64_t& boottime_ms = process_->boottime_max_ms;
  boottime_ms = std::max(boottime_ms, clocks.boottime_ms + AheadMs());
  clocks.boottime_ms = boottime_ms;
  return clocks;
}

Status SimServer::Start() {
  LoadingTables tables(world_.store, world_.saboteur);
  const auto sample = [this]() -> Result<ClockSample> { return world_.machine->Sample(); };
  if (!world_.saboteur->replays()) world_.store->ForgetUnapplied();
  if (world_.saboteur->hides_reboots()) world_.store->Deny();
  Result<recovery::RecoveredLedger> ledger =
      recovery::Recover(world_.store, &tables, options_, sample);
  if (!ledger.ok()) return ledger.status();
  ++incarnation_;
  first_batch_ = true;
  sync_planned_ = false;
  rebooted_ = ledger->time.has_value() && !ledger->time->same_boot;
  const Instant now = ledger->clock.At(world_.machine->BoottimeMs());
  process_ = std::make_unique<Process>(*std::move(ledger), this, now);
  world_.trace->Add("server: ready with ", process_->ledger.tokens, " tokens, ",
                    process_->ledger.sessions, " sessions", rebooted_ ? ", after a reboot" : "");
  if (watch_.ready) watch_.ready();
  world_.network->ServerStarted();
  RequestTurn(world_.timeline->now_us());
  return {};
}

std::string SimServer::Observe(const wire::OutputBuffer& request) {
  Process& process = *process_;
  const auto id = process.engine.OnConnect({.name = "127.0.0.1:1"}, Now());
  NOWCALLS_CHECK(id.has_value());
  process.observer = *id;
  process.observed.clear();
  process.engine.OnBytes(*id, request.view(), Now());
  process.engine.TurnEnd();
  process.engine.OnDisconnect(*id, Now());
  process.observer = kNobody;
  const auto response = wire::DecodeResponse(process.observed);
  NOWCALLS_CHECK(response.ok() && !response->error);
  return std::string(response->result);
}

std::map<int64_t, int64_t> SimServer::AskFlows() {
  wire::OutputBuffer request;
  wire::EncodePageRequest(1, wire::Method::kFlows, {.limit = kListRowsMax}, &request);
  const auto page = wire::DecodeFlowPage(Observe(request));
  NOWCALLS_CHECK(page.ok());
  std::map<int64_t, int64_t> now_calls;
  for (const wire::FlowRow& row : page->rows) {
    if (row.now_calls == 0) continue;
    if (row.keys.has_value()) {
      AskKeys(row.flow_id, &now_calls);
    } else {
      now_calls[row.flow_id] = static_cast<int64_t>(row.now_calls);
    }
  }
  return now_calls;
}

void SimServer::AskKeys(int64_t flow, std::map<int64_t, int64_t>* now_calls) {
  wire::OutputBuffer request;
  wire::EncodeParamsRequest(1, {.flow_id = flow, .limit = kListRowsMax}, &request);
  const auto rows = wire::DecodeParamRows(Observe(request));
  NOWCALLS_CHECK(rows.ok());
  for (const wire::ParamRow& row : *rows) {
    if (row.now_calls == 0) continue;
    (*now_calls)[LaneOfText(flow, row.param.bytes)] = static_cast<int64_t>(row.now_calls);
  }
}

void SimServer::Arrived() {
  if (runs()) RequestTurn(world_.timeline->now_us());
}

void SimServer::Kill() {
  if (runs()) Die(Fault::kCrash);
}

void SimServer::Reboot() {
  reboots_ = true;
  if (runs()) Die(Fault::kReboot);
}

void SimServer::KillSoon(int calls) { calls_left_ = calls; }

void SimServer::RebootSoon(int calls) {
  calls_left_ = calls;
  reboots_ = true;
}

void SimServer::Terminate() {
  if (!runs() || process_->turn.ending()) return;
  world_.faults->Count(Fault::kTerminate);
  world_.trace->Add("server: SIGTERM");
  Hindered(node::kEndMsMax);
  process_->turn.End();
  for (const auto& [id, link] : process_->links) world_.network->link(link).reading = false;
  RequestTurn(world_.timeline->now_us());
}

void SimServer::Stall(int64_t duration_us) {
  if (!runs()) return;
  world_.faults->Count(Fault::kServerStall);
  world_.trace->Add("server: stalls for ", duration_us / kMs, " ms");
  Hindered(duration_us / kMs);
  int64_t& until = process_->busy_until_us;
  until = std::max(until, world_.timeline->now_us() + duration_us);
}

void SimServer::StepBootClockBack(int64_t by_ms) {
  world_.faults->Count(Fault::kBootStep);
  world_.trace->Add("machine: the boot clock is set back by ", by_ms, " ms");
  const int64_t stands_ms = world_.machine->StepBootBack(by_ms) + AheadMs();
  if (watch_.set_back) watch_.set_back(by_ms + AheadMs(), stands_ms);
  Hindered(stands_ms);
}

void SimServer::Heal() {
  healed_ = true;
  calls_left_ = -1;
  reboots_ = false;
}

void SimServer::HoldCommits(bool on) {
  hold_commits_ = on;
  if (on) return Hindered(INT32_MAX);
  if (runs() && std::exchange(process_->commit_held, false)) StartCommit();
}

void SimServer::Hindered(int64_t duration_ms) const {
  if (watch_.hindered) watch_.hindered(world_.timeline->now_ms() + duration_ms);
}

bool SimServer::Lives() {
  if (process_->died_of) return false;
  if (calls_left_ < 0 || calls_left_-- > 0) return true;
  Die(reboots_ ? Fault::kReboot : Fault::kCrash);
  return false;
}

// Within a turn the process is buried when the turn is over.
void SimServer::Die(Fault cause) {
  if (!process_->in_turn) return Bury(cause);
  if (!process_->died_of) process_->died_of = cause;
}

void SimServer::Bury(Fault cause) {
  Process& process = *process_;
  bool survives = process.commit.has_value();
  if (cause == Fault::kCommitFailed) {
    survives = false;
  } else if (survives && cause != Fault::kCommitFailedWithEffect) {
    survives = survives_ ? *survives_ : prng_.Below(2) == 0;
  }
  if (cause != Fault::kTerminate) world_.faults->Count(cause);
  const char* const fate = survives ? "survives" : "is lost";
  world_.trace->Add("server: dies of ", FaultName(cause), ", the batch under way ",
                    process.commit.has_value() ? fate : "is none");
  if (survives) Append(*process.commit);  // Recovery applies it.
  if (cause == Fault::kTerminate) Sync();
  process_.reset();
  ++incarnation_;
  calls_left_ = -1;
  survives_.reset();
  if (std::exchange(reboots_, false)) GoDown();
  world_.network->ServerDied();
  if (watch_.died) watch_.died(/*orderly=*/cause == Fault::kTerminate);
}

void SimServer::GoDown() {
  if (!world_.saboteur->hides_reboots()) world_.machine->Reboot();
  const size_t at_risk = world_.store->at_risk();
  if (at_risk == 0) return;
  const size_t kept = prng_.Below(at_risk + 1);
  if (kept == at_risk) return;
  world_.faults->Count(Fault::kBatchesLost);
  world_.trace->Add("machine: of ", at_risk, " batches that were not synced ", kept, " are left");
  world_.store->Lose(kept);
  if (watch_.lost) watch_.lost();
}

void SimServer::Write(const ledger::CommitBatch& batch) {
  Append(batch);
  world_.store->ApplyAll();
}

void SimServer::Append(const ledger::CommitBatch& batch) {
  constexpr uint64_t kBatchesPerSync = 16;
  NOWCALLS_CHECK(world_.store->Append(batch).ok());
  if (!world_.plan->unsynced) return;
  if (std::exchange(first_batch_, false)) return Sync();
  if (world_.plan->sync_every_ms == 0) {
    if (prng_.Below(kBatchesPerSync) == 0) Sync();
  } else if (!std::exchange(sync_planned_, true)) {
    world_.timeline->After(world_.plan->sync_every_ms * kMs, [this, incarnation = incarnation_] {
      if (incarnation != incarnation_) return;
      sync_planned_ = false;
      Sync();
    });
  }
}

void SimServer::Sync() const {
  NOWCALLS_CHECK(world_.store->Sync().ok());
  if (watch_.synced) watch_.synced();
}

// A loop that is busy, or held up, takes its turn as soon as it can.
void SimServer::RequestTurn(int64_t at_us) {
  Process& process = *process_;
  at_us = std::max({at_us, process.busy_until_us, world_.timeline->now_us()});
  if (process.turn_at_us && *process.turn_at_us <= at_us) return;
  process.turn_at_us = at_us;
  world_.timeline->At(at_us, [this, at_us, incarnation = incarnation_] {
    if (incarnation != incarnation_ || process_->turn_at_us != at_us) return;
    process_->turn_at_us.reset();
    if (process_->busy_until_us > at_us) return RequestTurn(process_->busy_until_us);
    Turn();
  });
}

void SimServer::Turn() {
  if (!Poll() || !Lives()) return;
  Pump();
  if (!runs()) return;
  process_->busy_until_us =
      std::max(process_->busy_until_us,
               world_.timeline->now_us() + prng_.Between(1, world_.plan->turn_us_max));
}

bool SimServer::Poll() {
  Process& process = *process_;
  // A poll tells of them in any order.
  if (prng_.Below(2) == 0 && !TellCommitDone()) return false;
  for (const LinkId id : world_.network->TakeNews()) {
    if (!PollLink(id)) return false;
  }
  if (!TellCommitDone()) return false;
  if (process.scanned) {
    if (!Lives()) return false;
    const ledger::ScanResult result = *std::exchange(process.scanned, {});
    if (!process.turn.OnScanned(result).ok()) {
      Die(Fault::kScanFailed);
      return false;
    }
  }
  return true;
}

bool SimServer::TellCommitDone() {
  Process& process = *process_;
  if (!process.commit_done) return true;
  if (!Lives()) return false;
  process.commit_done = false;
  process.turn.OnDurable();
  return true;
}

bool SimServer::PollLink(LinkId id) {
  Process& process = *process_;
  Network::Link& link = world_.network->link(id);
  if (link.gone) return true;
  if (link.arrived && !link.connection) {
    if (process.turn.ending()) {
      world_.network->CloseByServer(id, /*flush=*/false);
      world_.network->Settle(id);
      return true;
    }
    if (!Lives()) return false;
    process.to_read = true;
    link.connection = process.engine.OnConnect({.name = link.peer}, Now());
    if (!link.connection) {
      world_.network->CloseByServer(id, /*flush=*/false);
      world_.network->Settle(id);
      return true;
    }
    process.links[*link.connection] = id;
  }
  if (!link.connection) {
    if (link.reset) world_.network->Settle(id);  // It was gone before it arrived.
    return true;
  }
  if (std::exchange(link.drained, false) && !link.closed) {
    if (!Lives()) return false;
    process.engine.OnSent(*link.connection, link.outbox.size(), Now());
  }
  if (!ReadLink(id)) return false;
  if (link.reset && (link.closed || link.inbox.empty() || !link.reading)) {
    if (!Lives()) return false;
    process.links.erase(*link.connection);
    process.engine.OnDisconnect(*link.connection, Now());
    world_.network->Settle(id);
  }
  return true;
}

bool SimServer::ReadLink(LinkId id) {
  Process& process = *process_;
  Network::Link& link = world_.network->link(id);
  if (!link.reading || link.closed) return true;
  if (!link.inbox.empty()) {
    if (!Lives()) return false;
    std::string replies;
    const std::string bytes = world_.saboteur->In(id, std::exchange(link.inbox, {}), &replies);
    if (!bytes.empty()) process.engine.OnBytes(*link.connection, bytes, Now());
    if (!replies.empty()) world_.network->Write(id, replies);
    process.to_read = true;
  }
  // The engine may have stopped the reading or closed the connection meanwhile.
  if (link.end_of_input && !link.ended && link.reading && !link.closed) {
    if (!Lives()) return false;
    link.ended = true;
    process.engine.OnEndOfInput(*link.connection, Now());
  }
  return true;
}

void SimServer::Pump() {
  Process& process = *process_;
  process.in_turn = true;
  const int64_t sleep_ms = process.turn.Run();
  process.in_turn = false;
  if (process.died_of) return Bury(*process.died_of);
  if (process.turn.phase() == node::Phase::kClosed) return Bury(Fault::kTerminate);
  if (!world_.saboteur->wakes()) return;
  // A timer that is due comes with the next poll, not within this one.
  const int64_t now_us = std::max(world_.timeline->now_us(), ahead_until_us_);
  const int64_t to_wake_us = sleep_ms * kMs - now_us % kMs;
  RequestTurn(now_us + std::max<int64_t>(1, to_wake_us));
}

void SimServer::Disconnect(Instant /*now*/) {
  if (!Lives()) return;
  for (const auto& [id, link] : process_->links) {
    if (!world_.network->link(link).closed) world_.network->CloseByServer(link, /*flush=*/true);
  }
}

bool SimServer::connected() const { return !process_->links.empty(); }

void SimServer::CloseStore() { process_->turn.OnClosed(); }

void SimServer::Scan(const ledger::ScanRequest& asked) {
  ledger::ScanRequest request = asked;
  request.upper_ms -= world_.saboteur->sweep_lag_ms();
  const int64_t begin_us = prng_.Between(1, world_.plan->commit_us_max);
  const int64_t end_us = begin_us + prng_.Between(1, world_.plan->commit_us_max);
  const auto result = std::make_shared<ledger::ScanResult>();
  world_.timeline->After(begin_us, [this, result, request, incarnation = incarnation_] {
    if (incarnation != incarnation_ || !world_.saboteur->sweeps()) return;
    world_.store->Scan(request, result.get());
    if (Happens(world_.plan->scan_failed_chance)) result->status = Status::IoError("simulated");
  });
  world_.timeline->After(end_us, [this, result, incarnation = incarnation_] {
    if (incarnation != incarnation_) return;
    if (!world_.saboteur->tells_scans()) return;
    process_->scanned = *result;
    RequestTurn(world_.timeline->now_us());
  });
}

bool SimServer::TakeMoreToRead() { return std::exchange(process_->to_read, false); }

bool SimServer::Commit(const ledger::CommitBatch& batch, bool at_once) {
  if (!Lives()) return false;
  Process& process = *process_;
  // Its end was reported before its time.
  if (process.commit.has_value()) Write(*std::exchange(process.commit, std::nullopt));
  const bool free = !process.applying && !hold_commits_;
  if (free && at_once && world_.plan->sync_every_ms == 0 && !world_.saboteur->replies_early() &&
      prng_.ChancePerMillion(world_.plan->commit_inline_chance)) {
    return CommitHere(batch);
  }
  process.commit = batch;
  if (world_.saboteur->replies_early()) {
    process.commit_reported = true;
    process.commit_done = true;
    RequestTurn(world_.timeline->now_us());
  }
  if (!process.applying) StartCommit();
  return false;
}

// As server::CommitThread::CommitHere. The process is ahead of the world by what it took.
bool SimServer::CommitHere(const ledger::CommitBatch& batch) {
  Process& process = *process_;
  process.commit = batch;
  if (!Lives()) return false;
  if (Happens(world_.plan->commit_failed_chance)) {
    Die(prng_.Below(2) == 0 ? Fault::kCommitFailed : Fault::kCommitFailedWithEffect);
    return false;
  }
  Write(batch);
  world_.trace->Add("server: batch ", batch.number(), " is durable at once, ", batch.records(),
                    " records");
  process.commit.reset();
  ahead_until_us_ = std::max(ahead_until_us_, world_.timeline->now_us()) + DrawCommitUs();
  process.busy_until_us = std::max(process.busy_until_us, ahead_until_us_);
  return Lives();
}

int64_t SimServer::DrawCommitUs() {
  int64_t duration_us = prng_.Between(1, world_.plan->commit_us_max);
  if (Happens(world_.plan->commit_slow_chance)) {
    world_.faults->Count(Fault::kCommitSlow);
    duration_us += prng_.Between(0, world_.plan->commit_slow_ms_max) * kMs;
    Hindered(duration_us / kMs);
  }
  return duration_us;
}

void SimServer::StartCommit() {
  process_->commit_held = hold_commits_;
  if (hold_commits_) return;
  world_.timeline->After(DrawCommitUs(), [this, incarnation = incarnation_] {
    if (incarnation == incarnation_) FinishCommit();
  });
}

void SimServer::FinishCommit() {
  Process& process = *process_;
  if (!process.commit.has_value()) return;  // Another took its place, reported before its time.
  if (Happens(world_.plan->commit_failed_chance)) {
    return Die(prng_.Below(2) == 0 ? Fault::kCommitFailed : Fault::kCommitFailedWithEffect);
  }
  process.applying =
      !world_.plan->unsynced && prng_.ChancePerMillion(world_.plan->commit_tail_chance);
  if (process.applying) {
    NOWCALLS_CHECK(world_.store->Append(*process.commit).ok());
  } else {
    Write(*process.commit);
  }
  world_.trace->Add("server: batch ", process.commit->number(), " is durable, ",
                    process.commit->records(), " records");
  process.commit.reset();
  if (!std::exchange(process.commit_reported, false)) {
    process.commit_done = true;
    RequestTurn(world_.timeline->now_us());
  }
  if (!process.applying) return;
  world_.timeline->After(DrawCommitUs(), [this, incarnation = incarnation_] {
    if (incarnation != incarnation_) return;
    world_.store->ApplyAll();
    process_->applying = false;
    if (process_->commit.has_value()) StartCommit();
  });
}

void SimServer::Write(std::span<engine::Output> outputs) {
  if (process_->in_turn && !Lives()) return;
  for (engine::Output& output : outputs) {
    if (output.to == process_->observer) {
      process_->observed += output.bytes;
    } else {
      const LinkId link = process_->links.at(output.to);
      output.kept = world_.network->Write(link, world_.saboteur->Out(link, output.bytes));
    }
  }
}

void SimServer::Close(engine::ConnectionId id, bool flush) {
  if (process_->died_of) return;
  world_.network->CloseByServer(process_->links.at(id), flush);
}

void SimServer::SetReading(engine::ConnectionId id, bool on) {
  if (id == process_->observer || process_->died_of) return;
  if (on && process_->turn.ending()) return;
  Network::Link& link = world_.network->link(process_->links.at(id));
  link.reading = on;
  if (!on) return;
  process_->to_read = true;
  if (!link.inbox.empty() || link.end_of_input || link.reset) world_.network->MarkNews(link.id);
}

void SimServer::Log(engine::LogLevel level, LogTopic /*topic*/, std::string_view message,
                    const LogFields& /*fields*/) {
  if (level >= engine::LogLevel::kWarn) world_.trace->Add("server: log: ", message);
}

// Backups are not simulated.
Status SimServer::BeginBackup(const engine::BackupJob& /*job*/) {
  return Status::ResourceExhausted("no backup is begun any more");
}

}  // namespace nowcalls::sim
