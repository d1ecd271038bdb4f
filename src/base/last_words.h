// The one line of a process that ends by an uncaught exception, refused memory or threads, or a
// library's failed assertion; then exit code 74 (kExitIoError), as after a failed NOWCALLS_CHECK.
//
// Thread: any.
#ifndef NOWCALLS_BASE_LAST_WORDS_H_
#define NOWCALLS_BASE_LAST_WORDS_H_

#include <string_view>

#include "base/exit_codes.h"

namespace nowcalls {

// Call first in main. Without it, as in programs that link libnowcalls.a, a failed assertion ends
// with SIGABRT (134). Debian's RocksDB asserts.
void InstallLastWords();

// While one lives, anywhere in the process, a failed assertion of a library means damage of the
// ledger being read: exit code 65 (kExitCorruption). RocksDB's assertions about system calls end
// with 74 and name the error.
class AssertionsMeanDamage {
 public:
  AssertionsMeanDamage();
  ~AssertionsMeanDamage();
  AssertionsMeanDamage(const AssertionsMeanDamage&) = delete;
  AssertionsMeanDamage& operator=(const AssertionsMeanDamage&) = delete;
};

// Writes "fatal: TEXT\n" to stderr and exits, after a second even if stderr blocks. Allocates
// nothing.
[[noreturn]] void EndWithLastWords(std::string_view text, int exit_code = kExitIoError);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_LAST_WORDS_H_
