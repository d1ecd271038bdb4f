#include "server/server.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "nowcalls_version.h"
#include "server/listen_address.h"
#include "server/logging.h"
#include "server/settings.h"

namespace nowcalls::server {
namespace {

// Those who open all connections there are must not lock the operator out, who can come from the
// machine itself. Of few connections a tenth.
constexpr uint32_t kReservedConnections = 16;

// Of why a backup failed: room for the path of its directory, which a client chose, and the reason.
constexpr size_t kFailureBytesMax = 1024;

engine::EngineOptions MakeEngineOptions(const ServerConfig& config) {
  return {.limits = config.core.limits,
          .version = NOWCALLS_VERSION,
          .durability = config.durability.ToString(),
          .data_dir = config.data_dir,
          .expire_strategy = config.expire_strategy_name};
}

}  // namespace

Server::Server(const ServerConfig& config, RecoveredLedger* ledger, store::Store* store,
               BackupThread::Make make_backup, std::function<Status()> close_store)
    : config_(config),
      ledger_(ledger),
      store_(store),
      close_store_(std::move(close_store)),
      engine_(MakeEngineOptions(config), ledger->core.get(), this, ledger->Now()),
      peer_lines_(config.core.limits.log_lines_per_second_max),
      act_lines_(config.core.limits.log_act_lines_per_second_max),
      backup_(
          std::move(make_backup),
          {.begun =
               [](const engine::BackupJob& job) {
                 LogAt(LogLevel::kInfo,
                       "administrator " + job.by + " began a backup to " + Shortened(job.to));
               },
           .done = [this](
                       const engine::BackupJob& job, bool begun,
                       const Result<backup::Manifest>& made) { OnBackupDone(job, begun, made); }}),
      rule_sink_(&engine_, [this] { return Now(); }),
      sockets_(config.no_io_uring ? SocketBatch::Means::kSystemCalls : SocketBatch::Means::kBest) {}

Server::~Server() = default;

void Server::Start(std::unique_ptr<Listener> listener) {
  NOWCALLS_CHECK(uv_loop_init(&loop_) == 0);
  engine_.OnDiskSpace(store_->FreeBytes());
  commit_.emplace(
      &loop_, store_, config_.durability,
      CommitThread::Events{
          .done = [this] { OnCommitDone(); },
          .fail = [](const char* what, const Status& failure) { DieOfIoError(what, failure); },
          .slow = [this](const std::string& what) { LogInlineCommit(what); }},
      DiskWatch{2 * config_.core.limits.disk_free_high(),
                [this](std::optional<uint64_t> free_bytes) { OnDiskSpace(free_bytes); }});
  scan_.emplace(&loop_, store_, [this](const ledger::ScanResult& result) { OnScanDone(result); });

  check_.data = this;
  NOWCALLS_CHECK(uv_check_init(&loop_, &check_) == 0);
  NOWCALLS_CHECK(uv_check_start(&check_, [](uv_check_t* handle) {
                   static_cast<Server*>(handle->data)->sockets_.Receive();
                 }) == 0);
  prepare_.data = this;
  NOWCALLS_CHECK(uv_prepare_init(&loop_, &prepare_) == 0);
  NOWCALLS_CHECK(uv_prepare_start(&prepare_, [](uv_prepare_t* handle) {
                   static_cast<Server*>(handle->data)->Pump();
                 }) == 0);
  NOWCALLS_CHECK(uv_timer_init(&loop_, &timer_) == 0);
  for (const auto& [handle, signal] :
       {std::pair(&sigterm_, SIGTERM), std::pair(&sigint_, SIGINT), std::pair(&sighup_, SIGHUP)}) {
    handle->data = this;
    NOWCALLS_CHECK(uv_signal_init(&loop_, handle) == 0);
    NOWCALLS_CHECK(uv_signal_start(
                       handle,
                       [](uv_signal_t* received, int number) {
                         static_cast<Server*>(received->data)->OnSignal(number);
                       },
                       signal) == 0);
  }
  WatchRules();
  listener_ = std::move(listener);
  listener_->Start(
      &loop_, [this](int fd, const std::string& peer) { OnAccept(fd, peer); },
      [this](const std::string& reason) { LogAboutPeer(LogLevel::kWarn, reason); });
}

void Server::Run() {
  uv_run(&loop_, UV_RUN_DEFAULT);
  NOWCALLS_CHECK(phase_ == Phase::kClosed);
  NOWCALLS_CHECK(uv_loop_close(&loop_) == 0);
}

void Server::Write(std::span<engine::Output> outputs) {
  for (const engine::Output& output : outputs) {
    Connection* const connection = peers_[output.to].connection.get();
    if (connection->sends()) {
      sockets_.Send(connection, output.bytes);
    } else {
      connection->Keep(output.bytes);
    }
  }
  sockets_.SendAll();
  for (engine::Output& output : outputs) output.kept = peers_[output.to].connection->kept();
}

void Server::Close(engine::ConnectionId id, bool flush) {
  if (flush) {
    SetCloseBy(id, Now() + FlushMsMax());
    peers_[id].connection->CloseAfterFlush();
  } else {
    peers_[id].connection->CloseNow();
  }
}

void Server::SetReading(engine::ConnectionId id, bool on) {
  if (on && draining()) return;
  to_read_ |= on;
  peers_[id].connection->SetReading(on);
}

void Server::Log(engine::LogLevel level, std::string_view message) {
  const LogTopic topic = TopicOf(message);
  if (topic == LogTopic::kPeer) return LogAboutPeer(level, message);
  if (topic == LogTopic::kServer || act_lines_.Admit(Now())) LogAt(level, message);
}

// Peers must not be able to fill the disk.
void Server::LogAboutPeer(engine::LogLevel level, std::string_view message) {
  if (peer_lines_.Admit(Now())) LogAt(level, message);
}

Status Server::BeginBackup(const engine::BackupJob& job) { return backup_.Begin(&loop_, job); }

void Server::OnReadable(Connection* connection) { sockets_.Readable(connection); }

void Server::OnBytes(engine::ConnectionId id, std::string_view bytes) {
  engine_.OnBytes(id, bytes, Now());
}

void Server::OnEndOfInput(engine::ConnectionId id) { engine_.OnEndOfInput(id, Now()); }

void Server::OnSent(engine::ConnectionId id, size_t kept) { engine_.OnSent(id, kept, Now()); }

void Server::OnFlushing(engine::ConnectionId id) {
  if (!draining()) SetCloseBy(id, Now() + FlushMsMax());
}

void Server::OnLingering(engine::ConnectionId id) {
  SetCloseBy(id, std::min(peers_[id].close_by, Now() + kCloseMsMax));
}

void Server::OnClosed(engine::ConnectionId id) {
  SetCloseBy(id, kNever);
  peers_[id].connection.reset();
  --connections_;
  spdlog::debug("connection {} is closed, {} are open", id, connections_);
  engine_.OnDisconnect(id, Now());
}

void Server::OnAccept(int fd, const std::string& peer) {
  to_read_ = true;
  const uint32_t connections_max = config_.core.limits.connections_max;
  const uint32_t reserved = std::min(kReservedConnections, connections_max / 10);
  const bool room = connections_ + reserved < connections_max || IsFromThisHost(fd);
  const auto id = room ? engine_.OnConnect(peer, Now()) : std::nullopt;
  if (!id.has_value()) {
    close(fd);
    LogAboutPeer(LogLevel::kWarn, "refused a connection from " + peer + ": connections-max is " +
                                      std::to_string(connections_max) + ", of which " +
                                      std::to_string(reserved) + " are for this machine");
    return;
  }
  auto connection = Connection::Open(&loop_, fd, *id, this);
  if (connection == nullptr) {
    engine_.OnDisconnect(*id, Now());
    LogAboutPeer(LogLevel::kWarn,
                 "refused a connection from " + peer + ": the system has no memory to watch it");
    return;
  }
  if (*id >= peers_.size()) peers_.resize(*id + 1);
  NOWCALLS_CHECK(peers_[*id].connection == nullptr);
  ++connections_;
  spdlog::debug("connection {} from {}, {} are open", *id, peer, connections_);
  peers_[*id].connection = std::move(connection);
}

void Server::OnCommitDone() {
  if (!engine_runs()) return;
  const Instant now = Now();
  LogCommit(commit_watch_.Ended(now));
  engine_.OnCommitDone(now);
}

void Server::OnDiskSpace(std::optional<uint64_t> free_bytes) {
  if (engine_runs()) engine_.OnDiskSpace(free_bytes);
}

void Server::OnScanDone(const ledger::ScanResult& result) {
  sockets_.Receive();  // What the loop has found already comes first.
  const Status status = engine_.OnScanDone(result, Now());
  if (!status.ok()) DieOfIoError("scan", status);
}

void Server::OnBackupDone(const engine::BackupJob& job, bool begun,
                          const Result<backup::Manifest>& made) {
  const engine::ConnectionId asker = job.asker;
  if (made.ok()) {
    LogAt(LogLevel::kInfo, "backup to " + Shortened(job.to) + " done, " + made->CountsText());
  } else if (begun) {
    LogAt(LogLevel::kWarn,
          "backup failed: " + Shortened(made.status().message(), kFailureBytesMax));
  } else {
    LogAboutPeer(LogLevel::kWarn, "connection " + job.by + " was refused a backup: " +
                                      Shortened(made.status().message()));
  }
  if (!engine_runs()) return;
  if (!made.ok()) return engine_.OnBackupDone(asker, made.status(), Now());
  engine_.OnBackupDone(asker,
                       wire::BackupReply{.batch_number = made->batch_number,
                                         .tokens = made->tokens,
                                         .now_calls = made->now_calls,
                                         .sessions = made->sessions,
                                         .rules = made->rules,
                                         .history = made->history,
                                         .files = made->files.size(),
                                         .bytes = made->bytes()},
                       Now());
}

void Server::Pump() {
  commit_->Collect();  // A batch that came to the disk while the loop was reading.
  Instant now = Now();
  if (engine_runs()) engine_.ResumeInput(now);
  const bool poll_at_once = std::exchange(to_read_, false) || engine_.input_waits();
  const bool stalled = engine_.input_held() && commit_watch_.UnderWayMs(now) > CatchUp::kLateMs;
  const bool hold = catch_up_.Holds(now, poll_at_once || engine_.input_held(), stalled);
  if (catch_up_.polled()) CloseOverdue(now);
  ReportSuppressed(now);
  ReportNoRing();
  LogCommit(commit_watch_.UnderWay(now));
  if (engine_runs()) {
    if (!hold) BeginScan(now);  // First, so that it goes on beside what is done here.
    if (hold && catch_up_.polled()) engine_.CloseTooSlow(now);
    if (!hold && engine_.NextDeadline() <= now) engine_.OnTime(now);
    // Who catches up must not be held up again, and who drains keeps a limit.
    const bool may_be_inline = !hold && !draining();
    BeginCommit(may_be_inline);
    engine_.TurnEnd();
    // TurnEnd may have ended sessions of peers that do not read.
    while (BeginCommit(may_be_inline)) engine_.TurnEnd();
  }
  const Instant began = std::exchange(now, Now());
  if (now != began) uv_update_time(&loop_);
  // Who drains reads no more, and a disk that hangs must not hold its limit up.
  if (draining() && catch_up_.polled()) ContinueDrain(now);
  if (phase_ != Phase::kClosed) ArmTimer(began, now, hold);
}

void Server::BeginScan(Instant now) {
  if (scan_->busy()) return;
  const auto request = engine_.BeginScan(now);
  if (request.has_value()) scan_->Scan(*request);
}

// True: it is done already, and there may be answers to send.
bool Server::BeginCommit(bool may_be_inline) {
  if (commit_->busy()) return false;
  // Not the beginning of the turn: a commit within it may have taken long.
  const Instant now = Now();
  const ledger::CommitBatch* batch = engine_.BeginCommit(Clocks(), now);
  if (batch == nullptr) return false;
  if (may_be_inline && commit_->CommitHere(*batch)) {
    engine_.OnCommitDone(Now());
    return true;
  }
  commit_watch_.Began(now);
  commit_->Commit(batch);
  return false;
}

void Server::LogCommit(const std::optional<std::string>& what) const {
  if (!what.has_value()) return;
  LogAt(LogLevel::kWarn, *what + "; grants wait for the disk under " + config_.data_dir);
}

void Server::LogInlineCommit(const std::string& what) const {
  LogAt(LogLevel::kWarn,
        what +
            " on the thread that serves, which answers nobody meanwhile; look at the disk under " +
            config_.data_dir);
}

void Server::CloseOverdue(Instant now) {
  while (!closing_.empty() && closing_.begin()->first <= now.ms) {
    const engine::ConnectionId id = closing_.begin()->second;
    SetCloseBy(id, kNever);
    peers_[id].connection->CloseNow();
  }
}

void Server::ReportNoRing() {
  if (sockets_.why_alone().empty() || std::exchange(no_ring_reported_, true)) return;
  LogAt(LogLevel::kInfo, "io_uring is not to be had (" + sockets_.why_alone() +
                             "), so each socket takes system calls of its own");
}

void Server::ReportSuppressed(Instant now) {
  const auto report = [now](LogLimiter* lines, const std::string& about) {
    if (now < lines->NextReport()) return;
    LogAt(LogLevel::kWarn, std::to_string(lines->TakeSuppressed()) + " log lines about " + about +
                               " were suppressed in the last second");
  };
  report(&peer_lines_, "peers");
  report(&act_lines_, "what administrators changed");
}

// While what is due waits for input, its moment has passed and says nothing; a commit wakes the
// loop when it is done.
void Server::ArmTimer(Instant began, Instant now, bool hold) {
  Instant wake = std::min({now + kSleepMsMax, peer_lines_.NextReport(), act_lines_.NextReport(),
                           commit_watch_.NextReport(), drain_by_});
  if (!closing_.empty()) wake = std::min(wake, Instant{closing_.begin()->first});
  if (engine_runs()) wake = std::min(wake, engine_.NextDeadline());
  if (hold) wake = engine_.input_held() && !engine_.input_waits() ? now + kHeldPollMs : now;
  // What came while a commit of this turn stalled is read before what is due is looked at.
  const bool stalled = now - began > CatchUp::kLateMs;
  wake = stalled ? now : std::max(wake, now);
  catch_up_.BeforePoll(stalled ? began : wake);
  // The callback has nothing to do: the loop wakes and Pump follows.
  NOWCALLS_CHECK(uv_timer_start(
                     &timer_, [](uv_timer_t*) {}, static_cast<uint64_t>(wake - now), 0) == 0);
}

void Server::SetCloseBy(engine::ConnectionId id, Instant when) {
  Peer& peer = peers_[id];
  if (peer.close_by != kNever) closing_.erase({peer.close_by.ms, id});
  if (when != kNever) closing_.emplace(when.ms, id);
  peer.close_by = when;
}

ClockSample Server::Clocks() const { return {BoottimeMs(), WallMs(), ledger_->boot_id}; }

}  // namespace nowcalls::server
