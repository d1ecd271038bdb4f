// Driver: what the engine needs from its surroundings.
//
// Thread: loop, within an Engine call. No method may call the engine back.
#ifndef NOWCALLS_ENGINE_DRIVER_H_
#define NOWCALLS_ENGINE_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/log_record.h"
#include "nowcalls/status.h"
#include "wire/cluster_messages.h"

namespace nowcalls::engine {

// Reused after OnDisconnect.
using ConnectionId = uint32_t;

enum class Severity { kDebug, kInfo, kWarn, kError };

// Never empty.
struct Output {
  ConnectionId to = 0;
  std::string_view bytes;  // Gone after the call.
  size_t kept = 0;         // Set by the call.
};

struct BackupJob {
  ConnectionId asker = 0;
  std::string by;  // HOST:PORT of the asker, for the log.
  std::string to;  // The directory that is to be made for it; empty: the driver's own place.
};

class Driver {
 public:
  virtual ~Driver() = default;

  // Sends outputs behind earlier ones, without blocking; no connection comes twice. Buffers bytes
  // that a socket does not take, and sets `kept` to all that are buffered of the connection. Call
  // Engine::OnSent whenever it falls.
  virtual void Write(std::span<Output> outputs) = 0;

  // Closes: after the buffered bytes if `flush`, else at once. During a flush the engine may only
  // Close once more, without `flush`. Call OnDisconnect once, after this call.
  virtual void Close(ConnectionId id, bool flush) = 0;

  virtual void SetReading(ConnectionId id, bool on) = 0;  // Backpressure. Idempotent.

  // Begins a backup beside the loop, which Engine::OnBackupDone ends, and logs it.
  // kResourceExhausted: one is under way, or the server ends. kFailedPrecondition: it has no place
  // of its own.
  virtual Status BeginBackup(const BackupJob& job) = 0;
  // Reads from the last backup in that place, without blocking; no bytes: the end of the file.
  // kResourceExhausted: not in memory yet, ask again. kNotFound: there is no such file.
  virtual Result<std::string_view> ReadCopy(std::string_view /*file*/, uint64_t /*offset*/) {
    return NoMember();
  }

  // kFailedPrecondition: the server is no member of a cluster, here and below.
  virtual Result<wire::ClusterReply> DescribeCluster() { return NoMember(); }
  // Begins a handover to a standby, soon after the call. `by`: for the log. Returns the term that
  // ends. Also kResourceExhausted: no standby can take over now, and why.
  virtual Result<uint64_t> HandOver(std::string_view /*by*/) { return NoMember(); }

  // `topic` bounds the lines a second; `fields` stand beside the message in a JSON log.
  virtual void Log(Severity severity, LogTopic topic, std::string_view message,
                   const LogFields& fields) = 0;

 protected:
  static Status NoMember() {
    return Status::FailedPrecondition("this server is no member of a cluster");
  }
};

}  // namespace nowcalls::engine

#endif  // NOWCALLS_ENGINE_DRIVER_H_
