// Engine: the whole server without I/O. Bytes and times go in; commit batches, scan requests and
// bytes come out.
//
// Thread: loop. The engine owns the state of every connection and the commit batches; the core is
// the caller's. The driver (the libuv server, a test, the simulator) calls it in turns:
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
// A turn does a bounded amount of work. A connection whose input is left over is not read until it
// has had its turns, first come first served. The same calls with the same arguments give the same
// outputs, byte for byte.
//
// Inside (engine_impl.h) each part owns its members. Connections speak a protocol (protocol.h).
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

  // Connections. `peer` is HOST:PORT, for logs and for the display name of a session without a
  // client id. Returns nothing when connections_max are open: the driver then closes the socket.
  std::optional<ConnectionId> OnConnect(std::string_view peer, Instant now);
  void OnBytes(ConnectionId id, std::string_view bytes, Instant now);
  // The peer sends no more but may still read. Its acquires that wait leave the queue unanswered;
  // once all else that it asked is answered, the connection is closed.
  void OnEndOfInput(ConnectionId id, Instant now);
  // Bytes that the driver had buffered have left; `kept` are left. Not for a closed connection.
  void OnSent(ConnectionId id, size_t kept, Instant now);
  void OnDisconnect(ConnectionId id, Instant now);

  // Free bytes and inodes of the ledger's file system; nothing if it does not tell. They decide
  // whether tokens are granted (disk_room.h).
  void OnDiskSpace(std::optional<uint64_t> free_bytes,
                   std::optional<uint64_t> free_files = std::nullopt);

  // Settings that change while the server runs: limits, guards and the pace of the sweep, from now
  // on. See Core::SetOptions for what stays as it was.
  void SetOptions(const core::CoreOptions& options);

  // Time. The driver calls OnTime at NextDeadline or soon after; kNever: no timer is needed. A
  // moment in the past means: in the next turn, after other input was read. A driver that is late
  // first reads what has arrived meanwhile, so that no client that was in time suffers.
  void OnTime(Instant now);
  // Closes connections whose peers send or read too slowly: the part of OnTime that a driver may
  // call while it holds the rest back.
  void CloseTooSlow(Instant now);
  Instant NextDeadline() const;
  // Input is left over for the next turn.
  bool input_waits() const;
  // Input waits for this server (a turn, room in the batch, a commit), not for its peer.
  bool input_held() const;
  void ResumeInput(Instant now);
  void TurnEnd();
  // The server ends. Acquires that wait are answered NOT_AVAILABLE; input that was read is still
  // answered. Tokens that become due are left to the next start.
  void BeginShutdown(Instant now);
  // Drops input that waits for a turn; returns of how many connections.
  size_t DropWaitingInput();

  // Core::ReplaceRules. The change is durable with the next commit.
  Status LoadRules(const std::vector<core::RuleSet>& sets, Instant now);

  // Where rule sources (nowcalls/rule_source.h) put the rules of a call at `now`. Valid until the
  // next call of the engine. Check needs no engine: any thread may call core::CheckRuleSet.
  RuleSink* RulesAt(Instant now);

  // The commit path. BeginCommit seals the open batch and returns it; nullptr when nothing is to be
  // written or a commit is under way. The batch stays as it is until OnCommitDone. A failed commit
  // is never reported here: the process ends.
  const ledger::CommitBatch* BeginCommit(const ClockSample& clock, Instant now);
  void OnCommitDone(Instant now);
  // Nothing waits: no open records, no commit, no unsent reply.
  bool idle() const;

  // A backup that Driver::BeginBackup began has ended. `asker` gets the answer at once, since what
  // is in a backup was committed before. Its connection may be gone.
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
