// A process's last line: an uncaught exception, refused memory or threads, or a library's failed
// assertion; then exit code 74 (kExitIoError).
//
// Thread: any.
#ifndef NOWCALLS_BASE_LAST_WORDS_H_
#define NOWCALLS_BASE_LAST_WORDS_H_

#include <string_view>

#include "base/exit_codes.h"

namespace nowcalls {

// Call first in main. Without it, as in programs that link libnowcalls.a, a failed assertion ends
// with SIGABRT (134).
void InstallLastWords();

// While one lives, anywhere in the process, a library's failed assertion means damage of the ledger
// being read and ends with 65 (kExitCorruption); RocksDB's about system calls end with 74.
class AssertionsMeanDamage {
 public:
  AssertionsMeanDamage();
  ~AssertionsMeanDamage();
  AssertionsMeanDamage(const AssertionsMeanDamage&) = delete;
  AssertionsMeanDamage& operator=(const AssertionsMeanDamage&) = delete;
};

// Writes "fatal: TEXT\n" to stderr and exits within a second. Allocates nothing.
[[noreturn]] void EndWithLastWords(std::string_view text, int exit_code = kExitIoError);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_LAST_WORDS_H_
