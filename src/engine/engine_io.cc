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
      rpc(the_core, this, options.version, [this](Instant at) { return Info(at); }),
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
    if (!connection->closing && taken < bytes.size()) {
      buffers.Lend(&connection->input);
      connection->input.Append(bytes.substr(taken));
    }
  } else {
    connection->input.Append(bytes);
    taken = TakeMessages(connection, connection->input.view(), now);
    connection->input.Consume(taken);
  }
  if (connection->closing || connection->input.empty()) buffers.TakeBack(&connection->input);
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
        Close(connection, /*flush=*/true, FirstByteError(rest.front()));
        return taken;
      }
    }
    size_t size = 0;
    const auto outcome = connection->splitter.Next(rest, &size);
    if (outcome == wire::MessageSplitter::Outcome::kIncomplete) return taken;
    if (outcome == wire::MessageSplitter::Outcome::kInvalid) {
      Close(connection, /*flush=*/true,
            std::string("sent a message that is refused: ") + connection->splitter.error());
      return taken;
    }
    HandleMessage(connection, rest.substr(0, size), now);
    if (connection->closing) return taken;
    taken += size;
  }
  return taken;
}

void Engine::Impl::HandleMessage(Connection* connection, std::string_view message, Instant now) {
  wire::Envelope envelope;
  wire::RequestError error;
  if (!wire::DecodeEnvelope(message, &envelope, &error)) {
    return Close(connection, /*flush=*/true, "sent what is not a request: " + error.message);
  }
  const core::Turn turn = TurnAt(now);
  if (envelope.notification) {
    rpc.HandleNotification(connection, envelope, turn);
  } else {
    rpc.HandleRequest(connection, envelope, turn);
  }
}

bool Engine::Impl::MustPause(const Connection& connection) const {
  return BatchFull() || connection.requests_in_flight() >= options.limits.requests_in_flight_max ||
         connection.ready.size() + connection.waiting_bytes() >= kReplyBytesPerTurn;
}

void Engine::Impl::Pause(Connection* connection) {
  WaitForRoom(*connection);
  if (connection->paused) return;
  connection->paused = true;
  driver->SetReading(connection->id, false);
}

// Sees to it that a paused connection is resumed. One that waits for replies is, when their batch
// is durable.
void Engine::Impl::WaitForRoom(const Connection& connection) {
  if (BatchFull()) {
    stalled.push_back(connection.id);
  } else if (connection.requests_in_flight() == 0) {
    yielded.push_back(connection.id);
  }
}

// Goes on with what had arrived when the connection was paused, then reads again.
void Engine::Impl::Resume(Connection* connection, Instant now) {
  if (!connection->open || connection->closing || !connection->paused) return;
  if (MustPause(*connection)) return WaitForRoom(*connection);
  connection->paused = false;
  const size_t taken = TakeMessages(connection, connection->input.view(), now);
  if (connection->closing) return buffers.TakeBack(&connection->input);
  connection->input.Consume(taken);
  if (connection->input.empty()) buffers.TakeBack(&connection->input);
  if (!connection->paused) driver->SetReading(connection->id, true);
  NoteIncomplete(connection, /*progressed=*/true, now);
}

// Keeps the time at which the message that is arriving began. A paused connection has none: it is
// the server that does not read.
void Engine::Impl::NoteIncomplete(Connection* connection, bool progressed, Instant now) {
  const bool due = !connection->closing && !connection->paused && !connection->input.empty();
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
  const int64_t limit_ms = options.limits.message_incomplete_ms;
  while (!incomplete.empty() && incomplete.begin()->first + limit_ms <= now.ms) {
    Connection& connection = connections[incomplete.begin()->second];
    Close(&connection, /*flush=*/true,
          "did not complete a message within " + std::to_string(limit_ms) + " ms");
    NoteIncomplete(&connection, /*progressed=*/true, now);
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
  const size_t kept = driver->Write(connection->id, connection->ready.view());
  buffers.TakeBack(&connection->ready);
  const size_t queued = kept + connection->waiting_bytes();
  if (queued > options.limits.output_bytes_max) {
    Close(connection, /*flush=*/false,
          "does not read its replies: " + std::to_string(queued) + " bytes wait");
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

void Engine::Impl::Close(Connection* connection, bool flush, std::string_view why) {
  if (connection->closing) return;
  driver->Log(LogLevel::kWarn,
              "connection " + connection->peer + " " + std::string(why) + "; closing it");
  if (flush) Flush(connection);
  if (connection->closing) return;  // The flush found that it does not read.
  connection->closing = true;
  EndSession(connection);
  driver->Close(connection->id, flush);
}

void Engine::Impl::EndSession(Connection* connection) {
  if (connection->session == core::kNoSession) return;
  core->Goodbye(TurnAt(current), connection->session);
  connection->session = core::kNoSession;
}

void Engine::Impl::LogNotices() {
  for (const core::Notice& notice : core->TakeNotices()) {
    driver->Log(notice.warning ? LogLevel::kWarn : LogLevel::kInfo, notice.text);
  }
}

nlohmann::ordered_json Engine::Impl::Info(Instant now) const {
  const Limits& limits = options.limits;
  return {
      {"version", options.version},
      {"uptime_ms", now - started},
      {"ledger",
       {{"data_dir", options.data_dir},
        {"durability", options.durability},
        {"format", ledger::kFormatVersion},
        {"ledger_ms", now.ms},
        {"batches", core->batch_number()},
        {"next_fence", core->next_fence()}}},
      {"counts",
       {{"connections", connections_open},
        {"sessions", core->sessions().size()},
        {"namespaces", core->flows().namespaces()},
        {"rules", core->flows().rules()},
        {"flows", core->flows().size()},
        {"tokens", core->tokens().size()},
        {"now_calls", core->live_count_sum()},
        {"oldest_issued_ms", core->oldest_issued_ms()},
        {"token_table_bytes", core->tokens().MemoryBytes()}}},
      {"limits",
       {{"connections_max", limits.connections_max},
        {"sessions_max", limits.sessions_max},
        {"rules_max", limits.rules_max},
        {"namespaces_max", limits.namespaces_max},
        {"tokens_max", limits.tokens_max},
        {"requests_in_flight_max", limits.requests_in_flight_max},
        {"message_bytes_max", kMessageBytesMax},
        {"output_bytes_max", limits.output_bytes_max},
        {"message_incomplete_ms", limits.message_incomplete_ms},
        {"batch_bytes_max", limits.batch_bytes_max},
        {"listings_max", limits.listings_max},
        {"listing_idle_ms", limits.listing_idle_ms}}},
  };
}

}  // namespace nowcalls::engine
