// Server: nowcalls-server within a program.
//
//   nowcalls::Server server({.rule_sources = {std::make_shared<MyRules>()}});
//   return server.Run({"--data-dir", "/var/lib/gate", "--listen", "127.0.0.1:18730"});
//
// As nowcalls-server it logs to standard error, SIGTERM and SIGINT end it, and a disk that fails
// ends the process with 74. nowcalls/embedded.h is for programs that must outlive that.
//
// Thread: Run is the server's loop. Post, Stop and addresses: any thread, at any time.
#ifndef NOWCALLS_SERVER_H_
#define NOWCALLS_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nowcalls/expire_strategy.h"
#include "nowcalls/rule_source.h"

namespace nowcalls {

struct ServerAdditions {
  // In place of --expire-strategy; `info` and the log have the name.
  std::shared_ptr<ExpireStrategy> expire_strategy{};
  std::string expire_strategy_name = "program";
  // Started in this order, behind the rule files, before anybody connects.
  std::vector<std::shared_ptr<RuleSource>> rule_sources{};
};

class Server {
 public:
  explicit Server(ServerAdditions additions = {});
  // REQUIRES: Run does not run.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves until Stop or a signal. `arguments` are those of nowcalls-server, whose environment and
  // configuration file count, too. Returns its exit code. One server of a process runs at a time.
  int Run(const std::vector<std::string>& arguments);

  // The loop runs the job soon, unless it has ended. Deliveries of a RuleSource belong here.
  void Post(std::function<void()> job);
  // Ends Run as SIGTERM does, also one that is yet to come.
  void Stop();
  // Where the server answers, as it logs them; empty until it does.
  std::vector<std::string> addresses() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls

#endif  // NOWCALLS_SERVER_H_
