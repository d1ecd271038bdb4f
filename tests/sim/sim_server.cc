#include "sim/sim_server.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "node/limits.h"
#include "sim/lanes.h"
#include "sim/ledger_dump.h"
#include "sim/loading_tables.h"
#include "sim/sim_process.h"
#include "sim/stale_log.h"
#include "wire/client_messages.h"
#include "wire/rows.h"

namespace nowcalls::sim {
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

// By the marks of the ledger alone, whatever recovery makes of them.
ClockGap SimServer::GapOf(const recovery::RecoveredLedger& ledger,
                          const std::optional<Takeover>& takeover) const {
  if (!takeover) {
    const bool rebooted = ledger.time.has_value() && !ledger.time->same_boot;
    return rebooted ? ClockGap::kAnyhow : ClockGap::kNone;
  }
  const std::optional<BootId> boot = DumpLedger(world_.store).boot;
  if (!boot || *boot == world_.machine->Sample().boot_id) return ClockGap::kNone;
  return takeover->observed.At(0) ? ClockGap::kLate : ClockGap::kAnyhow;
}

Status SimServer::Start(const std::optional<Takeover>& takeover) {
  LoadingTables tables(world_.store, world_.saboteur);
  ClockSample clocks = world_.machine->Sample();
  if (world_.saboteur->trusts_clocks()) {
    clocks.boot_id = DumpLedger(world_.store).boot.value_or(clocks.boot_id);
  }
  const auto sample = [clocks]() -> Result<ClockSample> { return clocks; };
  if (!world_.saboteur->replays()) world_.store->ForgetUnapplied();
  if (world_.saboteur->hides_reboots()) world_.store->Deny();
  core::CoreOptions options = options_;
  options.term = takeover ? takeover->claim.claim.term : 0;
  StaleLog log(world_.store);
  if (takeover && world_.saboteur->misses_last()) log.Hide(world_.store->last() - 1);
  Result<recovery::RecoveredLedger> ledger = recovery::Recover(
      &log, &tables, options,
      {.sample = sample, .observed = takeover ? takeover->observed : ledger::ObservedTime()});
  if (!ledger.ok()) return ledger.status();
  ++incarnation_;
  first_batch_ = true;
  sync_planned_ = false;
  clock_gap_ = GapOf(*ledger, takeover);
  const Instant now = ledger->clock.At(world_.machine->BoottimeMs());
  process_ = std::make_unique<Process>(
      *std::move(ledger), takeover ? std::optional(takeover->claim) : std::nullopt, this, now);
  if (takeover) process_->lease.Renewed(takeover->claimed_ms, cluster::Lease::kTtlMs);
  const char* const how = clock_gap_ == ClockGap::kNone   ? ""
                          : clock_gap_ == ClockGap::kLate ? ", by the time that it has seen"
                                                          : ", after a reboot";
  world_.trace->Add("server: ready with ", process_->ledger.tokens, " tokens, ",
                    process_->ledger.sessions, " sessions", how);
  if (watch_.ready) watch_.ready();
  world_.network->ServerStarted(world_.number);
  RequestTurn(world_.timeline->now_us());
  if (takeover) Renew();
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
  process_->terminated = true;
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
  // In a cluster it may be on its way, and come to the log or not.
  bool survives = process.commit.has_value() && world_.shared == nullptr;
  if (cause == Fault::kCommitFailed) {
    survives = false;
  } else if (survives && cause != Fault::kCommitFailedWithEffect) {
    survives = survives_ ? *survives_ : prng_.Below(2) == 0;
  }
  if (cause != Fault::kTerminate) world_.faults->Count(cause);
  const char* const fate = world_.shared != nullptr ? "is in doubt"
                           : survives               ? "survives"
                                                    : "is lost";
  world_.trace->Add("server: dies of ", FaultName(cause), ", the batch under way ",
                    process.commit.has_value() ? fate : "is none");
  if (survives) Append(*process.commit);  // Recovery applies it.
  if (cause == Fault::kTerminate) Sync();
  if (cause == Fault::kTerminate && process.claim && world_.shared != nullptr) {
    world_.shared->Commit(world_.shared->txns().Resign(*process.claim));
  }
  process_.reset();
  ++incarnation_;
  calls_left_ = -1;
  survives_.reset();
  if (std::exchange(reboots_, false)) GoDown();
  world_.network->ServerDied(world_.number);
  if (watch_.died) watch_.died(/*orderly=*/cause == Fault::kTerminate);
}

// A writer that was deposed. Of what it knew nothing is left.
void SimServer::Retire() {
  NOWCALLS_CHECK(process_->turn.phase() == node::Phase::kDeposed);
  world_.faults->Count(Fault::kDeposed);
  world_.trace->Add("server: is deposed in term ", process_->claim->claim.term,
                    process_->commit.has_value() ? ", with a batch under way" : "");
  const bool ends = process_->terminated;
  process_.reset();
  ++incarnation_;
  calls_left_ = -1;
  reboots_ = false;
  survives_.reset();
  if (watch_.died) watch_.died(/*orderly=*/false);
  if (!ends && watch_.deposed) watch_.deposed();
}

void SimServer::GoDown() {
  if (!world_.saboteur->hides_reboots()) world_.machine->Reboot();
  if (world_.shared != nullptr) return world_.store->LoseTables();
  const size_t at_risk = world_.store->at_risk();
  if (at_risk == 0) return;
  const size_t kept = prng_.Below(at_risk + 1);
  if (kept == at_risk) return;
  world_.faults->Count(Fault::kBatchesLost);
  world_.trace->Add("machine: of ", at_risk, " batches that were not synced ", kept, " are left");
  world_.store->Lose(kept);
  if (watch_.lost) watch_.lost();
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

// As server::Server::DoTurn: nothing leaves of a writer whose lease may be over.
void SimServer::Turn() {
  if (!Poll() || !Lives()) return;
  if (LeaseIsOver()) return Depose();
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
  for (const LinkId id : world_.network->TakeNews(world_.number)) {
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
  if (!process.commit_done && !process.commit_refused) return true;
  if (!Lives()) return false;
  if (process.commit_refused) {
    Depose();
    return false;
  }
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
  if (process.turn.phase() == node::Phase::kDeposed) return Retire();
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

void SimServer::Write(std::span<engine::Output> outputs) {
  NOWCALLS_CHECK(process_->turn.phase() != node::Phase::kDeposed);
  if (process_->in_turn && !Lives()) return;
  const bool may_leave = !LeaseIsOver();  // As server::Server::Write.
  for (engine::Output& output : outputs) {
    if (output.to == process_->observer) {
      process_->observed += output.bytes;
    } else if (may_leave) {
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

void SimServer::Log(engine::Severity severity, LogTopic /*topic*/, std::string_view message,
                    const LogFields& /*fields*/) {
  if (severity >= engine::Severity::kWarn) world_.trace->Add("server: log: ", message);
}

// Backups are not simulated.
Status SimServer::BeginBackup(const engine::BackupJob& /*job*/) {
  return Status::ResourceExhausted("no backup is begun any more");
}

}  // namespace nowcalls::sim
