// Bytes in and out of connections: messages, backpressure, replies that wait, limits.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/check.h"
#include "engine/engine_impl.h"

namespace nowcalls::engine {
namespace {

// The first byte of a message decides its protocol.
constexpr char kRequestByte = '\x94';       // MessagePack array of 4.
constexpr char kNotificationByte = '\x93';  // MessagePack array of 3.
constexpr uint8_t kSentinelByteMax = 0x03;  // High byte of a Sentinel frame's length.

// Reply bytes one connection may make in a turn before others get theirs. Small replies never reach
// it; it is listings that do.
constexpr size_t kReplyBytesPerTurn = 256 * 1024;

// While its socket keeps this much, nothing more is read from a connection.
constexpr size_t kKeptPauseBytes = 256 * 1024;

// What one connection may keep even when all together keep too much.
constexpr size_t kKeptAlwaysBytes = 64 * 1024;

// How much of a turn's work a request is. A page of rules costs some 10 us a rule, the end of a
// token some 1 us.
int WorkOf(wire::Method method) {
  switch (method) {
    case wire::Method::kRulesList:
    case wire::Method::kRulesLoad: return kWorkPerTurn;
    case wire::Method::kReclaimClient:
    case wire::Method::kReclaimFlow:
    case wire::Method::kPurge: return kWorkPerTurn / 4;
    case wire::Method::kFlows:
    case wire::Method::kTokens:
    case wire::Method::kSessions:
    case wire::Method::kHistory:
    case wire::Method::kDrain:
    case wire::Method::kNamespaces:
    case wire::Method::kInfo: return 1;
    default: return 0;
  }
}

std::string FirstByteError(char first) {
  const auto byte = static_cast<uint8_t>(first);
  if (byte <= kSentinelByteMax) return "speaks Sentinel's protocol, which is not supported yet";
  constexpr char kDigits[] = "0123456789abcdef";
  return std::string("does not speak MessagePack-RPC: a message begins with byte 0x") +
         kDigits[byte >> 4] + kDigits[byte & 15];
}

}  // namespace

Engine::Impl::Impl(EngineOptions engine_options, core::Core* the_core, Driver* the_driver,
                   Instant now)
    : options(std::move(engine_options)),
      core(the_core),
      driver(the_driver),
      intake(the_core, [this] { return TurnNow(); }),
      rpc(the_core, &intake, this, options.version, [this](Instant at) { return Info(at); }),
      started(now),
      current(now) {}

wire::OutputBuffer* Engine::Impl::Immediate(Connection* connection) {
  MarkDirty(connection);
  buffers.Lend(&connection->ready);
  return &connection->ready;
}

wire::OutputBuffer* Engine::Impl::AfterCommit(Connection* connection) {
  size_t which = open;
  if (batches[open].empty()) {
    if (!committing) return Immediate(connection);
    which = in_flight();
  }
  if (connection->waiting_replies[which]++ == 0) waiters[which].push_back(connection->id);
  buffers.Lend(&connection->waiting[which]);
  return &connection->waiting[which];
}

void Engine::Impl::TakeBytes(Connection* connection, std::string_view bytes, Instant now) {
  size_t taken = 0;
  if (connection->input.empty()) {
    taken = TakeMessages(connection, bytes, now);
    if (!connection->ending && taken < bytes.size()) {
      buffers.Lend(&connection->input);
      connection->input.Append(bytes.substr(taken));
    }
  } else {
    connection->input.Append(bytes);
    taken = TakeMessages(connection, connection->input.view(), now);
    if (!connection->ending) connection->input.Consume(taken);
  }
  if (connection->ending) return;
  if (connection->input.empty()) buffers.TakeBack(&connection->input);
  NoteIncomplete(connection, taken > 0, now);
}

// Handles the whole messages at the front of `bytes`; returns how many bytes they were.
size_t Engine::Impl::TakeMessages(Connection* connection, std::string_view bytes, Instant now) {
  size_t taken = 0;
  while (taken < bytes.size()) {
    const std::string_view rest = bytes.substr(taken);
    if (!connection->splitter.in_message()) {
      if (MustPause(*connection)) {
        Pause(connection);
        return taken;
      }
      if (rest.front() != kRequestByte && rest.front() != kNotificationByte) {
        Refuse(connection, {}, FirstByteError(rest.front()));
        return taken;
      }
    }
    size_t size = 0;
    const auto outcome = connection->splitter.Next(rest, &size);
    if (outcome == wire::MessageSplitter::Outcome::kIncomplete) return taken;
    if (outcome == wire::MessageSplitter::Outcome::kInvalid) {
      Refuse(connection, rest,
             std::string("sent a message that is refused: ") + connection->splitter.error());
      return taken;
    }
    if (!HandleMessage(connection, rest.substr(0, size), now)) {
      Pause(connection);
      return taken;
    }
    if (connection->ending) return taken;
    taken += size;
  }
  return taken;
}

// False: nothing was done, this turn has no room for it.
bool Engine::Impl::HandleMessage(Connection* connection, std::string_view message, Instant now) {
  wire::Envelope envelope;
  wire::RequestError error;
  if (!wire::DecodeEnvelope(message, &envelope, &error)) {
    Refuse(connection, message, "sent what is not a request: " + error.message);
    return true;
  }
  const core::Turn turn = TurnAt(now);
  if (envelope.notification) {
    rpc.HandleNotification(connection, envelope, turn);
  } else {
    if (!TakeWork(WorkOf(envelope.method))) return false;
    rpc.HandleRequest(connection, envelope, turn);
  }
  SendLateAnswers();
  return true;
}

// To those whose wait the last call of the core has ended.
void Engine::Impl::SendLateAnswers() {
  if (!core->has_late_answers()) return;
  for (const core::LateAnswer& late : core->TakeLateAnswers()) {
    Connection* connection = &connections[late.ticket.owner];
    if (!connection->open || connection->closing) continue;  // It will not hear of it.
    rpc.ReplyAcquire(connection, late.ticket.tag, late.answer);
  }
}

// Newcomers stand behind those that yielded before.
bool Engine::Impl::TakeWork(int work) {
  if (work == 0) return true;
  if (work > work_left || (!resuming && !yielded.empty())) return false;
  work_left -= work;
  return true;
}

bool Engine::Impl::MustPause(const Connection& connection) const {
  return BatchFull() || connection.requests_in_flight() >= options.limits.requests_in_flight_max ||
         connection.ready.size() + connection.waiting_bytes() >= kReplyBytesPerTurn ||
         connection.kept >= kKeptPauseBytes;
}

void Engine::Impl::Pause(Connection* connection) {
  WaitForRoom(*connection);
  if (connection->paused) return;
  connection->paused = true;
  driver->SetReading(connection->id, false);
}

// Sees to it that a paused connection is resumed. One whose peer does not read is when it does
// (OnSent), one that waits for replies when their batch is durable.
void Engine::Impl::WaitForRoom(const Connection& connection) {
  if (BatchFull()) {
    stalled.push_back(connection.id);
  } else if (connection.kept < kKeptPauseBytes && connection.requests_in_flight() == 0) {
    yielded.push_back(connection.id);
  }
}

// Goes on with what had arrived when the connection was paused, then reads again.
void Engine::Impl::Resume(Connection* connection, Instant now) {
  if (!connection->open || connection->ending || !connection->paused) return;
  if (MustPause(*connection)) return WaitForRoom(*connection);
  connection->paused = false;
  const size_t taken = TakeMessages(connection, connection->input.view(), now);
  if (connection->ending) return;
  connection->input.Consume(taken);
  if (connection->input.empty()) buffers.TakeBack(&connection->input);
  if (!connection->paused) driver->SetReading(connection->id, true);
  NoteIncomplete(connection, /*progressed=*/true, now);
}

void Engine::Impl::ResumeYielded(Instant now) {
  resuming = true;
  for (size_t n = yielded.size(); n > 0 && work_left > 0; --n) {
    Connection* connection = &connections[yielded.front()];
    yielded.pop_front();
    Resume(connection, now);
  }
  resuming = false;
}

// Keeps the time at which the message that is arriving began. A paused connection has none: it is
// the server that does not read.
void Engine::Impl::NoteIncomplete(Connection* connection, bool progressed, Instant now) {
  const bool due = !connection->ending && !connection->paused && !connection->input.empty();
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
    Refuse(connection, connection->input.view(),
           "did not complete a message within " + std::to_string(message_ms) + " ms");
  }
  const int64_t stalled_ms = options.limits.output_stalled_ms;
  while (!keeping.empty() && keeping.begin()->first + stalled_ms <= now.ms) {
    Abort(&connections[keeping.begin()->second],
          "has read none of its replies for " + std::to_string(stalled_ms) + " ms");
  }
}

