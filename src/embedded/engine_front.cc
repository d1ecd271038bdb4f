#include "embedded/engine_front.h"

#include <algorithm>
#include <future>
#include <utility>

#include "base/clock.h"
#include "core/rules/rule_set.h"
#include "nowcalls/rule_source.h"
#include "nowcalls_version.h"
#include "store/disk/ledger_lock.h"
#include "store/memory_store.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::embedded {
namespace {

constexpr int64_t kLookEveryMs = 1000;  // At the disk's room, and at the ledger's place.

ClientOptions ClientOptionsOf(const EmbeddedOptions& options) {
  ClientOptions client;
  client.addresses = {"embedded"};
  client.name_space = options.name_space;
  client.client_id = options.client_id;
  client.timeout = options.timeout;
  client.log = options.log;
  return client;
}

}  // namespace

Result<EngineFront::Ledger> EngineFront::OpenLedger(const EmbeddedOptions& options) {
  Ledger ledger;
  if (options.data_dir.empty()) {
    const auto key = RandomBits128();
    ledger.store = std::make_unique<store::MemoryStore>(ledger::Format{.token_id_key = key});
    ledger.close = [] { return Status::Ok(); };
  } else {
    auto lock = store::LedgerLock::Take(options.data_dir);
    if (!lock.ok()) return lock.status();
    store::RocksStoreOptions rocks;
    rocks.durability = options.sync ? store::Durability::kSync : store::Durability::kNone;
    rocks.on_background_error = [failure = ledger.failure](const Status& what) {
      const std::lock_guard guard(failure->mutex);
      if (!failure->what) failure->what = what;
    };
    auto store = store::RocksStore::Open(*std::move(lock), rocks);
    if (!store.ok()) return store.status();
    ledger.close = [rocks_store = store->get()] { return rocks_store->Close(); };
    auto recovered = recovery::Recover(store->get(), {});
    if (!recovered.ok()) return recovered.status();
    NOWCALLS_RETURN_IF_ERROR((*store)->Accept());
    ledger.recovered = *std::move(recovered);
    ledger.store = *std::move(store);
    return ledger;
  }
  auto recovered = recovery::Recover(ledger.store.get(), {});
  if (!recovered.ok()) return recovered.status();
  ledger.recovered = *std::move(recovered);
  return ledger;
}

Result<std::shared_ptr<EngineFront>> EngineFront::Open(const EmbeddedOptions& options) {
  Result<Ledger> ledger = OpenLedger(options);
  if (!ledger.ok()) return ledger.status();
  std::shared_ptr<EngineFront> front(
      new EngineFront(options, ClientOptionsOf(options), *std::move(ledger)));
  front->StartLoop();
  return front;
}

EngineFront::EngineFront(const EmbeddedOptions& options, const ClientOptions& client, Ledger ledger)
    : Front(client), options_(options), ledger_(std::move(ledger)) {
  engine::EngineOptions engine;
  engine.version = NOWCALLS_VERSION;
  engine.durability = options.sync ? "sync" : "none";
  engine.data_dir = options.data_dir;
  // Nobody could come back before.
  ledger_.recovered->core->Begin(Now());
  engine_ = std::make_unique<engine::Engine>(std::move(engine), ledger_.recovered->core.get(),
                                             static_cast<engine::Driver*>(this), Now());
}

EngineFront::~EngineFront() = default;

Result<uint64_t> EngineFront::LoadRules(std::string_view name_space, std::string_view json) {
  if (OnLoopThread()) {
    return Status::FailedPrecondition("a callback must not wait for the thread that it runs on");
  }
  std::promise<Result<uint64_t>> promise;
  std::future<Result<uint64_t>> loaded = promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (stopping()) return Status::Unavailable("the service is closed");
    jobs_.emplace_back([&] {
      if (broken_) return promise.set_value(Result<uint64_t>(*broken_));
      RuleSink* const sink = engine_->RulesAt(Now());
      const Result<RuleSink::CheckedSet> set = sink->Check(kRpcRuleSource, name_space, json);
      Status status = set.status();
      if (set.ok()) status = sink->Replace({*set});
      CommitAll();
      if (broken_) status = *broken_;
      if (!status.ok()) return promise.set_value(Result<uint64_t>(status));
      promise.set_value(Result<uint64_t>(uint64_t{(*set)->parsed.rules.size()}));
    });
    Wake();
  }
  return loaded.get();
}

// The loop.

void EngineFront::RunLoop() {
  Lock lock(mutex_);
  while (!stopping()) {
    if (Deliver(&lock)) continue;
    const int64_t now_ms = BoottimeMs();
    if (!connection_ && now_ms >= session()->dialing().at_ms()) Connect(now_ms);
    const Status ticked = session()->Tick(now_ms);
    if (!ticked.ok()) closed_ = true;
    Exchange(&lock);
    if (!session()->has_events()) Sleep(&lock);
  }
  // What was asked before is done and answered.
  Exchange(&lock);
  lock.unlock();
  CloseLedger();
  lock.lock();
}

void EngineFront::Connect(int64_t now_ms) {
  if (broken_) return session()->DialFailed(broken_->message(), now_ms);
  connection_ = engine_->OnConnect("embedded:0", Now());
  reads_ = true;
  closed_ = false;
  session()->Connected(now_ms);
}

