// Runs of `nowcalls exec` for tests.
//
// Thread: that of the test.
#ifndef NOWCALLS_COMMAND_EXEC_RUNS_H_
#define NOWCALLS_COMMAND_EXEC_RUNS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

namespace nowcalls::testing {

std::vector<std::string> ExecArgv(const std::string& address, std::vector<std::string> options,
                                  const std::vector<std::string>& command);

Finished RunExec(const TestServer& server, std::vector<std::string> options,
                 const std::vector<std::string>& command);

// Of flow 7.
int64_t InProgress(const TestServer& server);

// The state of a process, as ps(1) has it: 'T' is stopped, '-' gone.
char StateOf(pid_t pid);
std::vector<pid_t> ChildrenOf(pid_t pid);

// exec with a shell script as its command, which prints "up" when it is ready.
class ExecRun {
 public:
  // Starts it. `before`: words before the program, such as unshare(1).
  ExecRun(const std::string& address, const TempDir& dir, std::vector<std::string> options,
          const std::string& script, std::vector<std::string> before = {},
          Environment environment = {});
  // Ends all that is left of it.
  ~ExecRun();
  ExecRun(const ExecRun&) = delete;
  ExecRun& operator=(const ExecRun&) = delete;

  bool IsUp() const;
  bool Prints(const std::string& text) const;
  // The guard and the command. REQUIRES: IsUp().
  pid_t guard() const { return ChildrenOf(process_->pid()).at(0); }
  pid_t command() const { return ChildrenOf(guard()).at(0); }
  // All processes of it but exec itself: guard, command and what that started. They are known by a
  // variable in their environment.
  std::vector<pid_t> Others() const;
  bool NothingIsLeft() const;

  std::string out() const { return ReadFileToString(out_); }
  std::string err() const { return ReadFileToString(err_); }
  Process& process() { return *process_; }

 private:
  const std::string mark_;
  const std::string out_;
  const std::string err_;
  std::optional<Process> process_;
};

// A command that runs until it is told to end: SIGTERM ends it with exit code 7.
class Sleeper : public ExecRun {
 public:
  Sleeper(const TestServer& server, const TempDir& dir, std::vector<std::string> options);
};

}  // namespace nowcalls::testing

#endif  // NOWCALLS_COMMAND_EXEC_RUNS_H_
