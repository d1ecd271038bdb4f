#include "base/last_words.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "base/exit_codes.h"

namespace nowcalls {
namespace {

constexpr unsigned kLastWordsSeconds = 1;
constexpr size_t kTextBytesMax = 1024;

void EndWith(const char* what, const char* reason) {
  char text[kTextBytesMax];
  std::snprintf(text, sizeof(text),
                "%s%s: raise the limits of the process (ulimit -v, -u; MemoryMax=, TasksMax= of "
                "the service) or free memory, and start again",
                what, reason);
  EndWithLastWords(text);
}

[[noreturn]] void OnTerminate() noexcept {
  try {
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
  EndWithLastWords("terminated without an exception");
}

}  // namespace

void InstallLastWords() { std::set_terminate(OnTerminate); }

void EndWithLastWords(std::string_view text) {
  // Nobody may read stderr; the process ends all the same.
  std::signal(SIGALRM, [](int) { _exit(kExitIoError); });
  alarm(kLastWordsSeconds);
  std::fprintf(stderr, "fatal: %.*s\n", static_cast<int>(text.size()), text.data());
  std::fflush(stderr);
  _exit(kExitIoError);
}

}  // namespace nowcalls

// The C library's, which the LSB lets programs replace: every failed assert() calls it.
extern "C" void __assert_fail(const char* assertion, const char* file, unsigned line,
                              const char* /*function*/) noexcept {
  char text[nowcalls::kTextBytesMax];
  std::snprintf(text, sizeof(text),
                "%s:%u: assertion '%s' failed in a library. If a restart ends so too, the ledger "
                "is damaged or the disk refuses: look into LOG in the ledger's directory",
                file, line, assertion);
  nowcalls::EndWithLastWords(text);
}
