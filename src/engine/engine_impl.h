// Engine::Impl: connections, the two commit batches, and what waits for them. Internal to
// src/engine.
//
// Thread: loop.
#ifndef NOWCALLS_ENGINE_ENGINE_IMPL_H_
#define NOWCALLS_ENGINE_ENGINE_IMPL_H_

#include <array>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/books.h"
#include "core/core.h"
#include "engine/connection.h"
#include "engine/disk_room.h"
#include "engine/driver.h"
#include "engine/engine.h"
#include "engine/rpc_handler.h"
#include "engine/rule_intake.h"
#include "ledger/commit_batch.h"

namespace nowcalls::engine {

// A turn of the loop has room for so much, over all connections, in units of about half a
// microsecond; the last message may exceed it. What has just been read and what waited have their
// own share each, so that neither starves the other.
inline constexpr int kCostPerTurn = 4096;

// Listings, loads of rules and mass reclaims are work; acquire, release and keep are not. A turn
// does this much of it, so that those who list never hold up those who acquire for long.
inline constexpr int kWorkPerTurn = 8192;

// Tokens that were due, and get an end or a new deadline: so many a millisecond, at once when there
// were fewer before, and in one batch. See "Due tokens have a pace" in ../README.md.
inline constexpr int64_t kDuePerMs = 700;
inline constexpr int64_t kDueAtOnce = 5 * kDuePerMs;
inline constexpr uint32_t kDuePerBatchMax = 4000;

// While its socket keeps this much, nothing more is taken from a connection.
inline constexpr size_t kKeptPauseBytes = 256 * 1024;

// Replies that wait for commits have shares of output_total_bytes_max, all connections together: a
// quarter of what is not kept by sockets, at least a 64th of it all. When one share waits, no other
// long reply is made; when two do, none for a connection that has its part of a third. See "Replies
// that wait for the disk" in ../README.md.
inline constexpr size_t kWaitingShares = 4;
inline constexpr size_t kWaitingSharesMax = 64;

struct Engine::Impl : ReplyBuffers {
  struct Handled {
    int cost = 0;                             // Of the turn.
    InputWaits waits = InputWaits::kNothing;  // Or nothing was done: it has to wait for this.
  };

  Impl(EngineOptions engine_options, core::Core* the_core, Driver* the_driver, Instant now);

  // ReplyBuffers.
  wire::OutputBuffer* Immediate(Connection* connection) override;
  wire::OutputBuffer* AfterCommit(Connection* connection) override;

  // Input.
  void TakeBytes(Connection* connection, std::string_view bytes, Instant now);
  void ResumeInput(Instant now);
  void Resume(Connection* connection, int* turn_left, Instant now);
  size_t TakeMessages(Connection* connection, std::string_view bytes, int* turn_left, Instant now);
  Handled HandleMessage(Connection* connection, std::string_view message, Instant now);
  bool MayWork(const Connection* connection) const;
  bool SharesWait(size_t shares) const;
  size_t WaitingMax() const;
  InputWaits WaitsFor(const Connection& connection) const;
  ConnectionQueue* QueueOf(InputWaits waits);
  void Wait(Connection* connection, InputWaits waits);
  void WorkAfterCommit();
  void StopWaiting(Connection* connection);
  void WaitForTurn(Connection* connection);
  void SettleInput(Connection* connection, bool progressed, Instant now);
  void FitInput(Connection* connection);
  void DropInput(Connection* connection);
  void CountInput(Connection* connection);
  void BoundInput();
  void NoteIncomplete(Connection* connection, bool progressed, Instant now);
  void CloseTooSlow(Instant now);

  // Output.
  void MarkDirty(Connection* connection);
  void FlushDirty();
  void Flush(Connection* connection);
  bool HasOutput(Connection* connection);
  void WriteOutputs();
  void BoundKept();
  void MoveToReady(Connection* connection, size_t which);
  void CountWaiting(Connection* connection);
  void Reopen();
  void SendLateAnswers();
  void SetKept(Connection* connection, size_t kept);

