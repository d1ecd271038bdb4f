#include "store/salvage/trial.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/exit_codes.h"
#include "base/last_words.h"

namespace nowcalls::store {
namespace {

using Kind = StoreError::Kind;

// First byte of a child's message; messages end with a zero byte.
constexpr char kTold = 't';
constexpr char kEnd = 'e';  // Then the kind as a letter from 'a' on, or kAllWell.
constexpr char kAllWell = '-';

constexpr char kAdviceRoom[] =
    "; raise the limits of processes and memory (ulimit -u, -v; TasksMax=, MemoryMax=) or free "
    "memory, then try again";

// A file without a name, shared by both processes: a pipe could fill up and block the child.
class SharedText {
 public:
  explicit SharedText(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {}
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;
  ~SharedText() {
    if (fd_ >= 0) close(fd_);
  }

  int fd() const { return fd_; }
  // Writes one message; a child that cannot ends.
  void Append(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = write(fd_, text.data(), text.size());
      if (written <= 0) EndWithLastWords("no memory is left to tell what was found");
      text.remove_prefix(static_cast<size_t>(written));
    }
  }
  std::string Read() const {
    std::string text;
    std::array<char, 4096> piece{};
    ssize_t got = 0;
    while ((got = pread(fd_, piece.data(), piece.size(), static_cast<off_t>(text.size()))) > 0) {
      text.append(piece.data(), static_cast<size_t>(got));
    }
    return text;
  }

 private:
  const int fd_;
};

[[noreturn]] void Work(const std::function<StoreError(const Tell& tell)>& work,
                       const SharedText& told, const SharedText& words) {
  // Assertions and last words go to a file that the parent reads.
  dup2(words.fd(), STDERR_FILENO);
  const AssertionsMeanDamage reading;
  const StoreError error =
      work([&](const std::string& what) { told.Append(std::string(1, kTold) + what + '\0'); });
  const char kind = error.ok() ? kAllWell : static_cast<char>('a' + static_cast<int>(error.kind()));
  told.Append(std::string{kEnd, kind} + error.what() + '\0');
  _exit(kExitOk);
}

// No child could be made.
StoreError ErrorOfStart(int error) {
  StoreError refused = ErrorFromSystem(error, "start a process that tries to read", "the ledger");
  if (!refused.Is(Kind::kIo)) return refused;
  return {
      Kind::kIo,
      "cannot start a process that tries to read the ledger: " + std::string(std::strerror(error)),
      kAdviceRoom};
}

// The child ended before its work. The kernel sends SIGKILL for want of memory, which says nothing
// of files.
StoreError ErrorOfEnd(int status, const std::string& words) {
  constexpr std::string_view kFatal = "fatal: ";
  std::string what = "its reader was ended";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    return {Kind::kIo, "the process that tries to read the ledger was killed", kAdviceRoom};
  }
  if (WIFSIGNALED(status)) {
    what += std::string(" by the signal ") + strsignal(WTERMSIG(status));
  } else if (const size_t fatal = words.find(kFatal); fatal != std::string::npos) {
    what = words.substr(fatal + kFatal.size());
    what.resize(std::min(what.find('\n'), what.size()));
    what.resize(std::min(what.find("; the ledger is damaged"), what.size()));
  }
  const bool refused = WIFEXITED(status) && WEXITSTATUS(status) == kExitIoError;
  return refused ? StoreError(Kind::kIo, std::move(what), "") : StoreError::Damaged(what);
}

}  // namespace

TrialEnd Try(const std::function<StoreError(const Tell& tell)>& work) {
  const SharedText told("nowcalls-told");
  const SharedText words("nowcalls-words");
  const bool made = told.fd() >= 0 && words.fd() >= 0;
  const pid_t child = made ? fork() : -1;
  if (child < 0) return {ErrorOfStart(errno), {}};
  if (child == 0) Work(work, told, words);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  // The end first; a message of the child's own end replaces it below.
  TrialEnd end{ErrorOfEnd(status, words.Read()), {}};
  const std::string text = told.Read();
  const std::string_view all = text;
  size_t begin = 0;
  for (size_t at = text.find('\0'); at != std::string::npos; at = text.find('\0', begin)) {
    const std::string_view piece = all.substr(begin, at - begin);
    begin = at + 1;
    if (piece[0] == kTold) {
      end.told.emplace_back(piece.substr(1));
    } else if (piece[1] == kAllWell) {
      end.error = {};
    } else {
      const auto kind = static_cast<Kind>(piece[1] - 'a');
      end.error = kind == Kind::kDamaged ? StoreError::Damaged(std::string(piece.substr(2)))
                                         : StoreError(kind, std::string(piece.substr(2)), "");
    }
  }
  return end;
}

}  // namespace nowcalls::store