void Engine::Impl::MarkDirty(Connection* connection) {
  if (connection->dirty) return;
  connection->dirty = true;
  dirty.push_back(connection->id);
}

void Engine::Impl::Flush(Connection* connection) {
  connection->dirty = false;
  if (connection->closing || connection->ready.empty()) return;
  SetKept(connection, driver->Write(connection->id, connection->ready.view()));
  buffers.TakeBack(&connection->ready);
  const size_t queued = connection->kept + connection->waiting_bytes();
  if (queued > options.limits.output_bytes_max) {
    Abort(connection, "does not read its replies: " + std::to_string(queued) + " bytes wait");
  } else if (kept_total > options.limits.output_total_bytes_max &&
             connection->kept > kKeptAlwaysBytes) {
    Abort(connection, "does not read its replies, nor do others: " + std::to_string(kept_total) +
                          " bytes wait on all connections");
  }
}

void Engine::Impl::SetKept(Connection* connection, size_t kept) {
  // What was written behind bytes that wait already is no progress.
  const bool progressed = kept < connection->kept;
  kept_total += kept - connection->kept;
  connection->kept = kept;
  if (connection->kept_since && (progressed || kept == 0)) {
    keeping.erase({connection->kept_since->ms, connection->id});
    connection->kept_since.reset();
  }
  if (kept > 0 && !connection->kept_since) {
    connection->kept_since = current;
    keeping.emplace(current.ms, connection->id);
  }
}

