// Driver: what the engine needs from the world around it.
//
// Thread: loop. The libuv server, tests and the simulator implement it. Every call comes from
// within an Engine call; none may call the engine back.
#ifndef NOWCALLS_ENGINE_DRIVER_H_
#define NOWCALLS_ENGINE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/log_record.h"
#include "nowcalls/status.h"

namespace nowcalls::engine {

// Names an open connection; given by Engine::OnConnect, free for reuse after OnDisconnect.
using ConnectionId = uint32_t;

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Replies to one connection; never empty.
struct Output {
  ConnectionId to = 0;
  std::string_view bytes;  // Gone after the call.
  size_t kept = 0;         // Set by the call.
};

struct BackupJob {
  ConnectionId asker = 0;
  std::string by;  // HOST:PORT of the asker, for the log.
  std::string to;  // The directory that is to be made for it.
};

class Driver {
 public:
  virtual ~Driver() = default;

  // Sends the outputs of a turn without blocking, behind what was sent before; no connection is
  // named twice. Copies what a socket does not take at once. `kept`: bytes still buffered of the
  // connection. Call Engine::OnSent whenever that number falls.
  virtual void Write(std::span<Output> outputs) = 0;

  // Ends the connection: after sending what is buffered if `flush`, else at once. Of a connection
  // that is being flushed the engine may call Close once more, without `flush`, and nothing else.
  // The driver still calls OnDisconnect once, later and not from within this call.
  virtual void Close(ConnectionId id, bool flush) = 0;

  // Stops or resumes reading from the connection: backpressure. Doing it twice is doing it once.
  virtual void SetReading(ConnectionId id, bool on) = 0;

  // Begins a backup beside the loop, and logs it; Engine::OnBackupDone reports its end.
  // kResourceExhausted: one is under way, or the server ends.
  virtual Status BeginBackup(const BackupJob& job) = 0;

  // Logs a line. `topic` bounds how many lines of its kind a second are logged; `fields` stand
  // beside the message in a JSON log.
  virtual void Log(LogLevel level, LogTopic topic, std::string_view message,
                   const LogFields& fields) = 0;
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_DRIVER_H_
