#include "base/last_words.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "base/exit_codes.h"

// What assert() calls in a library that was built with its assertions on.
extern "C" [[noreturn]] void FailAssertion(const char* assertion, const char* file, unsigned line,
                                           const char* function) __asm__("__assert_fail");

namespace nowcalls {
namespace {

struct End {
  int exit_code = -1;  // -1: killed by a signal.
  std::string words;
};

// How a process of its own ends that does this.
End EndOf(const std::function<void()>& what, bool installed = true) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    if (installed) InstallLastWords();
    std::signal(SIGABRT, SIG_DFL);  // Not doctest's.
    // On a thread, where nothing of doctest's catches.
    std::thread(what).join();
    _exit(0);
  }
  close(ends[1]);
  End end;
  char text[256];
  for (ssize_t size = 0; (size = read(ends[0], text, sizeof(text))) > 0;) {
    end.words.append(text, static_cast<size_t>(size));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  return end;
}

TEST_CASE("an exception that nobody catches ends the process with 74 and says what it was") {
  const End memory = EndOf([] { throw std::bad_alloc(); });
  CHECK(memory.exit_code == kExitIoError);
  CHECK(memory.words.starts_with("fatal: out of memory: raise the limits of the process"));
  const End thread = EndOf([] {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  });
  CHECK(thread.exit_code == kExitIoError);
  CHECK(thread.words.find("Resource temporarily unavailable") != std::string::npos);
  const End other = EndOf([] { throw std::runtime_error("no such luck"); });
  CHECK(other.exit_code == kExitIoError);
  CHECK(other.words == "fatal: unexpected exception: no such luck\n");
}

TEST_CASE("an error that destroys a thread which runs ends with 74 and says what is mostly wrong") {
  const End end = EndOf([] {
    try {
      const std::thread running([] { pause(); });
      throw std::bad_alloc();
    } catch (const std::bad_alloc&) {
      // The thread ends the process before.
    }
  });
  CHECK(end.exit_code == kExitIoError);
  CHECK(
      end.words.starts_with("fatal: ended in the middle of an error, mostly since memory or a "
                            "thread was refused: raise the limits of the process"));
  const End silent = EndOf([] { std::terminate(); });
  CHECK(silent.exit_code == kExitIoError);
  CHECK(
      silent.words.starts_with("fatal: ended without an exception, mostly since there was no "
                               "memory for one: raise the limits"));
}

TEST_CASE("a failed assertion of a library ends with 74, and while a ledger is read with 65") {
  const auto fail = [] { FailAssertion("a > 0", "table.cc", 7, "Read"); };
  const End running = EndOf(fail);
  CHECK(running.exit_code == kExitIoError);
  CHECK(running.words.starts_with("fatal: table.cc:7: assertion 'a > 0' failed in a library. "));
  const End reading = EndOf([&] {
    const AssertionsMeanDamage damage;
    fail();
  });
  CHECK(reading.exit_code == kExitCorruption);
  CHECK(reading.words.find("the ledger is damaged: restore it from a backup") != std::string::npos);
  const End after = EndOf([&] {
    { const AssertionsMeanDamage damage; }
    fail();
  });
  CHECK(after.exit_code == kExitIoError);
}

TEST_CASE("an assertion about a call of the system is no damage, and its error is named") {
  for (const char* file : {"./env/io_posix.cc", "env/fs_posix.cc", "/build/port/port_posix.cc"}) {
    CAPTURE(file);
    const End end = EndOf([&] {
      const AssertionsMeanDamage reading;
      errno = EIO;
      FailAssertion("ret == 0", file, 173, "IsSyncFileRangeSupported");
    });
    CHECK(end.exit_code == kExitIoError);
    CHECK(end.words.find(":173: assertion 'ret == 0' failed in a library since a call of the "
                         "system failed in IsSyncFileRangeSupported: Input/output error. The "
                         "ledger could not be read") != std::string::npos);
    CHECK(end.words.find("damaged") == std::string::npos);
  }
  const End other = EndOf([&] {
    const AssertionsMeanDamage reading;
    FailAssertion("n > 0", "table/cenv/block.cc", 1, "Read");
  });
  CHECK(other.exit_code == kExitCorruption);
}

TEST_CASE("the assertions of a program that has nowcalls as a library end with SIGABRT") {
  const auto fail = [] { FailAssertion("a > 0", "shop.cc", 7, "Sell"); };
  const End program = EndOf(fail, /*installed=*/false);
  CHECK(program.exit_code == -1);
  CHECK(program.words == "shop.cc:7: Sell: Assertion `a > 0' failed.\n");
  const auto fail_within_open = [&] {
    const AssertionsMeanDamage damage;
    fail();
  };
  CHECK(EndOf(fail_within_open, /*installed=*/false).exit_code == kExitCorruption);
}

}  // namespace
}  // namespace nowcalls
