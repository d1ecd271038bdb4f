#include "base/last_words.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

namespace nowcalls {
namespace {

constexpr unsigned kLastWordsSeconds = 1;
constexpr size_t kTextBytesMax = 1024;

std::atomic<bool> g_installed{false};
std::atomic<int> g_ledgers_being_read{0};
std::atomic<int> g_exit_code{kExitIoError};

[[noreturn]] void EndWith(const char* what, const char* reason) {
  char text[kTextBytesMax];
  std::snprintf(text, sizeof(text),
                "%s%s: raise the limits of the process (ulimit -v, -u; MemoryMax=, TasksMax= of "
                "the service) or free memory, then try again",
                what, reason);
  EndWithLastWords(text);
}

[[noreturn]] void OnTerminate() noexcept {
  try {
    // Memory and threads have limits that an operator can raise, so these two have words of their
    // own.
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    EndWith("out of memory", "");
  } catch (const std::system_error& error) {
    EndWith("the system refused a thread or the like: ", error.what());
  } catch (const std::exception& error) {
    char text[kTextBytesMax];
    std::snprintf(text, sizeof(text), "unexpected exception: %s", error.what());
    EndWithLastWords(text);
  } catch (...) {
    EndWithLastWords("unexpected exception");
  }
  // No exception is being handled. Mostly one is on its way: as it left, it destroyed a thread that
  // runs, such as one of RocksDB's that found no room in the list of threads. Or there was not even
  // memory to throw one. What it was cannot be told.
  EndWith(std::uncaught_exceptions() > 0
              ? "ended in the middle of an error, mostly since memory or a thread was refused"
              : "ended without an exception, mostly since there was no memory for one",
          "");
}

}  // namespace

void InstallLastWords() {
  g_installed = true;
  std::set_terminate(OnTerminate);
}

AssertionsMeanDamage::AssertionsMeanDamage() { ++g_ledgers_being_read; }

AssertionsMeanDamage::~AssertionsMeanDamage() { --g_ledgers_being_read; }

void EndWithLastWords(std::string_view text, int exit_code) {
  // Stderr may be a pipe that nobody reads. The alarm ends the process all the same.
  g_exit_code = exit_code;
  std::signal(SIGALRM, [](int) { _exit(g_exit_code); });
  sigset_t alarms;  // A program that reads its signals has them blocked.
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
  alarm(kLastWordsSeconds);
  std::fprintf(stderr, "fatal: %.*s\n", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
  _exit(exit_code);
}

}  // namespace nowcalls

namespace {

// RocksDB's folders whose assertions are about calls of the system, not about bytes.
bool IsAboutCalls(const char* file) {
  for (const char* folder : {"env/", "port/"}) {
    if (std::strncmp(file, folder, std::strlen(folder)) == 0) return true;
    const char* found = std::strstr(file, folder);
    if (found != nullptr && found > file && found[-1] == '/') return true;
  }
  return false;
}

}  // namespace

// The C library's, which the LSB lets programs replace: every failed assert() calls it.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line,
                              const char* function) noexcept {
  const int error = errno;
  const bool reads = nowcalls::g_ledgers_being_read > 0;
  if (!reads && !nowcalls::g_installed) {
    // A program that has nowcalls as a library: its own assertions end as the C library has it.
    std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, assertion);
    std::abort();
  }
  // Bytes that make RocksDB assert are damage (65). A system call that fails is none, and neither
  // is an assertion while no ledger is read (74).
  const bool calls = IsAboutCalls(file);
  const bool damage = reads && !calls;
  char call[nowcalls::kTextBytesMax / 2] = "";
  if (calls) {
    std::snprintf(call, sizeof(call), " since a call of the system failed in %s: %s", function,
                  std::strerror(error));
  }
  const char* what =
      damage  ? " that reads the ledger; the ledger is damaged: restore it from a backup"
      : reads ? ". The ledger could not be read: check the disk and the permissions of its "
                "directory, then try again"
              : ". The server's memory is no longer trusted; restart it to recover from the ledger";
  char text[nowcalls::kTextBytesMax];
  std::snprintf(text, sizeof(text), "%s:%u: assertion '%s' failed in a library%s%s", file, line,
                assertion, call, what);
  nowcalls::EndWithLastWords(text, damage ? nowcalls::kExitCorruption : nowcalls::kExitIoError);
}
