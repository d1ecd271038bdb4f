// Process: a child process that cannot outlive the test that started it.
//
// Thread: one at a time. The child's stdout and stderr go to files, so that it never blocks on a
// full pipe. It gets SIGKILL when the object goes and when the thread that spawned it ends, so
// spawn from a thread that lives long enough.
#ifndef NOWCALLS_SUPPORT_PROCESS_H_
#define NOWCALLS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/poll_until.h"

namespace nowcalls::testing {

// Replaces or adds environment variables; all NOWCALLS_* of the test's own environment are removed.
using Environment = std::map<std::string, std::string>;

class Process {
 public:
  struct Options {
    std::vector<std::string> argv;  // argv[0] is the path of the binary.
    Environment environment;
    std::string stdout_path = "/dev/null";
    std::string stderr_path = "/dev/null";  // Both are appended to.
    std::string stdin_path = "/dev/null";
  };

  // Throws std::runtime_error when the child cannot be started.
  explicit Process(const Options& options);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();
  void Signal(int signal) const;
  // SIGSTOP, and waits until no thread of it runs any more. Throws std::runtime_error when it does
  // not stop.
  void Stop() const;
  // How it ended: the exit code, or minus the number of the signal that killed it. Empty when it
  // still runs after `timeout_ms`.
  std::optional<int> Wait(int64_t timeout_ms = kPatienceMs);

 private:
  void KillAndReap();

  pid_t pid_ = -1;
  std::optional<int> ended_;
};

struct Finished {
  int exit_code = 0;  // As Process::Wait.
  std::string out;
  std::string err;
};

// Runs a program to its end and returns what it printed. Throws std::runtime_error when it does not
// end within `timeout_ms`.
Finished RunProgram(std::vector<std::string> argv, const Environment& environment = {},
                    int64_t timeout_ms = 2 * kPatienceMs);

// The path of one of the product's programs.
std::string ProductBinary(const std::string& name);

std::string ReadFileToString(const std::string& path);  // Empty when there is none.
void WriteStringToFile(const std::string& path, const std::string& text);
// Changes the bits of `mask` in one byte of a file in place, as a failing disk does: a program that
// has the file open reads the changed byte.
void FlipByte(const std::string& path, uint64_t offset, int mask = 0x5a);

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Raises this process's own limit of open files. Throws std::runtime_error when it stays below
// `files`.
void AllowManyFiles(uint64_t files);

// Resident bytes of a process, from /proc.
uint64_t ResidentBytes(pid_t pid);

// The environment of a program that loads a library of tests/shim before all others.
Environment WithShim(const std::string& name);

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kAddressSanitized = true;
#else
inline constexpr bool kAddressSanitized = false;
#endif

// By how much that may grow where `bytes` are allowed: AddressSanitizer holds freed memory back
// (256 MiB).
constexpr uint64_t GrowthMax(uint64_t bytes) {
  constexpr uint64_t kAtLeast = 512 << 20;
  return kAddressSanitized && bytes < kAtLeast ? kAtLeast : bytes;
}

}  // namespace nowcalls::testing

#endif  // NOWCALLS_SUPPORT_PROCESS_H_