// Moves the bytes of the session through the engine, and runs jobs.
void EngineFront::Exchange(Lock* lock) {
  std::string bytes;
  if (connection_ && reads_) {
    bytes = session()->output()->view();
    session()->output()->Clear();
  }
  std::vector<std::function<void()>> jobs = std::exchange(jobs_, {});
  lock->unlock();
  Turn(bytes);
  for (const auto& job : jobs) job();
  lock->lock();
  const int64_t now_ms = BoottimeMs();
  const std::string replies = std::exchange(replies_, {});
  if (connection_ && !replies.empty()) {
    const Status understood = session()->Received(replies, now_ms);
    if (!understood.ok()) closed_ = true;
  }
  if (connection_ && (closed_ || broken_)) {
    if (!broken_) engine_->OnDisconnect(*connection_, Now());
    connection_.reset();
    session()->Disconnected(broken_ ? broken_->message() : "the engine ended it", now_ms);
  }
  TellChange();
}

void EngineFront::Sleep(Lock* lock) {
  const int64_t now_ms = BoottimeMs();
  int64_t until_ms = std::min(SleepUntil(now_ms), look_due_ms_);
  if (!broken_) {
    const Instant due = engine_->NextDeadline();
    if (due != kNever) until_ms = std::min(until_ms, now_ms + std::max<int64_t>(0, due - Now()));
    if (engine_->input_waits()) until_ms = now_ms;
  }
  const bool waits = connection_ && reads_ && !session()->output()->empty();
  if (!waits && jobs_.empty() && until_ms > now_ms) {
    bell_.wait_for(*lock, Milliseconds(until_ms - now_ms), [this] { return rung_; });
  }
  rung_ = false;
  Awake();
}

void EngineFront::Flush() {
  if (OnLoopThread() || !connection_ || session()->output()->empty()) return;
  Wake();
}

void EngineFront::Wake() {
  rung_ = true;
  bell_.notify_one();
}

// The engine, without the mutex.

void EngineFront::Turn(std::string_view bytes) {
  if (broken_) return;
  const int64_t now_ms = BoottimeMs();
  if (!bytes.empty() && connection_) engine_->OnBytes(*connection_, bytes, Now());
  if (engine_->input_waits()) engine_->ResumeInput(Now());
  if (engine_->NextDeadline() <= Now()) engine_->OnTime(Now());
  if (const auto request = engine_->BeginScan(Now())) {
    ledger::ScanResult found;
    ledger_.store->Scan(*request, &found);
    const Status scanned = engine_->OnScanDone(found, Now());
    if (!scanned.ok()) return Fail(scanned);
  }
  CommitAll();
  LookAtDisk(now_ms);
}

void EngineFront::CommitAll() {
  if (broken_) return;
  while (const ledger::CommitBatch* batch =
             engine_->BeginCommit(ledger_.recovered->Clocks(), Now())) {
    const Status committed = ledger_.store->Commit(*batch);
    if (!committed.ok()) return Fail(committed);
    engine_->OnCommitDone(Now());
  }
  engine_->TurnEnd();
}

void EngineFront::LookAtDisk(int64_t now_ms) {
  {
    const std::lock_guard guard(ledger_.failure->mutex);
    if (ledger_.failure->what) return Fail(*ledger_.failure->what);
  }
  if (now_ms < look_due_ms_) return;
  look_due_ms_ = now_ms + kLookEveryMs;
  engine_->OnDiskSpace(ledger_.store->FreeBytes());
  const Status place = ledger_.store->CheckPlace();
  if (!place.ok()) Fail(place);
}

// What the engine would still say is not told.
void EngineFront::Fail(const Status& failure) {
  broken_ = failure.WithContext("the ledger failed");
  replies_.clear();
  if (options_.log) options_.log(LogLevel::kWarning, broken_->message());
}

void EngineFront::CloseLedger() {
  if (!broken_) {
    engine_->BeginShutdown(Now());
    CommitAll();
  }
  Status closed = broken_ ? Status::Ok() : ledger_.store->Sync();
  if (closed.ok()) closed = ledger_.close();
  if (!closed.ok() && options_.log) {
    options_.log(LogLevel::kWarning, "closing the ledger: " + closed.message());
  }
  engine_.reset();
  ledger_.recovered.reset();
  ledger_.store.reset();
}

// engine::Driver.

void EngineFront::Write(std::span<engine::Output> outputs) {
  for (engine::Output& output : outputs) {
    replies_ += output.bytes;
    output.kept = 0;
  }
}

void EngineFront::Close(engine::ConnectionId /*id*/, bool /*flush*/) { closed_ = true; }

void EngineFront::SetReading(engine::ConnectionId /*id*/, bool on) { reads_ = on; }

Status EngineFront::BeginBackup(const engine::BackupJob& /*job*/) {
  return Status::ResourceExhausted("an embedded ledger is copied by nowcalls-server alone");
}

void EngineFront::Log(engine::LogLevel level, LogTopic /*topic*/, std::string_view message,
                      const LogFields& /*fields*/) {
  if (!options_.log || level == engine::LogLevel::kDebug) return;
  const bool info = level == engine::LogLevel::kInfo;
  options_.log(info ? LogLevel::kInfo : LogLevel::kWarning, message);
}

}  // namespace nowcalls::embedded
