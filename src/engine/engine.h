// Engine: the whole server without I/O. Bytes and times go in; commit batches, scan requests and
// bytes come out.
//
// Thread: loop. It owns the core, the protocol state of every connection and the open commit
// batch. Whoever drives it, the libuv server or a test, does so in turns:
//
//   OnBytes ... OnBytes              any number of events
//   ResumeInput                      input for which earlier turns had no room
//   OnTime                           when a deadline has passed
//   TurnEnd                          sends what may leave at once
//   BeginCommit -> batch             when something is to be written and no commit is under way
//   (store.Commit, on another thread or within the turn)
//   OnCommitDone                     lets the replies that waited for that batch leave
//
// A reply that depends on a record leaves only when the batch with that record is durable
// (invariant 1); other replies leave at the end of the turn. While one batch is being committed the
// next one fills: group commit. A batch is sealed by BeginCommit, and a sealed batch never changes.
//
// What a turn does is bounded however much has arrived; connections whose input is left over are
// not read until they have had their turns, first come first served. The same calls with the same
// arguments give the same outputs, byte for byte.
#ifndef NOWCALLS_ENGINE_ENGINE_H_
#define NOWCALLS_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/core.h"
#include "engine/driver.h"
#include "ledger/commit_batch.h"
#include "ledger/scan.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "wire/admin_messages.h"

namespace nowcalls::engine {

struct EngineOptions {
  Limits limits;
  std::string version;                      // As told by hello and info.
  std::string durability;                   // As told by info: "sync", "interval:50", "none".
  std::string data_dir;                     // As told by info.
  std::string expire_strategy = "default";  // As told by info: "default", "strict".
};

class Engine {
 public:
  // `core` has been loaded (Core::FinishLoad) and outlives the engine, as does `driver`.
  Engine(EngineOptions options, core::Core* core, Driver* driver, Instant now);
  ~Engine();

  // Connections. `peer` is HOST:PORT for logs and for the display name of a session without a
  // client id. Empty when connections_max are open: the driver then closes the socket.
  std::optional<ConnectionId> OnConnect(std::string_view peer, Instant now);
  void OnBytes(ConnectionId id, std::string_view bytes, Instant now);
  // The peer sends no more but may still read: it gets the answers to what it sent, except to
  // acquires that still wait, which leave the queue unanswered; then the connection is closed.
  void OnEndOfInput(ConnectionId id, Instant now);
  // Bytes that Driver::Write kept have left; `kept` still wait. Only for a connection not closed.
  void OnSent(ConnectionId id, size_t kept, Instant now);
  void OnDisconnect(ConnectionId id, Instant now);

  // What is free on the ledger's file system; nothing if it does not tell. Decides whether tokens
  // are granted (Limits::disk_free_low_bytes).
  void OnDiskSpace(std::optional<uint64_t> free_bytes);

  // Time. The driver calls OnTime at (or soon after) NextDeadline; kNever: no timer needed. A
  // moment in the past means in the next turn, after others' input was read. A driver that comes
  // late reads what has arrived meanwhile before it calls OnTime, or those who were in time would
  // suffer for it.
  void OnTime(Instant now);
  // The part of OnTime that depends on no input that waits, for a driver that holds the rest back:
  // closes connections whose peers send or read too slowly.
  void CloseTooSlow(Instant now);
  Instant NextDeadline() const;
  // Input is left over for the next turn.
  bool input_waits() const;
  // Input waits for a turn, for room in the batch or for a commit: for this server, not for peers.
  bool input_held() const;
  void ResumeInput(Instant now);
  void TurnEnd();
  // The server ends: from now on nothing is done but to answer what was read; who waits for room is
  // answered NOT_AVAILABLE. Tokens that become due are left to the next start.
  void BeginShutdown(Instant now);
  // What waits for its turn is left undone; returns of how many connections.
  size_t DropWaitingInput();

  // Core::ReplaceRules. The change is durable with the next commit.
  Status LoadRules(const std::vector<core::RuleSet>& sets, Instant now);

  // The way in for rule sources (nowcalls/rule_source.h) whose calls happen at `now`: use it for
  // them at once and do not keep it. Check needs no engine: any thread may call
  // core::CheckRuleSet.
  RuleSink* RulesAt(Instant now);

  // The commit path. BeginCommit seals the open batch and returns it; nullptr when nothing is to be
  // written or a commit is under way. The batch stays as it is until OnCommitDone. A failed commit
  // is never reported here: the process ends.
  const ledger::CommitBatch* BeginCommit(const ClockSample& clock, Instant now);
  void OnCommitDone(Instant now);
  // Nothing waits: no open records, no commit, no unsent reply.
  bool idle() const;

  // A backup that Driver::BeginBackup began has ended. `asker`, whose connection may have gone,
  // gets the answer at once: what is in a backup was committed before.
  void OnBackupDone(ConnectionId asker, const Result<wire::BackupReply>& made, Instant now);

  // The sweep. A request when one is due and none is in flight.
  std::optional<ledger::ScanRequest> BeginScan(Instant now);
  // Not ok when the scan failed: the ledger cannot be read, the process must end.
  Status OnScanDone(const ledger::ScanResult& result, Instant now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_ENGINE_H_
