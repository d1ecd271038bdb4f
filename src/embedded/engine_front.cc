#include "embedded/engine_front.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/clock.h"
#include "base/quiet_thread.h"
#include "core/rules/rule_set.h"
#include "library/refusals.h"
#include "nowcalls/rule_source.h"
#include "nowcalls_version.h"

namespace nowcalls::embedded {
namespace {

constexpr int64_t kLookEveryMs = 1000;  // At the disk's room, and at the ledger's place.
constexpr int64_t kLookNearlyFullEveryMs = 100;

ClientOptions ClientOptionsOf(const EmbeddedOptions& options) {
  ClientOptions client;
  client.addresses = {"embedded"};
  client.name_space = options.name_space;
  client.client_id = options.client_id;
  client.rejoin = options.rejoin;
  client.timeout = options.timeout;
  client.fallback = Fallback::kFail;  // No other process has limits to go on with.
  client.log = options.log;
  return client;
}

// One connection is the whole program, so all waiters of a server may wait on it.
Limits LimitsOfProgram() {
  Limits limits;
  limits.waiters_per_connection_max = limits.waiters_max;
  return limits;
}

}  // namespace

Result<std::shared_ptr<EngineFront>> EngineFront::Open(const EmbeddedOptions& options) {
  // Signals are the program's: threads of the store and the loop take none.
  const SignalsBlocked blocked;  // For the threads of the store, too.
  Result<OpenedLedger> ledger = OpenLedger(options, LimitsOfProgram());
  if (!ledger.ok()) return ledger.status();
  std::shared_ptr<EngineFront> front(
      new EngineFront(options, ClientOptionsOf(options), *std::move(ledger)));
  if (Status started = front->StartLoop(); !started.ok()) {
    Lock lock(front->mutex_);
    front->CloseLedger(&lock);
    return started;
  }
  if (options.rule_sources.empty()) return front;
  // On the loop: what their threads deliver meanwhile waits until all have started.
  const Status sources = front->AtLoop([front = front.get(), &options] {
    Status started = front->sources_.Start(options.rule_sources);
    if (!started.ok()) front->broken_ = started;  // So nothing of them is committed.
    return started;
  });
  if (!sources.ok()) {
    (void)front->Front::Close(Milliseconds(0));
    return sources;
  }
  return front;
}

EngineFront::EngineFront(const EmbeddedOptions& options, const ClientOptions& client,
                         OpenedLedger ledger)
    : Front(client),
      options_(options),
      ledger_(std::move(ledger)),
      sources_([this](const engine::RuleSources::Change& change) {
        return AtLoop([&] { return change(engine_->RulesAt(Now())); });
      }) {
  for (std::string& note : ledger_.notes) Say(LogLevel::kWarning, std::move(note));
  engine::EngineOptions engine;
  engine.limits = LimitsOfProgram();
  engine.version = NOWCALLS_VERSION;
  engine.durability = options.sync ? "sync" : "none";
  engine.data_dir = ledger_.data_dir;
  // Restart grace counts from here: nobody could come back before.
  ledger_.recovered->core->Begin(Now());
  engine_ = std::make_unique<engine::Engine>(std::move(engine), ledger_.recovered->core.get(),
                                             static_cast<engine::Driver*>(this), Now());
  turn_.emplace(engine_.get(), &*ledger_.clock, static_cast<node::Io*>(this));
  LookAtDisk(BoottimeMs());
}

EngineFront::~EngineFront() = default;

// Parses on the caller's thread: a mistake costs the loop nothing.
Result<uint64_t> EngineFront::LoadRules(std::string_view name_space, std::string_view json) {
  const Result<RuleSink::CheckedSet> set = sources_.Check(kRpcRuleSource, name_space, json);
  if (!set.ok()) return set.status();
  NOWCALLS_RETURN_IF_ERROR(sources_.Replace({*set}));
  return uint64_t{(*set)->parsed.rules.size()};
}

Status EngineFront::AtLoop(const std::function<Status()>& job) {
  if (inherited()) return Status::FailedPrecondition(library::kInherited);
  // A source that starts calls its sink: the job of the start commits.
  if (OnLoopThread() && in_job_) return job();
  // The queued job refers to this frame, which waits for its end.
  std::promise<Status> promise;
  std::future<Status> done = promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (stopping()) return Status::Unavailable("the service is closed");
    if (OnLoopThread()) return Status::FailedPrecondition(library::kMustNotWait);
    jobs_.emplace_back([&] {
      in_job_ = true;
      const Status status = broken_ ? *broken_ : job();
      in_job_ = false;
      TakeTurn({});
      promise.set_value(broken_.value_or(status));
    });
    Wake();
  }
  return done.get();
}

