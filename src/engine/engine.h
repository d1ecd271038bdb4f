// Engine: the whole server without I/O. The same calls give the same batches and bytes.
//
// Thread: loop. The driver calls it in turns:
//
//   OnBytes ... OnBytes     any number of events
//   ResumeInput             left-over input
//   OnTime                  when a deadline has passed
//   TurnEnd                 sends ready replies
//   BeginCommit -> batch    unless a commit is under way
//   (store.Commit, on another thread or within the turn)
//   OnCommitDone            lets the replies of that batch leave
//
// A reply that depends on a record leaves when its batch is durable, others at the end of the turn.
// A turn does bounded work. A connection with input left over is not read. Parts: engine_impl.h.
#ifndef NOWCALLS_ENGINE_ENGINE_H_
#define NOWCALLS_ENGINE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/gate.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/core.h"
#include "engine/driver.h"
#include "ledger/commit_batch.h"
#include "ledger/scan.h"
#include "net/peer.h"
#include "nowcalls/rule_source.h"
#include "nowcalls/status.h"
#include "wire/admin_messages.h"

namespace nowcalls::engine {

struct TlsCounters;

struct EngineOptions {
  Limits limits;
  std::string version;                      // As told by hello and info.
  std::string durability;                   // As told by info: "sync", "interval:50", "none".
  std::string data_dir;                     // As told by info.
  std::string expire_strategy = "default";  // As told by info: "default", "strict".
  const TlsCounters* tls = nullptr;         // As told by info; nullptr: zeros.
};

class Engine {
 public:
  // `core`, after Core::FinishLoad, and `driver` outlive the engine.
  Engine(EngineOptions options, core::Core* core, Driver* driver, Instant now);
  ~Engine();

  // Also before the first connection; at first everybody may do everything. Connections whose
  // principal is gone or may less are closed in the turns that follow.
  void SetAccess(access::Gate gate);

  // The peer's name is for logs, and shows a session without a client id. nullopt: connections_max
  // are open; close the socket.
  std::optional<ConnectionId> OnConnect(net::Peer peer, Instant now);
  // A handshake has begun or is done: `peer` has `shakes_hands`, or `encrypted` and `certificate`,
  // and else is what it was. Before the first OnBytes.
  void OnIdentity(ConnectionId id, const net::Peer& peer, Instant now);
  void OnBytes(ConnectionId id, std::string_view bytes, Instant now);
  // The peer sends no more but may still read. Closes once its requests are answered; waiting
  // acquires are dropped unanswered.
  void OnEndOfInput(ConnectionId id, Instant now);
  // `kept`: bytes still buffered. Not for a closed connection.
  void OnSent(ConnectionId id, size_t kept, Instant now);
  void OnDisconnect(ConnectionId id, Instant now);

  // Free bytes and inodes of the ledger's file system; nullopt: unknown (disk_room.h).
  void OnDiskSpace(std::optional<uint64_t> free_bytes,
                   std::optional<uint64_t> free_files = std::nullopt);

  // Limits, guards and the pace of the sweep; see core::Books::SetOptions.
  void SetOptions(const core::CoreOptions& options);

  // Call OnTime at NextDeadline or soon after; kNever: no timer. A past moment means the next turn.
  // A late driver first reads what has arrived.
  void OnTime(Instant now);
  // For a driver that holds OnTime back.
  void CloseTooSlow(Instant now);
  Instant NextDeadline() const;
  bool input_waits() const;  // For the next turn.
  bool input_held() const;   // For this server: a turn, room in the batch, a commit.
  void ResumeInput(Instant now);
  void TurnEnd();
  // The server ends. Waiting acquires get NOT_AVAILABLE; input that was read is still answered. Due
  // tokens are left to the next start.
  void BeginShutdown(Instant now);
  size_t DropWaitingInput();  // Input that waits for a turn. Returns the number of connections.

  // Core::ReplaceRules; durable with the next commit.
  Status LoadRules(const std::vector<core::RuleSet>& sets, Instant now);

  // For rule sources; valid until the next call. Any thread may call core::CheckRuleSet.
  RuleSink* RulesAt(Instant now);

  // Seals the open batch; valid until OnCommitDone. nullptr: nothing to write, or a commit is under
  // way. After a failed commit the process ends.
  const ledger::CommitBatch* BeginCommit(const ClockSample& clock, Instant now);
  void OnCommitDone(Instant now);
  bool idle() const;  // No open records, no commit, no unsent reply.

  // Ends Driver::BeginBackup. The connection of `asker` may be gone.
  void OnBackupDone(ConnectionId asker, const Result<wire::BackupReply>& made, Instant now);

  // nullopt: none is due, or one is in flight.
  std::optional<ledger::ScanRequest> BeginScan(Instant now);
  // Not ok: the ledger cannot be read, and the process must end.
  Status OnScanDone(const ledger::ScanResult& result, Instant now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_ENGINE_H_