  void Refuse(Connection* connection, std::string_view message, const std::string& why);
  void End(Connection* connection);
  void CloseIfAnswered(Connection* connection);
  void Abort(Connection* connection, std::string_view why);
  void EndSession(Connection* connection);
  void LogNotices() const;
  nlohmann::ordered_json Info(Instant now) const;

  core::Step TurnNow() { return TurnAt(current); }
  // REQUIRES: the core is called with it before anything else happens here.
  core::Step TurnAt(Instant now) {
    if (may_reopen && batches[open].empty()) Reopen();
    return {now, &batches[open]};
  }
  core::Step TurnForDue(Instant now);
  void CountDue(const core::Step& turn);
  Instant RoomForDueAt() const;
  // Ends of tokens are in the history first, and in the batch when it is sealed.
  bool BatchFull() const {
    return batches[open].bytes().size() + core->books().history().unrecorded_bytes() >=
           options.limits.batch_bytes_max;
  }
  // The batch that began `n` before the open one; 0 is that itself.
  size_t Before(size_t n) const { return (open + kBatches - n) % kBatches; }
  // Replies to the connection and records: what its last message made is the difference.
  size_t BytesMade(const Connection& connection) const {
    return connection.ready.size() + connection.waiting_bytes + batches[open].bytes().size() +
           core->books().history().unrecorded_bytes();
  }

  EngineOptions options;
  core::Core* core;
  Driver* driver;
  RuleIntake intake;
  RpcHandler rpc;
  Instant started;
  // The time of the call that is being worked on: what ends a session without a call of its own
  // (a closed connection at TurnEnd) happens at it.
  Instant current;

  std::deque<Connection> connections;
  std::vector<ConnectionId> free_connections;
  uint32_t connections_open = 0;
  BufferPool buffers;
  std::vector<ConnectionId> dirty;
  std::vector<Output> outputs;  // Of the call that writes them.
  ConnectionQueue for_turn;     // See InputWaits.
  ConnectionQueue for_work;
  ConnectionQueue for_batch;
  ConnectionQueue for_commit;
  size_t held = 0;                            // Connections whose input waits for this server.
  const Connection* first_in_line = nullptr;  // For work: its turn has come.
  // What is left of the turn.
  int new_input_left = kCostPerTurn;
  int old_input_left = kCostPerTurn;
  int work_left = kWorkPerTurn;
  // Connections by the size of their input, and of what their driver keeps.
  absl::btree_set<std::pair<size_t, ConnectionId>> input_sizes;
  size_t input_total = 0;
  absl::btree_set<std::pair<size_t, ConnectionId>> kept_sizes;
  size_t kept_total = 0;
  size_t waiting_total = 0;  // Bytes of replies that wait for a commit.
  // Connections whose message has begun and not ended, by when it began.
  absl::btree_set<std::pair<int64_t, ConnectionId>> incomplete;
  // Connections that do not take their replies, by when the last byte was taken.
  absl::btree_set<std::pair<int64_t, ConnectionId>> keeping;

  // A ring: one batch fills, and the `begun` ones before it were given to the driver. waiting[i] of
  // a connection belongs to batches[i], and waiters[i] lists the connections that have something
  // there.
  std::array<ledger::CommitBatch, kBatches> batches;
  std::array<std::vector<ConnectionId>, kBatches> waiters;
  size_t open = 0;
  size_t begun = 0;
  int64_t due_left = kDueAtOnce;  // Of the pace of due tokens, at that moment.
  Instant due_left_at{};
  uint32_t due_before = 0;  // CommitBatch::due() when the turn began.
  bool may_reopen = false;  // The last of them may not have been started yet.
  DiskRoom disk;
  bool draining = false;
  bool commit_due = true;  // At the start and the end: marks the clock.
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_ENGINE_IMPL_H_
