#include "backup/verify_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "backup/backup.h"
#include "base/exit_codes.h"
#include "base/last_words.h"
#include "base/text.h"
#include "store/disk/file_copy.h"

namespace nowcalls::backup {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFlag[] = "--verify-copy";
constexpr size_t kOutputBytesMax = 1024 * 1024;
// Last words matter; a report is much shorter.
constexpr size_t kWordsBytesMax = 512;

std::string EncodeReport(const Result<VerifySummary>& verified) {
  Json report;
  if (verified.ok()) {
    report = {{"batch_number", verified->batch_number},
              {"tokens", verified->tokens},
              {"now_calls", verified->now_calls},
              {"sessions", verified->sessions},
              {"rules", verified->rules},
              {"history", verified->history}};
    if (verified->seal.has_value()) {
      const ledger::Seal& seal = *verified->seal;
      report["seal"] = Json::array({seal.batch_number, seal.next_fence, seal.ledger_ms,
                                    seal.live_tokens, seal.live_count_sum, seal.live_fence_sum});
    }
  } else {
    report = {{"code", static_cast<int>(verified.status().code())},
              {"message", verified.status().message()}};
  }
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Throws Json's exceptions for text that is no report.
Result<VerifySummary> DecodeReport(std::string_view text) {
  const Json report = Json::parse(text);
  if (report.contains("code")) {
    const int code = report.at("code").get<int>();
    const bool failed =
        code > static_cast<int>(StatusCode::kOk) && code <= static_cast<int>(StatusCode::kIoError);
    return Status(failed ? static_cast<StatusCode>(code) : StatusCode::kCorruption,
                  report.at("message").get<std::string>());
  }
  VerifySummary summary;
  summary.batch_number = report.at("batch_number").get<uint64_t>();
  summary.tokens = report.at("tokens").get<uint64_t>();
  summary.now_calls = report.at("now_calls").get<uint64_t>();
  summary.sessions = report.at("sessions").get<uint64_t>();
  summary.rules = report.at("rules").get<uint64_t>();
  summary.history = report.at("history").get<uint64_t>();
  if (report.contains("seal")) {
    const Json& seal = report.at("seal");
    summary.seal = {.batch_number = seal.at(0).get<uint64_t>(),
                    .next_fence = seal.at(1).get<uint64_t>(),
                    .ledger_ms = seal.at(2).get<int64_t>(),
                    .live_tokens = seal.at(3).get<uint64_t>(),
                    .live_count_sum = seal.at(4).get<uint64_t>(),
                    .live_fence_sum = seal.at(5).get<uint64_t>()};
  }
  return summary;
}

// The last line that is not empty.
std::string_view LastLine(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

// The last words of a process (base/last_words.h), or its last line.
std::string WordsIn(std::string_view output) {
  constexpr std::string_view kFatal = "fatal: ";
  const size_t fatal = output.find(kFatal);
  std::string_view words = LastLine(output);
  if (fatal != std::string_view::npos) {
    words = output.substr(fatal + kFatal.size());
    words = words.substr(0, words.find('\n'));
    // This advice is for a ledger without a server.
    words = words.substr(0, words.find("; the ledger is damaged"));
  }
  if (words.empty()) return "it said nothing";
  if (words.size() <= kWordsBytesMax && IsPrintable(words)) return std::string(words);
  return "it said " + Quoted(words, kWordsBytesMax);
}

bool IsCrash(int signal) {
  constexpr std::array kCrashes = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
  return std::find(kCrashes.begin(), kCrashes.end(), signal) != kCrashes.end();
}

// Exit 0: the report counts. Without one the copy does not verify.
// Exit 65 or a crash: damage, which failed an assertion or worse.
// Any other end (killed, no memory): says nothing of the copy, so kIoError.
Result<VerifySummary> Judge(int status, const std::string& output) {
  const bool exited = WIFEXITED(status);
  if (exited && WEXITSTATUS(status) == kExitOk) {
    try {
      return DecodeReport(LastLine(output));
    } catch (const nlohmann::json::exception&) {
      return Status::Corruption(
          "the copy does not verify: the process that read it ended without "
          "a report: " +
          WordsIn(output));
    }
  }
  const char* name = exited ? nullptr : sigabbrev_np(WTERMSIG(status));
  const std::string end = exited            ? "exit code " + std::to_string(WEXITSTATUS(status))
                          : name != nullptr ? std::string("SIG") + name
                                            : "signal " + std::to_string(WTERMSIG(status));
  const std::string what = "the process that read it ended with " + end + ": " + WordsIn(output);
  if (exited ? WEXITSTATUS(status) == kExitCorruption : IsCrash(WTERMSIG(status))) {
    return Status::Corruption("the copy does not verify: " + what +
                              "; look with `nowcalls-admin verify` at the ledger itself");
  }
  return Status::IoError("the copy could not be verified: " + what);
}

class Verifier {
 public:
  Verifier() = default;
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;
  // Kills before it waits: a parent that gives up must not wait for gigabytes of reading.
  ~Verifier() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    static_cast<void>(Wait());
    if (output_ >= 0) close(output_);
  }

  Status Start(const std::string& program, const std::string& data_dir) {
    std::array<int, 2> pipe{};
    if (pipe2(pipe.data(), O_CLOEXEC) != 0) {
      return Status::IoError(std::string("cannot make a pipe to the process that verifies: ") +
                             std::strerror(errno));
    }
    output_ = pipe[0];
    const int error = Spawn(program, data_dir, pipe[1]);
    // The writing end must close here, or Read would never see the end.
    close(pipe[1]);
    if (error == 0) return {};
    pid_ = -1;
    return Status::IoError(
        "the process that is to verify the copy cannot be started (" + program +
        ", which takes /proc, /dev/null and room for one more process): " + std::strerror(error));
  }

  // Returns the output, at most its last kOutputBytesMax, when the process ends.
  Result<std::string> Read(const std::atomic<bool>& stop) {
    constexpr int kLookMs = 50;
    std::string text;
    std::array<char, 4096> piece{};
    while (true) {
      NOWCALLS_RETURN_IF_ERROR(store::CheckStop(stop));
      pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
      if (poll(&ready, 1, kLookMs) <= 0) continue;
      const ssize_t got = read(output_, piece.data(), piece.size());
      if (got == 0) return text;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return Status::IoError(std::string("cannot read from the process that verifies: ") +
                               std::strerror(errno));
      }
      text.append(piece.data(), static_cast<size_t>(got));
      if (text.size() > kOutputBytesMax) text.erase(0, text.size() - kOutputBytesMax);
    }
  }

  // In waitpid's form.
  Result<int> Wait() {
    int status = 0;
    pid_t ended = 0;
    while (pid_ > 0 && (ended = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) continue;
    pid_ = -1;
    if (ended > 0) return status;
    return Status::IoError("it cannot be told how the process that verifies has ended");
  }

 private:
  // Returns an error number.
  int Spawn(const std::string& program, const std::string& data_dir, int output) {
    // Lists of processes show the server's own name.
    std::vector<std::string> words = {program_invocation_name, kFlag, data_dir,
                                      std::to_string(getpid())};
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    if (const int error = posix_spawn_file_actions_init(&files); error != 0) return error;
    int error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    if (error == 0) error = posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    if (error == 0) error = SpawnWith(program, files, argv.data());
    posix_spawn_file_actions_destroy(&files);
    return error;
  }

  int SpawnWith(const std::string& program, const posix_spawn_file_actions_t& files,
                char* const* argv) {
    // Supervisors and terminals signal all processes of a service. A verifier ended before the
    // server heard of it would fail the backup.
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int signal : {SIGTERM, SIGINT, SIGQUIT, SIGHUP}) sigaddset(&blocked, signal);
    posix_spawnattr_t how;
    if (const int error = posix_spawnattr_init(&how); error != 0) return error;
    int error = posix_spawnattr_setsigmask(&how, &blocked);
    if (error == 0) error = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    // Not fork: a fork beside other threads may hang.
    if (error == 0) error = posix_spawn(&pid_, program.c_str(), &files, &how, argv, environ);
    posix_spawnattr_destroy(&how);
    return error;
  }

  pid_t pid_ = -1;
  int output_ = -1;
};

// The lowest priority, and the first to be killed when memory runs out: verifying must not hold
// others up. A process without the permission verifies all the same.
void StepBack() {
  constexpr int kLowest = 19;
  static_cast<void>(setpriority(PRIO_PROCESS, 0, kLowest));
  const int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score < 0) return;
  static_cast<void>(!write(score, "1000", 4));
  close(score);
}

}  // namespace