// The loop.

void EngineFront::RunLoop() {
  Lock lock(mutex_);
  while (!stopping()) {
    // 1. Callbacks and log lines run without the mutex, so look again afterwards.
    if (DeliverAll(&lock)) continue;
    // 2. Take over as driver; the session does what its time asks for.
    AwaitTurn(&lock);
    const int64_t now_ms = BoottimeMs();
    if (!connection_ && now_ms >= session()->dialing().at_ms()) Connect(now_ms);
    const Status ticked = session()->Tick(now_ms);
    if (!ticked.ok()) closed_ = true;
    // 3. Move bytes both ways, decide, commit; scan and look at the disk.
    Exchange(&lock);
    if (!session()->has_events() && lines_.empty()) Sleep(&lock);
  }
  // The end. Calls asked before are done and answered, then the ledger closes.
  AwaitTurn(&lock);
  Exchange(&lock);
  StopSources(&lock);
  CloseLedger(&lock);
  DeliverAll(&lock);
}

bool EngineFront::DeliverAll(Lock* lock) {
  // While another thread drives, lines_ is the driver's.
  if (driving_ || lines_.empty()) return Deliver(lock);
  const auto lines = std::exchange(lines_, {});
  lock->unlock();
  for (const auto& [level, line] : lines) {
    if (options_.log) options_.log(level, line);
  }
  lock->lock();
  Deliver(lock);
  return true;
}

// The loop comes before waiting threads (loop_waits_). A hanging disk may hold the driver up;
// meanwhile timeouts end calls, and callbacks run.
void EngineFront::AwaitTurn(Lock* lock) {
  constexpr int64_t kTickMs = 10;
  loop_waits_ = true;
  while (driving_) {
    if (Deliver(lock)) continue;
    const int64_t now_ms = BoottimeMs();
    // Not ok is not lost: a connection that has to end does so when nobody drives.
    (void)session()->Tick(now_ms);
    if (session()->has_events()) continue;
    const int64_t wait_ms = std::clamp(SleepUntil(now_ms) - now_ms, kTickMs, kLookEveryMs);
    bell_.wait_for(*lock, Milliseconds(wait_ms), [this] { return rung_ || !driving_; });
    rung_ = false;
    Awake();
  }
  loop_waits_ = false;
}

void EngineFront::Connect(int64_t now_ms) {
  if (broken_) return session()->DialFailed(broken_->message(), now_ms);
  connection_ = engine_->OnConnect({.name = "embedded:0"}, Now());
  turn_due_ms_ = now_ms;
  reads_ = true;
  closed_ = false;
  session()->Connected(now_ms);
}

void EngineFront::Sleep(Lock* lock) {
  const int64_t now_ms = BoottimeMs();
  // The earliest of: a timeout of the session, a look at the disk, a scan, the turn's deadline.
  int64_t until_ms = std::min(SleepUntil(now_ms), look_due_ms_);
  if (!broken_) until_ms = std::min(until_ms, scan_ ? now_ms : turn_due_ms_);
  if (!has_input() && jobs_.empty() && until_ms > now_ms) {
    loop_sleeps_until_ms_ = until_ms;
    bell_.wait_for(*lock, Milliseconds(until_ms - now_ms), [this] { return rung_; });
  }
  rung_ = false;
  Awake();
}

