#include "command/exec_runs.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <sstream>
#include <utility>

#include "support/poll_until.h"

namespace nowcalls::testing {
namespace {

std::string NewMark() {
  static std::atomic<int> runs{0};
  return "EXEC_RUN_MARK=" + std::to_string(getpid()) + "-" + std::to_string(++runs) + "-";
}

}  // namespace

std::vector<std::string> ExecArgv(const std::string& address, std::vector<std::string> options,
                                  const std::vector<std::string>& command) {
  std::vector<std::string> argv = {ProductBinary("nowcalls"), "exec", "--server", address};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.emplace_back("--");
  argv.insert(argv.end(), command.begin(), command.end());
  return argv;
}

Finished RunExec(const TestServer& server, std::vector<std::string> options,
                 const std::vector<std::string>& command) {
  return RunProgram(ExecArgv(server.address(), std::move(options), command));
}

int64_t InProgress(const TestServer& server) {
  RpcClient rpc = server.Connect();
  return rpc.Call("flow", {7}).result.at("now_calls").get<int64_t>();
}

char StateOf(pid_t pid) {
  const std::string stat = ReadFileToString("/proc/" + std::to_string(pid) + "/stat");
  return stat.empty() ? '-' : stat[stat.rfind(')') + 2];
}

std::vector<pid_t> ChildrenOf(pid_t pid) {
  const std::string task = std::to_string(pid);
  std::istringstream list(ReadFileToString("/proc/" + task + "/task/" + task + "/children"));
  std::vector<pid_t> children;
  for (pid_t child = 0; list >> child;) children.push_back(child);
  return children;
}

ExecRun::ExecRun(const std::string& address, const TempDir& dir, std::vector<std::string> options,
                 const std::string& script, std::vector<std::string> before,
                 Environment environment)
    : mark_(NewMark()), out_(dir.Sub(mark_ + "out")), err_(dir.Sub(mark_ + "err")) {
  Process::Options process;
  process.argv = std::move(before);
  for (std::string& word : ExecArgv(address, std::move(options), {"/bin/sh", "-c", script})) {
    process.argv.push_back(std::move(word));
  }
  environment["EXEC_RUN_MARK"] = mark_.substr(mark_.find('=') + 1);
  process.environment = std::move(environment);
  process.stdout_path = out_;
  process.stderr_path = err_;
  process_.emplace(process);
}

ExecRun::~ExecRun() {
  for (const int signal : {SIGTERM, SIGKILL}) {
    process_->Signal(SIGCONT);
    process_->Signal(signal);
    if (process_->Wait(signal == SIGTERM ? 1000 : kPatienceMs)) break;
  }
  for (const pid_t pid : Others()) kill(pid, SIGKILL);
}

bool ExecRun::IsUp() const { return Prints("up\n"); }

bool ExecRun::Prints(const std::string& text) const {
  return PollUntil(kPatienceMs, [&] { return Contains(out(), text); });
}

std::vector<pid_t> ExecRun::Others() const {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto pid = static_cast<pid_t>(std::atoi(entry.path().filename().c_str()));
    if (pid <= 0 || pid == process_->pid()) continue;
    if (Contains(ReadFileToString(entry.path() / "environ"), mark_)) found.push_back(pid);
  }
  return found;
}

bool ExecRun::NothingIsLeft() const {
  return PollUntil(kPatienceMs, [&] { return Others().empty(); });
}

Sleeper::Sleeper(const TestServer& server, const TempDir& dir, std::vector<std::string> options)
    : ExecRun(server.address(), dir, std::move(options),
              "trap 'echo term; exit 7' TERM; trap 'echo usr1' USR1; echo up; "
              "while :; do sleep 0.05; done") {
  REQUIRE(IsUp());
}

}  // namespace nowcalls::testing
