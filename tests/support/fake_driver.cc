#include "support/fake_driver.h"

#include <doctest/doctest.h>

#include <set>
#include <utility>

namespace nowcalls::testing {

void FakeDriver::Write(std::span<engine::Output> outputs) {
  std::set<engine::ConnectionId> seen;
  for (engine::Output& output : outputs) {
    REQUIRE(seen.insert(output.to).second);
    REQUIRE_FALSE(output.bytes.empty());
    Socket& socket = sockets_[output.to];
    REQUIRE_FALSE(socket.closed);
    socket.written.append(output.bytes);
    if (socket.stuck) socket.kept += output.bytes.size();
    output.kept = socket.kept;
  }
}

void FakeDriver::Close(engine::ConnectionId id, bool flush) {
  Socket& socket = sockets_[id];
  REQUIRE((!socket.closed || (socket.flushed && !flush)));
  socket.closed = true;
  socket.flushed = flush;
}

void FakeDriver::SetReading(engine::ConnectionId id, bool on) {
  Socket& socket = sockets_[id];
  REQUIRE_FALSE(socket.closed);
  socket.reading = on;
}

void FakeDriver::Log(engine::Severity severity, LogTopic topic, std::string_view message,
                     const LogFields& fields) {
  constexpr const char* kNames[] = {"debug: ", "info: ", "warn: ", "error: "};
  log_ += kNames[static_cast<size_t>(severity)];
  log_ += message;
  log_ += '\n';
  constexpr const char* kTopics[] = {"server", "peer", "act"};
  last_topic_and_fields_ = kTopics[static_cast<size_t>(topic)];
  for (const LogField& field : fields) {
    last_topic_and_fields_ += std::string(" ") + field.name + "=" + field.value;
  }
}

Status FakeDriver::BeginBackup(const engine::BackupJob& job) {
  if (backup.has_value()) return Status::ResourceExhausted("one is being made already");
  backup = job;
  return {};
}

std::string FakeDriver::TakeLog() { return std::exchange(log_, {}); }

}  // namespace nowcalls::testing
