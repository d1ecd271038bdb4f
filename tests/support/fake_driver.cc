#include "support/fake_driver.h"

#include <doctest/doctest.h>

#include <utility>

namespace nowcalls::testing {

size_t FakeDriver::Write(engine::ConnectionId id, std::string_view bytes) {
  Socket& socket = sockets_[id];
  REQUIRE_FALSE(socket.closed);
  REQUIRE_FALSE(bytes.empty());
  socket.written.append(bytes);
  if (socket.stuck) socket.kept += bytes.size();
  return socket.kept;
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

void FakeDriver::Log(engine::LogLevel level, std::string_view message) {
  constexpr const char* kNames[] = {"debug: ", "info: ", "warn: ", "error: "};
  log_ += kNames[static_cast<size_t>(level)];
  log_ += message;
  log_ += '\n';
}

bool FakeDriver::TakeCommitBack() {
  if (!gives_back || commits.size() < 2) return false;
  commits.pop_back();
  return true;
}

Status FakeDriver::BeginBackup(const engine::BackupJob& job) {
  if (backup.has_value()) return Status::ResourceExhausted("one is being made already");
  backup = job;
  return {};
}

std::string FakeDriver::TakeLog() { return std::exchange(log_, {}); }

}  // namespace nowcalls::testing
