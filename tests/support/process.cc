#include "support/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "test_paths.h"

namespace nowcalls::testing {
namespace {

std::vector<std::string> MergedEnvironment(const Environment& changes) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (text.starts_with("NOWCALLS_") || changes.contains(name)) continue;
    merged.emplace_back(text);
  }
  for (const auto& [name, value] : changes) merged.push_back(name + "=" + value);
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  for (auto& string : *strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec only async-signal-safe calls are allowed: other threads may have held
// locks.
[[noreturn]] void RunChild(const char* in, const char* out, const char* err, char* const* argv,
                           char* const* env) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // In a group of its own, whose parent is outside: an orphaned group does not stop by SIGTSTP.
  setpgid(0, 0);
  const int in_fd = open(in, O_RDONLY);
  const int out_fd = open(out, O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int err_fd = open(err, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (in_fd < 0 || out_fd < 0 || err_fd < 0) _exit(126);
  dup2(in_fd, STDIN_FILENO);
  dup2(out_fd, STDOUT_FILENO);
  dup2(err_fd, STDERR_FILENO);
  for (int fd = 3; fd < 4096; ++fd) close(fd);
  // The parent has blocked all signals: doctest's handlers are not for its child.
  for (int number = 1; number < SIGRTMIN; ++number) {
    if (signal(number, SIG_DFL) == SIG_IGN) signal(number, SIG_IGN);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(argv[0], argv, env);
  _exit(127);
}

}  // namespace

Process::Process(const Options& options) {
  auto arguments = options.argv;
  auto environment = MergedEnvironment(options.environment);
  const auto argv = Pointers(&arguments);
  const auto env = Pointers(&environment);
  if (::access(argv[0], X_OK) != 0) {
    throw std::runtime_error(options.argv[0] + ": " + std::strerror(errno));
  }
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_ = fork();
  const int fork_errno = errno;
  if (pid_ != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = fork_errno;
  if (pid_ < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid_ == 0) {
    RunChild(options.stdin_path.c_str(), options.stdout_path.c_str(), options.stderr_path.c_str(),
             argv.data(), env.data());
  }
}

Process::~Process() { KillAndReap(); }

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), ended_(other.ended_) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  KillAndReap();
  pid_ = std::exchange(other.pid_, -1);
  ended_ = other.ended_;
  return *this;
}

void Process::KillAndReap() {
  if (pid_ <= 0 || ended_) return;
  kill(pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
}

bool Process::Running() { return !Wait(0).has_value(); }

void Process::Signal(int signal) const {
  if (pid_ > 0 && !ended_) kill(pid_, signal);
}

void Process::Stop() const {
  Signal(SIGSTOP);
  const bool stopped = PollUntil(kPatienceMs, [this] {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 &&
           info.si_pid == pid_;
  });
  if (!stopped) throw std::runtime_error("a process ignores SIGSTOP, or has ended");
}

std::optional<int> Process::Wait(int64_t timeout_ms) {
  PollUntil(timeout_ms, [this] {
    if (ended_ || pid_ <= 0) return true;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
    ended_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  });
  return ended_;
}

Finished RunProgram(std::vector<std::string> argv, const Environment& environment,
                    int64_t timeout_ms) {
  std::string folder = "/tmp/nowcalls-run-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  const std::string out = folder + "/out";
  const std::string err = folder + "/err";
  const std::string name = argv[0];
  Process process({std::move(argv), environment, out, err, "/dev/null"});
  const auto exit_code = process.Wait(timeout_ms);
  Finished finished{exit_code.value_or(0), ReadFileToString(out), ReadFileToString(err)};
  unlink(out.c_str());
  unlink(err.c_str());
  rmdir(folder.c_str());
  if (!exit_code) throw std::runtime_error(name + " did not end in time; stderr: " + finished.err);
  return finished;
}

std::string ProductBinary(const std::string& name) {
  return std::string(NOWCALLS_BIN_DIR) + "/" + name;
}

std::string ReadFileToString(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void WriteStringToFile(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

void FlipByte(const std::string& path, uint64_t offset, int mask) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  if (byte < 0) throw std::runtime_error("no such byte in " + path);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ mask));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void AllowManyFiles(uint64_t files) {
  rlimit limit{};
  bool raised = getrlimit(RLIMIT_NOFILE, &limit) == 0;
  limit.rlim_cur = limit.rlim_max;
  raised = raised && setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= files;
  if (!raised) throw std::runtime_error("fewer than " + std::to_string(files) + " files");
}

uint64_t ResidentBytes(pid_t pid) {
  std::istringstream status(ReadFileToString("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

Environment WithShim(const std::string& name) {
  // AddressSanitizer wants to be the first library, but does not need to be.
  const char* given = std::getenv("ASAN_OPTIONS");
  const std::string before = given == nullptr ? "" : std::string(given) + ":";
  return {{"LD_PRELOAD", NOWCALLS_TEST_BIN_DIR "/" + name + ".so"},
          {"ASAN_OPTIONS", before + "verify_asan_link_order=0"}};
}

}  // namespace nowcalls::testing
