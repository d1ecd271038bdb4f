// ServerProcess: a real nowcalls-server on 127.0.0.1 with a port of its own and a data directory
// that outlives its kills.
//
// Thread: one at a time, and one that lives longer than the server (see process.h).
#ifndef NOWCALLS_SUPPORT_SERVER_PROCESS_H_
#define NOWCALLS_SUPPORT_SERVER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/process.h"
#include "support/rpc_client.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {

struct ServerOptions {
  std::vector<std::string> arguments;  // Added to --listen, --port-file and --data-dir.
  Environment environment{};
  std::string host = "127.0.0.1";  // Where it listens.
  uint16_t port = 0;               // 0: a free one.
  std::string program = {};        // Its path; empty: nowcalls-server.
  // What its arguments begin with: a program that becomes it (Network::Launcher).
  std::vector<std::string> launcher = {};
};

class ServerProcess {
 public:
  // Uses DIR/data, DIR/port and DIR/server.log. Nothing runs yet.
  explicit ServerProcess(std::string dir, ServerOptions options = {});

  // Starts the server and waits until it serves. Throws std::runtime_error with what the server
  // wrote to stderr when it does not.
  void Start();
  // Starts it and returns at once, for a kill during recovery.
  void StartWithoutWaiting();
  // True: it serves, and address() is known. False: it has ended, or did not within the timeout.
  bool WaitUntilServing(int64_t timeout_ms = kPatienceMs);

  void Kill9();  // And waits until it is gone.
  // SIGTERM, and the exit code once it is gone; minus the signal's number if one killed it.
  int Terminate();
  void Restart();  // Kill9 and Start.
  // Starts listen on the port that it has now, for clients that come back.
  void StayOnPort();

  Process& process() { return *process_; }
  bool Running() { return process_ && process_->Running(); }
  const std::string& address() const { return address_; }
  std::string data_dir() const { return dir_ + "/data"; }
  std::string log_path() const { return dir_ + "/server.log"; }
  std::string log() const { return ReadFileToString(log_path()); }
  // True: the log has `text`, at least after a while. A server writes its log beside its work, so
  // an answer may be there before the line about it.
  bool LogHas(const std::string& text) const;
  ServerOptions& options() { return options_; }

  // The argument vector it is started with.
  std::vector<std::string> Arguments() const;

 private:
  std::string dir_;
  ServerOptions options_;
  std::optional<Process> process_;
  std::string address_;
};

// A server that serves, in a directory of its own; how most integration tests begin.
class TestServer {
 public:
  // `rules` (one, or an array) are loaded for namespace "default" by RPC if they are not null, so
  // that a test may load others.
  explicit TestServer(const Json& rules = nullptr, ServerOptions options = {});

  RpcClient Connect() const;  // Without hello.
  // With hello for a client id; throws std::runtime_error when that is refused.
  RpcClient Connect(const std::string& client_id, const std::string& name_space = "default") const;

  ServerProcess& server() { return server_; }
  const std::string& address() const { return server_.address(); }
  std::string data_dir() const { return server_.data_dir(); }
  const std::string& dir() const { return dir_.path(); }
  std::string Sub(std::string_view name) const { return dir_.Sub(name); }

 private:
  TempDir dir_;
  ServerProcess server_;
};

// One rule as Sentinel's JSON has it. `cluster` adds to clusterConfig or replaces members of it.
Json RuleJson(int64_t flow_id, double level, const Json& cluster = Json::object());

// `rules`, or the set of one if it is a single rule: JSON's initializer lists cannot tell {rule}
// from rule.
Json RuleSet(const Json& rules);

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_SERVER_PROCESS_H_
