// What a process says when it ends because of something that no code handles: an exception that
// nobody catches, as that of memory or threads that the system refuses, or an assertion of a
// library that fails. One line on stderr, then exit code 74 (kExitIoError), as a failed
// NOWCALLS_CHECK has: supervisors know it, and recovery decides from the ledger alone.
//
// Thread: any.
#ifndef NOWCALLS_BASE_LAST_WORDS_H_
#define NOWCALLS_BASE_LAST_WORDS_H_

#include <string_view>

#include "base/exit_codes.h"

namespace nowcalls {

// From here on this process ends so. To be called first in main. Debian's RocksDB has its
// assertions on; a program that calls this has them end with 74 instead of SIGABRT (134). In a
// program that does not, as one that links libnowcalls.a, they end with SIGABRT as ever.
void InstallLastWords();

// While one lives, anywhere in the process, a failed assertion of a library is taken for what it
// most likely is: bytes of a ledger that is being read and that are not what was written. The exit
// code is then 65 (kExitCorruption). An assertion of RocksDB about a call of the system ends with
// 74 all the same, and the line names the call's error.
class AssertionsMeanDamage {
 public:
  AssertionsMeanDamage();
  ~AssertionsMeanDamage();
  AssertionsMeanDamage(const AssertionsMeanDamage&) = delete;
  AssertionsMeanDamage& operator=(const AssertionsMeanDamage&) = delete;
};

// Writes "fatal: TEXT" and a newline to stderr and ends the process with `exit_code`, after a
// second also if stderr takes nothing. Takes no memory.
[[noreturn]] void EndWithLastWords(std::string_view text, int exit_code = kExitIoError);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_LAST_WORDS_H_
