// FakeDriver: an engine::Driver that keeps what it is told, and checks that it is told nothing of a
// connection after its Close.
//
// Thread: one at a time.
#ifndef NOWCALLS_SUPPORT_FAKE_DRIVER_H_
#define NOWCALLS_SUPPORT_FAKE_DRIVER_H_

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/driver.h"
#include "ledger/commit_batch.h"

namespace nowcalls::testing {

class FakeDriver : public engine::Driver {
 public:
  struct Socket {
    std::string written;  // Since the test last took it.
    size_t kept = 0;      // Bytes the peer has not taken; grows only while `stuck`.
    bool stuck = false;   // The peer does not read.
    bool reading = true;
    bool closed = false;
    bool flushed = false;  // As Close said.
  };

  void Write(std::span<engine::Output> outputs) override;
  void Close(engine::ConnectionId id, bool flush) override;
  void SetReading(engine::ConnectionId id, bool on) override;
  void Log(engine::Severity severity, LogTopic topic, std::string_view message,
           const LogFields& fields) override;
  Status BeginBackup(const engine::BackupJob& job) override;
  Result<std::string_view> ReadCopy(std::string_view /*file*/, uint64_t /*offset*/) override {
    return std::string_view("abc");
  }
  Result<wire::ClusterReply> DescribeCluster() override {
    return cluster ? Result<wire::ClusterReply>(*cluster) : Driver::DescribeCluster();
  }
  Result<uint64_t> HandOver(std::string_view by) override {
    if (!cluster) return Driver::HandOver(by);
    if (cluster->members.size() < 2) return Status::ResourceExhausted("nobody else lives");
    handed_over_by = by;
    return cluster->term;
  }

  // The batch that is being committed; nullptr: none.
  const ledger::CommitBatch* commit = nullptr;

  // None: the server is no member of one.
  std::optional<wire::ClusterReply> cluster;
  std::string handed_over_by;

  // Backups that were asked for and have not ended; a second one is refused.
  std::optional<engine::BackupJob> backup;

  Socket& socket(engine::ConnectionId id) { return sockets_[id]; }
  void Forget(engine::ConnectionId id) { sockets_.erase(id); }
  // The log since it was last taken, a line each: "warn: connection ...".
  std::string TakeLog();
  // Of the last line of the log: "peer peer=127.0.0.1:1 reason=...".
  const std::string& last_topic_and_fields() const { return last_topic_and_fields_; }

 private:
  std::map<engine::ConnectionId, Socket> sockets_;
  std::string log_;
  std::string last_topic_and_fields_;
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_FAKE_DRIVER_H_
