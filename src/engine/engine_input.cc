// Bytes into connections: messages, whose turn it is, backpressure, limits.
#include <algorithm>
#include <string>

#include "engine/engine_impl.h"
#include "engine/look_ahead.h"
#include "wire/format.h"

namespace nowcalls::engine {
namespace {

// The first byte of a message decides its protocol; those of MessagePack are in wire/format.h.
constexpr uint8_t kSentinelByteMax = 0x03;  // High byte of a Sentinel frame's length.

// Reply bytes one connection may make in a turn before others get theirs. Small replies never reach
// it; it is listings that do.
constexpr size_t kReplyBytesPerTurn = 256 * 1024;

// What the memory of some bytes that wait may be more than four times as large.
constexpr size_t kInputSlackBytes = 2048;

// What a connection may do before it is the next one's turn: some 60 grants, as many as a client
// with a pipeline has in flight.
constexpr int kVisitCost = 128;
// Of a visit that finds no whole message, or no room for one.
constexpr int kEmptyVisitCost = 8;

// What a message costs, in units of about half a microsecond: for itself, and for each KiB of it,
// its reply and its records.
struct Cost {
  int base = 1;
  int per_kib = 16;
  bool work = false;   // Of the turn's work, see kWorkPerTurn.
  bool shows = false;  // What is there: a reply that may be long, and waits for a commit.
};

Cost CostOf(wire::Method method) {
  switch (method) {
    case wire::Method::kHello: return {.base = 8};
    case wire::Method::kFlow: return {.base = 8, .shows = true};
    case wire::Method::kTokens:  // Has a filter.
      return {.base = 200, .per_kib = 4, .work = true, .shows = true};
    case wire::Method::kFlows:
    case wire::Method::kSessions:
    case wire::Method::kHistory:
    case wire::Method::kNamespaces: return {.base = 100, .per_kib = 4, .work = true, .shows = true};
    case wire::Method::kInfo: return {.base = 200, .per_kib = 4, .work = true};
    // A rule is made JSON anew, which takes some 10 us.
    case wire::Method::kRulesList: return {.base = 100, .per_kib = 48, .work = true, .shows = true};
    case wire::Method::kRulesLoad: return {.base = kWorkPerTurn, .work = true};
    case wire::Method::kReclaimClient:
    case wire::Method::kReclaimFlow:
    case wire::Method::kPurge: return {.base = 100, .per_kib = 32, .work = true};
    case wire::Method::kDrain:   // All its waiters are answered.
    case wire::Method::kBackup:  // Threads and files are begun.
      return {.base = kWorkPerTurn / 8, .work = true};
    case wire::Method::kUnknown:
    case wire::Method::kPing:
    case wire::Method::kAcquire:
    case wire::Method::kRelease:
    case wire::Method::kKeep:
    case wire::Method::kReclaim:
    case wire::Method::kCancel: return {};
  }
  return {};
}

std::string FirstByteError(char first) {
  const auto byte = static_cast<uint8_t>(first);
  if (byte <= kSentinelByteMax) return "speaks Sentinel's protocol, which is not supported yet";
  constexpr char kDigits[] = "0123456789abcdef";
  return std::string("does not speak MessagePack-RPC: a message begins with byte 0x") +
         kDigits[byte >> 4] + kDigits[byte & 15];
}

bool IsHeld(InputWaits waits) {
  return waits != InputWaits::kNothing && waits != InputWaits::kForPeer;
}

}  // namespace

void Engine::Impl::TakeBytes(Connection* connection, std::string_view bytes, Instant now) {
  size_t taken = 0;
  if (connection->input.empty()) {
    taken = TakeMessages(connection, bytes, &new_input_left, now);
    if (!connection->open()) return;
    if (taken < bytes.size()) {
      buffers.Lend(&connection->input);
      connection->input.Append(bytes.substr(taken));
    }
  } else {
    connection->input.Append(bytes);
    // What the driver had read before it was told to stop waits with the rest.
    if (connection->input_waits == InputWaits::kNothing) {
      taken = TakeMessages(connection, connection->input_left(), &new_input_left, now);
      if (!connection->open()) return;
      connection->input_taken += taken;
    }
  }
  if (connection->input_waits != InputWaits::kNothing) driver->SetReading(connection->id, false);
  SettleInput(connection, taken > 0, now);
  BoundInput();
}

// Goes on with what had arrived when the connection began to wait, then reads again if it has all
// been taken.
void Engine::Impl::Resume(Connection* connection, int* turn_left, Instant now) {
  StopWaiting(connection);
  const size_t taken = TakeMessages(connection, connection->input_left(), turn_left, now);
  if (!connection->open()) return;
  connection->input_taken += taken;
  if (connection->input_waits == InputWaits::kNothing) driver->SetReading(connection->id, true);
  SettleInput(connection, /*progressed=*/true, now);
}

void Engine::Impl::ResumeInput(Instant now) {
  while (!for_turn.empty() && old_input_left > 0) Resume(for_turn.front(), &old_input_left, now);
  for (size_t n = for_work.size(); n > 0 && work_left > 0; --n) {
    int visit = kVisitCost;
    first_in_line = for_work.front();
    Resume(for_work.front(), &visit, now);
    first_in_line = nullptr;
    // Not all that it does is work; it may have to wait for a commit, and do nothing.
    work_left -= std::max(kVisitCost - visit, kEmptyVisitCost);
  }
}

// Handles whole messages at the front of `bytes`, as many as one visit and what is left of the turn
// allow; returns how many bytes they were. If not all, the connection waits.
size_t Engine::Impl::TakeMessages(Connection* connection, std::string_view bytes, int* turn_left,
                                  Instant now) {
  size_t taken = 0;
  LookAhead ahead(*core);
  int visit_left = std::min(kVisitCost, *turn_left);
  const int visit = visit_left;
  while (taken < bytes.size()) {
    const std::string_view rest = bytes.substr(taken);
    size_t size = 0;
    if (!connection->splitter.in_message()) {
      InputWaits waits = WaitsFor(*connection);
      if (waits == InputWaits::kNothing && visit_left <= 0) waits = InputWaits::kForTurn;
      if (waits != InputWaits::kNothing) {
        Wait(connection, waits);
        break;
      }
      const auto first = static_cast<uint8_t>(rest.front());
      if (first != wire::kRequestByte && first != wire::kNotificationByte) {
        Refuse(connection, {}, FirstByteError(rest.front()));
        return taken;
      }
      size = ahead.Next(rest);
    }
    const auto outcome = size > 0 ? wire::MessageSplitter::Outcome::kMessage
                                  : connection->splitter.Next(rest, &size);
    if (outcome == wire::MessageSplitter::Outcome::kIncomplete) break;
    if (outcome == wire::MessageSplitter::Outcome::kInvalid) {
      Refuse(connection, rest,
             std::string("sent a message that is refused: ") + connection->splitter.error());
      return taken;
    }
    const Handled handled = HandleMessage(connection, rest.substr(0, size), now);
    if (handled.waits != InputWaits::kNothing) {
      Wait(connection, handled.waits);
      break;
    }
    visit_left -= handled.cost;
    if (!connection->open()) return taken;
    taken += size;
  }
  *turn_left -= std::max(visit - visit_left, kEmptyVisitCost);
  return taken;
}

Engine::Impl::Handled Engine::Impl::HandleMessage(Connection* connection, std::string_view message,
                                                  Instant now) {
  wire::Envelope envelope;
  wire::RequestError error;
  if (!wire::DecodeEnvelope(message, &envelope, &error)) {
    Refuse(connection, message, "sent what is not a request: " + error.message);
    return {.cost = 1};
  }
  const Cost cost = envelope.notification ? Cost{} : CostOf(envelope.method);
  if (cost.work && !MayWork(connection)) return {.waits = InputWaits::kForWork};
  if (cost.shows && SharesWait(1)) return {.waits = InputWaits::kForCommit};
  const core::Step turn = TurnAt(now);
  const size_t bytes_before = BytesMade(*connection);
  if (envelope.notification) {
    rpc.HandleNotification(connection, envelope, turn);
  } else {
    rpc.HandleRequest(connection, envelope, turn);
    CountWaiting(connection);
  }
  SendLateAnswers();
  // An entry of the history may displace a longer one that was not recorded yet.
  const size_t bytes_after = std::max(BytesMade(*connection), bytes_before);
  const size_t bytes = message.size() + bytes_after - bytes_before;
  const int spent = cost.base + static_cast<int>(bytes * static_cast<size_t>(cost.per_kib) / 1024);
  if (!cost.work) return {.cost = spent};
  work_left -= spent;
  first_in_line = nullptr;
  return {.cost = 1};
}

// Who asks for work stands behind those who wait for it.
bool Engine::Impl::MayWork(const Connection* connection) const {
  return work_left > 0 && (for_work.empty() || first_in_line == connection);
}

// So much waits for commits. Never true while nothing does, so one that makes room is to come.
bool Engine::Impl::SharesWait(size_t shares) const {
  const size_t total = options.limits.output_total_bytes_max;
  const size_t least = total / kWaitingSharesMax;
  if (waiting_total <= least) return false;
  // Once committed it is beside what is kept, and if that is too much, who keeps most is closed.
  const size_t share = std::max((total - std::min(total, kept_total)) / kWaitingShares, least);
  return waiting_total >= shares * share;
}

// What may wait of one connection. Its part is its own, so that nobody's replies stop another's.
size_t Engine::Impl::WaitingMax() const {
  if (!SharesWait(2)) return kReplyBytesPerTurn;
  const Limits& limits = options.limits;
  const size_t share = limits.output_total_bytes_max / kWaitingShares;
  return std::max<size_t>(share / limits.connections_max, 1);
}

// To those whose wait the last call of the core has ended.
void Engine::Impl::SendLateAnswers() {
  if (!core->has_late_answers()) return;
  for (const core::LateAnswer& late : core->TakeLateAnswers()) {
    Connection* connection = &connections[late.ticket.owner];
    // Others will not hear of it.
    if (connection->open() || connection->state == ConnectionState::kEnding) {
      rpc.ReplyAcquire(connection, late.ticket.tag, late.answer);
      CountWaiting(connection);
    }
  }
}

InputWaits Engine::Impl::WaitsFor(const Connection& connection) const {
  if (BatchFull()) return InputWaits::kForBatch;
  if (connection.kept >= kKeptPauseBytes) return InputWaits::kForPeer;
  const size_t waiting = connection.waiting_bytes;
  if (connection.requests_in_flight() >= options.limits.requests_in_flight_max ||
      waiting >= WaitingMax()) {
    return InputWaits::kForReplies;
  }
  // What is ready leaves at the end of the turn.
  if (connection.ready.size() + waiting >= kReplyBytesPerTurn) return InputWaits::kForTurn;
  return InputWaits::kNothing;
}

ConnectionQueue* Engine::Impl::QueueOf(InputWaits waits) {
  switch (waits) {
    case InputWaits::kForTurn: return &for_turn;
    case InputWaits::kForWork: return &for_work;
    case InputWaits::kForBatch: return &for_batch;
    case InputWaits::kForCommit: return &for_commit;
    default: return nullptr;
  }
}

// REQUIRES: it does not wait.
void Engine::Impl::Wait(Connection* connection, InputWaits waits) {
  connection->input_waits = waits;
  if (IsHeld(waits)) ++held;
  if (ConnectionQueue* queue = QueueOf(waits)) queue->PushBack(connection);
}

void Engine::Impl::StopWaiting(Connection* connection) {
  if (ConnectionQueue* queue = QueueOf(connection->input_waits)) queue->Remove(connection);
  if (IsHeld(connection->input_waits)) --held;
  connection->input_waits = InputWaits::kNothing;
}

// Those who waited for a commit stand before all who wait for work: they came to its line earlier.
void Engine::Impl::WorkAfterCommit() {
  while (Connection* connection = for_commit.back()) {
    for_commit.Remove(connection);
    connection->input_waits = InputWaits::kForWork;
    for_work.PushFront(connection);
  }
}

// What it waited for may have come: whether it can go on is found out when it has its turn.
void Engine::Impl::WaitForTurn(Connection* connection) {
  StopWaiting(connection);
  Wait(connection, InputWaits::kForTurn);
}

// After bytes have been added or taken. Memory moves only when it must, not at each visit.
void Engine::Impl::SettleInput(Connection* connection, bool progressed, Instant now) {
  if (connection->input_taken == connection->input.size()) {
    buffers.TakeBack(&connection->input);
    connection->input_taken = 0;
  } else if (connection->input_waits == InputWaits::kNothing) {
    connection->input.Consume(std::exchange(connection->input_taken, 0));
  }
  FitInput(connection);
  CountInput(connection);
  NoteIncomplete(connection, progressed, now);
}

// Bytes are counted and bounded, so the memory must not be that of a longer message before, or of
// another use.
void Engine::Impl::FitInput(Connection* connection) {
  const std::string_view left = connection->input_left();
  const size_t fitting = std::max(kInputSlackBytes, 4 * left.size());
  if (connection->input.capacity() <= fitting) return;
  wire::OutputBuffer input;
  input.Append(left);
  input.swap(connection->input);
  connection->input_taken = 0;
  buffers.TakeBack(&input);
}

void Engine::Impl::DropInput(Connection* connection) {
  StopWaiting(connection);
  buffers.TakeBack(&connection->input);
  connection->input_taken = 0;
  CountInput(connection);
  NoteIncomplete(connection, /*progressed=*/true, current);
}

void Engine::Impl::CountInput(Connection* connection) {
  const size_t size = connection->input.size();
  const size_t counted = std::exchange(connection->input_counted, size);
  if (size == counted) return;
  if (counted > 0) input_sizes.erase({counted, connection->id});
  if (size > 0) input_sizes.emplace(size, connection->id);
  input_total += size - counted;
}

void Engine::Impl::BoundInput() {
  while (input_total > options.limits.input_total_bytes_max) {
    const auto [size, id] = *input_sizes.rbegin();
    Connection* connection = &connections[id];
    Refuse(connection, connection->input_left(),
           "has sent " + std::to_string(size) +
               " bytes that are not handled yet, the most of all connections, which together "
               "exceed " +
               std::to_string(options.limits.input_total_bytes_max));
  }
}

// Keeps the time at which the message that is arriving began. Who waits has none: it is the server
// that does not read.
void Engine::Impl::NoteIncomplete(Connection* connection, bool progressed, Instant now) {
  const bool due = connection->open() && connection->input_waits == InputWaits::kNothing &&
                   !connection->input.empty();
  if (connection->incomplete_since && (progressed || !due)) {
    incomplete.erase({connection->incomplete_since->ms, connection->id});
    connection->incomplete_since.reset();
  }
  if (due && !connection->incomplete_since) {
    connection->incomplete_since = now;
    incomplete.emplace(now.ms, connection->id);
  }
}

void Engine::Impl::CloseTooSlow(Instant now) {
  const int64_t message_ms = options.limits.message_incomplete_ms;
  while (!incomplete.empty() && incomplete.begin()->first + message_ms <= now.ms) {
    Connection* connection = &connections[incomplete.begin()->second];
    Refuse(connection, connection->input_left(),
           "did not complete a message within " + std::to_string(message_ms) + " ms");
  }
  const int64_t stalled_ms = options.limits.output_stalled_ms;
  while (!keeping.empty() && keeping.begin()->first + stalled_ms <= now.ms) {
    Abort(&connections[keeping.begin()->second],
          "has read none of its replies for " + std::to_string(stalled_ms) + " ms");
  }
}

}  // namespace nowcalls::engine