// The batch of waiting[which] is durable: its replies may leave.
void Engine::Impl::MoveToReady(Connection* connection, size_t which) {
  wire::OutputBuffer& waiting = connection->waiting[which];
  connection->waiting_replies[which] = 0;
  if (waiting.empty()) return;
  if (connection->ready.empty()) {
    connection->ready.swap(waiting);
  } else {
    connection->ready.Append(waiting.view());
  }
  buffers.TakeBack(&waiting);
  MarkDirty(connection);
}

// For a peer that sends what it must not. If that began like a request it is answered, behind the
// requests before it.
void Engine::Impl::Refuse(Connection* connection, std::string_view message,
                          const std::string& why) {
  if (const auto msgid = wire::FindMsgid(message)) {
    wire::EncodeError(*msgid, {wire::ErrorCode::kMalformed, "the connection " + why},
                      Immediate(connection));
  }
  driver->Log(LogLevel::kWarn, "connection " + connection->peer + " " + why + "; closing it");
  End(connection);
}

// Takes nothing more from the connection; closes it when what it asked is answered.
void Engine::Impl::End(Connection* connection) {
  connection->ending = true;
  NoteIncomplete(connection, /*progressed=*/true, current);
  // It cannot take back what it is given, so it is given no more. Where nothing keeps it open,
  // EndSession does the same.
  if (connection->requests_in_flight() > 0) {
    core->DropWaiters(TurnAt(current), connection->id);
    SendLateAnswers();
  }
  CloseIfAnswered(connection);
}

void Engine::Impl::CloseIfAnswered(Connection* connection) {
  if (connection->closing || connection->requests_in_flight() > 0) return;
  Flush(connection);
  if (connection->closing) return;  // It does not read.
  connection->closing = true;
  EndSession(connection);
  driver->Close(connection->id, /*flush=*/true);
}

// Closes at once.
void Engine::Impl::Abort(Connection* connection, std::string_view why) {
  driver->Log(LogLevel::kWarn,
              "connection " + connection->peer + " " + std::string(why) + "; closing it");
  connection->ending = true;
  connection->closing = true;
  NoteIncomplete(connection, /*progressed=*/true, current);
  SetKept(connection, 0);
  EndSession(connection);
  driver->Close(connection->id, /*flush=*/false);
}

void Engine::Impl::EndSession(Connection* connection) {
  if (connection->session == core::kNoSession) return;
  core->Goodbye(TurnAt(current), connection->session, connection->id);
  connection->session = core::kNoSession;
  SendLateAnswers();
}

void Engine::Impl::LogNotices() const {
  for (const core::Notice& notice : core->TakeNotices()) {
    driver->Log(notice.warning ? LogLevel::kWarn : LogLevel::kInfo, notice.text);
  }
}

}  // namespace nowcalls::engine