Result<VerifySummary> VerifyInProcess(const std::string& program, const std::string& data_dir,
                                      const std::atomic<bool>& stop) {
  Verifier verifier;
  NOWCALLS_RETURN_IF_ERROR(verifier.Start(program, data_dir));
  const Result<std::string> output = verifier.Read(stop);
  if (!output.ok()) return output.status();
  const Result<int> ended = verifier.Wait();
  if (!ended.ok()) return ended.status();
  return Judge(*ended, *output);
}

std::optional<int> RunAsVerifier(int argc, const char* const* argv) {
  constexpr int kArguments = 4;
  if (argc != kArguments || std::string_view(argv[1]) != kFlag) return std::nullopt;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before prctl: no signal would come then.
  if (std::to_string(getppid()) != argv[3]) return kExitIoError;
  StepBack();
  prctl(PR_SET_NAME, "nc-verify");
  const AssertionsMeanDamage reading;
  const std::atomic<bool> never{false};
  const std::string report = "\n" + EncodeReport(VerifyCopy(argv[2], never)) + "\n";
  const bool written = std::fwrite(report.data(), 1, report.size(), stdout) == report.size() &&
                       std::fflush(stdout) == 0;
  return written ? kExitOk : kExitIoError;
}

}  // namespace nowcalls::backup
