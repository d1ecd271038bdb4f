// Bytes out of connections: replies that wait, peers that do not read, and how connections end.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/engine_impl.h"

namespace nowcalls::engine {
namespace {

// MERGE: the core gives its notices a topic and fields of their own; this function goes then, and
// LogNotices passes notice.topic and notice.fields on.
LogTopic TopicOfNotice(std::string_view text) {
  if (text.starts_with("client ")) return LogTopic::kPeer;
  if (text.starts_with("administrator ") || text.starts_with("namespace ")) return LogTopic::kAct;
  return LogTopic::kServer;
}

}  // namespace

Engine::Impl::Impl(EngineOptions engine_options, core::Core* the_core, Driver* the_driver,
                   Instant now)
    : options(std::move(engine_options)),
      core(the_core),
      driver(the_driver),
      intake(the_core, [this] { return TurnNow(); }),
      rpc(the_core, &intake, this, the_driver, options.version,
          [this](Instant at) { return Info(at); }),
      started(now),
      current(now),
      disk(options.limits) {}

wire::OutputBuffer* Engine::Impl::Immediate(Connection* connection) {
  MarkDirty(connection);
  buffers.Lend(&connection->ready);
  return &connection->ready;
}

wire::OutputBuffer* Engine::Impl::AfterCommit(Connection* connection) {
  size_t which = open;
  if (batches[open].empty()) {
    if (!committing) return Immediate(connection);
    which = sealed();
  }
  if (connection->waiting_replies[which]++ == 0) waiters[which].push_back(connection->id);
  buffers.Lend(&connection->waiting[which]);
  return &connection->waiting[which];
}

void Engine::Impl::MarkDirty(Connection* connection) {
  if (connection->dirty) return;
  connection->dirty = true;
  dirty.push_back(connection->id);
}

// All that became dirty until now, with one call of the driver.
void Engine::Impl::FlushDirty() {
  for (const ConnectionId id : dirty) {
    Connection* connection = &connections[id];
    if (connection->dirty && HasOutput(connection)) {
      outputs.push_back({id, connection->ready.view(), 0});
    }
  }
  dirty.clear();
  WriteOutputs();
}

void Engine::Impl::Flush(Connection* connection) {
  if (!HasOutput(connection)) return;
  outputs.push_back({connection->id, connection->ready.view(), 0});
  WriteOutputs();
}

// It is not dirty any more.
bool Engine::Impl::HasOutput(Connection* connection) {
  connection->dirty = false;
  return !connection->closed() && !connection->ready.empty();
}

void Engine::Impl::WriteOutputs() {
  if (outputs.empty()) return;
  driver->Write(outputs);
  for (const Output& output : outputs) {
    Connection* connection = &connections[output.to];
    SetKept(connection, output.kept);
    buffers.TakeBack(&connection->ready);
  }
  // What ends here may make replies for others, and write itself.
  std::vector<Output> written;
  written.swap(outputs);
  for (const Output& output : written) {
    Connection* connection = &connections[output.to];
    const size_t queued = connection->kept + connection->waiting_bytes;
    if (queued > options.limits.output_bytes_max && !connection->closed()) {
      Abort(connection, "does not read its replies: " + std::to_string(queued) + " bytes wait");
    }
  }
  written.clear();
  outputs.swap(written);
}

void Engine::Impl::BoundKept() {
  while (kept_total > options.limits.output_total_bytes_max) {
    const auto [size, id] = *kept_sizes.rbegin();
    Abort(&connections[id], "does not read its replies: " + std::to_string(size) +
                                " bytes wait, the most of all connections, which together exceed " +
                                std::to_string(options.limits.output_total_bytes_max));
  }
}

void Engine::Impl::SetKept(Connection* connection, size_t kept) {
  // What was written behind bytes that wait already is no progress.
  const bool progressed = kept < connection->kept;
  if (kept != connection->kept) {
    if (connection->kept > 0) kept_sizes.erase({connection->kept, connection->id});
    if (kept > 0) kept_sizes.emplace(kept, connection->id);
  }
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
  CountWaiting(connection);
  MarkDirty(connection);
}

// After replies that wait have been added or taken.
void Engine::Impl::CountWaiting(Connection* connection) {
  size_t bytes = 0;
  for (const wire::OutputBuffer& waiting : connection->waiting) bytes += waiting.size();
  waiting_total += bytes - std::exchange(connection->waiting_bytes, bytes);
}

// For a peer that sends what it must not. If that began like a request it is answered, behind the
// requests before it.
void Engine::Impl::Refuse(Connection* connection, std::string_view message,
                          const std::string& why) {
  if (const auto msgid = wire::FindMsgid(message)) {
    wire::EncodeError(*msgid, {wire::ErrorCode::kMalformed, "the connection " + why},
                      Immediate(connection));
  }
  LogClosing(*connection, why);
  End(connection);
}

// Takes nothing more from the connection; closes it when what it asked is answered.
void Engine::Impl::End(Connection* connection) {
  connection->state = ConnectionState::kEnding;
  DropInput(connection);
  // It cannot take back what it is given, so it is given no more. Where nothing keeps it open,
  // EndSession does the same.
  if (connection->requests_in_flight() > 0) {
    core->DropWaiters(TurnAt(current), connection->id);
    SendLateAnswers();
  }
  CloseIfAnswered(connection);
}

void Engine::Impl::CloseIfAnswered(Connection* connection) {
  if (connection->closed() || connection->requests_in_flight() > 0) return;
  // The answer to a backup needs no session, and may be long in coming.
  if (connection->backup_msgid.has_value()) return EndSession(connection);
  Flush(connection);
  if (connection->closed()) return;  // It does not read.
  connection->state = ConnectionState::kClosed;
  // The driver sees to it that the rest is read in time; it counts until then.
  if (connection->kept_since) {
    keeping.erase({connection->kept_since->ms, connection->id});
    connection->kept_since.reset();
  }
  EndSession(connection);
  driver->Close(connection->id, /*flush=*/true);
}

// Closes at once.
void Engine::Impl::Abort(Connection* connection, std::string_view why) {
  LogClosing(*connection, std::string(why));
  connection->state = ConnectionState::kClosed;
  DropInput(connection);
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

void Engine::Impl::LogClosing(const Connection& connection, const std::string& why) const {
  driver->Log(LogLevel::kWarn, LogTopic::kPeer,
              "connection " + connection.peer + " " + why + "; closing it",
              {{"peer", connection.peer}, {"reason", why}});
}

void Engine::Impl::LogNotices() const {
  for (const core::Notice& notice : core->TakeNotices()) {
    driver->Log(notice.warning ? LogLevel::kWarn : LogLevel::kInfo, TopicOfNotice(notice.text),
                notice.text, {});
  }
}

}  // namespace nowcalls::engine