// No job waits any more and none is taken, so a source may wait for its threads.
void EngineFront::StopSources(Lock* lock) {
  lock->unlock();
  sources_.Stop();
  lock->lock();
  // Threads may have asked and driven meanwhile.
  AwaitTurn(lock);
  Exchange(lock);
}

void EngineFront::CloseLedger(Lock* lock) {
  driving_ = true;
  lock->unlock();
  // Turns go on until the turn has closed the store; a commit that fails breaks out.
  if (!broken_) turn_->End();
  while (!broken_ && turn_->phase() != node::Phase::kClosed) {
    WorkBesideTurns();
    TakeTurn({});
  }
  // A broken ledger is closed without a sync; the next Open recovers it.
  if (broken_) CloseStore();
  turn_.reset();
  engine_.reset();
  ledger_.recovered.reset();
  ledger_.store.reset();
  lock->lock();
  connection_.reset();
  driving_ = false;
}

// Any thread.

void EngineFront::Exchange(Lock* lock) {
  // 1. Take the bytes of all calls asked so far: they become one batch.
  driving_ = true;
  std::string bytes;
  if (has_input()) {
    bytes = session()->output()->view();
    session()->output()->Clear();
  }
  std::vector<std::function<void()>> jobs;
  if (OnLoopThread()) jobs.swap(jobs_);
  // 2. Without the mutex: decide and commit. Other threads ask the next batch meanwhile.
  lock->unlock();
  TakeTurn(bytes);
  if (OnLoopThread()) WorkBesideTurns();
  for (const auto& job : jobs) job();
  lock->lock();

  // 3. With the mutex: hand the replies to the session.
  const int64_t now_ms = BoottimeMs();
  const std::string replies = std::exchange(replies_, {});
  if (connection_ && !replies.empty()) {
    const Status understood = session()->Received(replies, now_ms);
    if (!understood.ok()) closed_ = true;
  }
  // 4. A closed connection, or a failed ledger, disconnects the session; Connect dials again.
  if (connection_ && (closed_ || broken_)) {
    if (!broken_) engine_->OnDisconnect(*connection_, Now());
    turn_due_ms_ = now_ms;
    connection_.reset();
    session()->Disconnected(broken_ ? broken_->message() : "the engine ended it", now_ms);
  }
  // Nothing can come any more, so no caller waits for its timeout.
  if (broken_) session()->Abandon(broken_->message(), now_ms);
  // 5. Hand the turn on: to threads whose answer has come, and to the loop first if it waits.
  driving_ = false;
  TellChange();
  if (loop_waits_) bell_.notify_one();
}

void EngineFront::WaitFor(Waiter* waiter, Lock* lock) {
  // Nobody drives: commit the own call here, which saves two changes of threads.
  if (!driving_ && !loop_waits_ && has_input()) {
    Exchange(lock);
    return PassOn();
  }
  const auto place = waiting_.insert(waiting_.end(), waiter);
  waiter->changed.wait(*lock);
  waiting_.erase(place);
}

void EngineFront::PassOn() {
  if (driving_ || loop_waits_) return;  // They look for themselves.
  // Work of the loop: callbacks, lines, scans, and times before the end of its sleep.
  const bool due = broken_ || !connection_ || session()->has_events() || !lines_.empty() ||
                   session()->Wakeup() < loop_sleeps_until_ms_ || scan_ ||
                   turn_due_ms_ < loop_sleeps_until_ms_;
  if (due) return Wake();
  if (!has_input()) return;
  for (Waiter* waiter : waiting_) {
    // Calls that were asked meanwhile: a thread that still waits drives them.
    if (!waiter->told) return waiter->changed.notify_one();
  }
  Wake();
}

