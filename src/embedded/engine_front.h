// EngineFront: a session whose server is in the same process.
//
// Thread: Front's mutex guards the session. Engine and store are the driver's, without the mutex
// (driving_): one thread at a time that waits for its answer, or the loop. Scans, looks at the
// disk, callbacks and log lines are the loop's.
//
// Errors: once the ledger fails, calls on their way are kUnknown, later ones kUnavailable at once.
#ifndef NOWCALLS_EMBEDDED_ENGINE_FRONT_H_
#define NOWCALLS_EMBEDDED_ENGINE_FRONT_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "embedded/opened_ledger.h"
#include "engine/driver.h"
#include "engine/engine.h"
#include "engine/rule_sources.h"
#include "library/front.h"
#include "node/turn.h"
#include "nowcalls/embedded.h"

namespace nowcalls::embedded {

class EngineFront final : public library::Front, private engine::Driver, private node::Io {
 public:
  // As Embedded::Open.
  static Result<std::shared_ptr<EngineFront>> Open(const EmbeddedOptions& options);
  ~EngineFront() override;

  // As Embedded::LoadRules.
  Result<uint64_t> LoadRules(std::string_view name_space, std::string_view json);

 private:
  EngineFront(const EmbeddedOptions& options, const ClientOptions& client, OpenedLedger ledger);

  // Front.
  void RunLoop() override;
  void Flush(bool waits) override;
  void Wake() override;
  void WaitFor(Waiter* waiter, Lock* lock) override;

  // engine::Driver.
  void Write(std::span<engine::Output> outputs) override;
  void Close(engine::ConnectionId id, bool flush) override;
  void SetReading(engine::ConnectionId id, bool on) override;
  Status BeginBackup(const engine::BackupJob& job) override;
  void Log(engine::Severity severity, LogTopic topic, std::string_view message,
           const LogFields& fields) override;

  // node::Io, the driver.
  bool Commit(const ledger::CommitBatch& batch, bool at_once) override;
  void Scan(const ledger::ScanRequest& request) override { scan_ = request; }
  bool TakeMoreToRead() override { return false; }
  void Polled(Instant /*now*/) override {}
  Instant NextWork() const override { return kNever; }
  bool answers_later() const override { return false; }
  void LeftUnanswered(size_t /*connections*/) override {}
  void Disconnect(Instant now) override;
  bool connected() const override { return connection_ && !disconnected_; }
  void CloseStore() override;
  void EndIsLate() override { Fail(Status::Unavailable("its end takes too long")); }

  // With the mutex.
  // Makes the caller the driver; the mutex is free meanwhile. REQUIRES: nobody drives.
  void Exchange(Lock* lock);
  bool has_input() { return connection_ && reads_ && !session()->output()->empty(); }
  // Wakes a thread for work left over.
  void PassOn();

  // The loop, with the mutex.
  bool DeliverAll(Lock* lock);
  // Waits until nobody drives.
  void AwaitTurn(Lock* lock);
  void Connect(int64_t now_ms);
  void Sleep(Lock* lock);
  void CloseLedger(Lock* lock);

  // As driver, the loop does the job and commits. Waits, but not within another job. kUnavailable:
  // the service is closed; kFailedPrecondition: in a callback.
  Status AtLoop(const std::function<Status()>& job);
  // The end of the sources, behind all jobs.
  void StopSources(Lock* lock);

  // The driver, without the mutex.
  Instant Now() const { return ledger_.clock->Now(); }
  void TakeTurn(std::string_view bytes);
  // The loop.
  void WorkBesideTurns();
  void LookAtDisk(int64_t now_ms);
  void Fail(const Status& failure);
  void Say(LogLevel level, std::string line) { lines_.emplace_back(level, std::move(line)); }

  const EmbeddedOptions options_;
  OpenedLedger ledger_;
  std::unique_ptr<engine::Engine> engine_;
  std::optional<node::Turn> turn_;  // Of `engine_`.
  // The loop's.
  engine::RuleSources sources_;
  bool in_job_ = false;

  // Guarded by the mutex.
  std::condition_variable bell_;  // Of the loop.
  bool rung_ = false;
  bool driving_ = false;
  bool loop_waits_ = false;  // For its turn, which comes before those of others.
  int64_t loop_sleeps_until_ms_ = 0;
  std::list<Waiter*> waiting_;               // Threads that wait for somebody else to drive.
  std::vector<std::function<void()>> jobs_;  // For the loop as driver.
  std::optional<engine::ConnectionId> connection_;

  // The driver's; with the mutex, anybody's while nobody drives.
  std::string replies_;  // Of the engine, for the session.
  std::vector<std::pair<LogLevel, std::string>> lines_;
  bool reads_ = true;          // The engine takes more bytes.
  bool closed_ = false;        // The connection is to end.
  bool disconnected_ = false;  // By the end of the service.
  std::optional<Status> broken_;
  std::optional<ledger::ScanRequest> scan_;  // That the loop has to make.
  int64_t turn_due_ms_ = 0;                  // On the boot clock.
  int64_t look_due_ms_ = 0;
};

}  // namespace nowcalls::embedded

#endif  // NOWCALLS_EMBEDDED_ENGINE_FRONT_H_
