// EngineFront: a session whose server is in the same process: the engine, the core and a ledger.
//
// Thread: the loop has the engine and the store, and uses them without the mutex, so that other
// threads ask calls while a batch is on its way to the disk. All that was asked meanwhile is one
// batch. The session and the engine are joined by the bytes of one connection, so the engine
// decides as it does for clients over TCP.
//
// A ledger that fails ends the service: what is on its way is kUnknown, all that follows is
// kUnavailable, and nothing is told that is not in the ledger. The process goes on.
#ifndef NOWCALLS_EMBEDDED_ENGINE_FRONT_H_
#define NOWCALLS_EMBEDDED_ENGINE_FRONT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/driver.h"
#include "engine/engine.h"
#include "library/front.h"
#include "nowcalls/embedded.h"
#include "recovery/recovery.h"
#include "store/store.h"

namespace nowcalls::embedded {

class EngineFront final : public library::Front, private engine::Driver {
 public:
  // As Embedded::Open.
  static Result<std::shared_ptr<EngineFront>> Open(const EmbeddedOptions& options);
  ~EngineFront() override;

  // As Embedded::LoadRules.
  Result<uint64_t> LoadRules(std::string_view name_space, std::string_view json);

 private:
  // What a background thread of the store has said; it outlives the store.
  struct Failure {
    std::mutex mutex;
    std::optional<Status> what;
  };
  struct Ledger {
    std::shared_ptr<Failure> failure = std::make_shared<Failure>();
    std::unique_ptr<store::Store> store;
    std::function<Status()> close;
    std::optional<recovery::RecoveredLedger> recovered;
  };

  static Result<Ledger> OpenLedger(const EmbeddedOptions& options);
  EngineFront(const EmbeddedOptions& options, const ClientOptions& client, Ledger ledger);

  // Front.
  void RunLoop() override;
  void Flush() override;
  void Wake() override;

  // engine::Driver.
  void Write(std::span<engine::Output> outputs) override;
  void Close(engine::ConnectionId id, bool flush) override;
  void SetReading(engine::ConnectionId id, bool on) override;
  Status BeginBackup(const engine::BackupJob& job) override;
  void Log(engine::LogLevel level, LogTopic topic, std::string_view message,
           const LogFields& fields) override;

  // The loop, without the mutex.
  Instant Now() const { return ledger_.recovered->Now(); }
  void Turn(std::string_view bytes);
  // Commits what is open, and lets the answers leave.
  void CommitAll();
  void LookAtDisk(int64_t now_ms);
  void Fail(const Status& failure);
  void CloseLedger();

  // The loop, with the mutex.
  void Exchange(Lock* lock);
  void Connect(int64_t now_ms);
  void Sleep(Lock* lock);

  const EmbeddedOptions options_;
  Ledger ledger_;
  std::unique_ptr<engine::Engine> engine_;

  // Guarded by the mutex.
  std::condition_variable bell_;
  bool rung_ = false;
  std::vector<std::function<void()>> jobs_;  // For the loop, without the mutex.
  std::optional<engine::ConnectionId> connection_;

  // The loop's.
  std::string replies_;  // Of the engine, for the session.
  bool reads_ = true;    // The engine takes more bytes.
  bool closed_ = false;  // The engine has ended the connection.
  std::optional<Status> broken_;
  int64_t look_due_ms_ = 0;
};

}  // namespace nowcalls::embedded

#endif  // NOWCALLS_EMBEDDED_ENGINE_FRONT_H_