void EngineFront::Flush(bool waits) {
  if (!waits && !OnLoopThread() && connection_ && !session()->output()->empty()) Wake();
}

void EngineFront::Wake() {
  rung_ = true;
  bell_.notify_one();
}

// The driver, without the mutex.

void EngineFront::TakeTurn(std::string_view bytes) {
  if (broken_) return;
  if (!bytes.empty()) engine_->OnBytes(*connection_, bytes, Now());
  turn_due_ms_ = turn_->Run() + BoottimeMs();
}

void EngineFront::WorkBesideTurns() {
  if (broken_) return;
  // The scan blocks the loop as driver; a service has no scan thread.
  if (const auto request = std::exchange(scan_, std::nullopt)) {
    ledger::ScanResult found;
    ledger_.store->Scan(*request, &found);
    const Status scanned = turn_->OnScanned(found);
    if (!scanned.ok()) return Fail(scanned);
    TakeTurn({});
  }
  LookAtDisk(BoottimeMs());
}

bool EngineFront::Commit(const ledger::CommitBatch& batch, bool /*at_once*/) {
  const Status committed = ledger_.store->Commit(batch);
  if (!committed.ok()) Fail(committed);
  return committed.ok();
}

void EngineFront::Disconnect(Instant now) {
  if (connection_) engine_->OnDisconnect(*connection_, now);
  disconnected_ = true;
}

void EngineFront::CloseStore() {
  Status closed;
  // Batches of a service without sync reach the disk at the latest here.
  if (!broken_) closed = ledger_.store->Sync();
  const Status shut = ledger_.close();
  if (closed.ok()) closed = shut;
  if (!closed.ok()) Say(LogLevel::kWarning, "closing the ledger: " + closed.message());
  turn_->OnClosed();
}

void EngineFront::LookAtDisk(int64_t now_ms) {
  if (broken_) return;
  // A background write of the store failed, on a thread of the store.
  if (const std::optional<Status> failure = ledger_.failure->Get()) return Fail(*failure);
  if (now_ms < look_due_ms_) return;
  // Room for grants; looks come ten times as often near the low mark.
  const std::optional<uint64_t> free_bytes = ledger_.store->FreeBytes();
  const bool nearly_full = free_bytes && *free_bytes < 2 * LimitsOfProgram().disk_free_high();
  look_due_ms_ = now_ms + (nearly_full ? kLookNearlyFullEveryMs : kLookEveryMs);
  engine_->OnDiskSpace(free_bytes, ledger_.store->FreeFiles());
  // The directory was moved or replaced: nothing may be written there.
  const Status place = ledger_.store->CheckPlace();
  if (!place.ok()) Fail(place);
}

// Replies that the engine has ready are dropped: the ledger may not have them.
void EngineFront::Fail(const Status& failure) {
  broken_ = failure.WithContext("the ledger failed");
  replies_.clear();
  Say(LogLevel::kWarning, broken_->message());
}

// engine::Driver.

void EngineFront::Write(std::span<engine::Output> outputs) {
  for (engine::Output& output : outputs) {
    // A turn whose commit failed goes on to its end: memory says more than the ledger now.
    if (!broken_) replies_ += output.bytes;
    output.kept = 0;
  }
}

void EngineFront::Close(engine::ConnectionId /*id*/, bool /*flush*/) { closed_ = true; }

void EngineFront::SetReading(engine::ConnectionId /*id*/, bool on) { reads_ = on; }

Status EngineFront::BeginBackup(const engine::BackupJob& /*job*/) {
  return Status::ResourceExhausted("an embedded ledger is copied by nowcalls-server alone");
}

void EngineFront::Log(engine::Severity severity, LogTopic /*topic*/, std::string_view message,
                      const LogFields& /*fields*/) {
  if (severity == engine::Severity::kDebug) return;
  Say(severity == engine::Severity::kInfo ? LogLevel::kInfo : LogLevel::kWarning,
      std::string(message));
}

}  // namespace nowcalls::embedded
