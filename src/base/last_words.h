// What a process says when it ends because of something that no code handles: an exception that
// nobody catches, as that of memory or threads that the system refuses, or an assertion of a
// library that fails. One line on stderr, then exit code 74 (kExitIoError), as a failed
// NOWCALLS_CHECK has: supervisors know it, and recovery decides from the ledger alone.
//
// Thread: any.
#ifndef NOWCALLS_BASE_LAST_WORDS_H_
#define NOWCALLS_BASE_LAST_WORDS_H_

#include <string_view>

namespace nowcalls {

// From here on this process ends so. To be called first in main. Debian's RocksDB has its
// assertions on; a program that calls this has them end with 74 instead of SIGABRT (134).
void InstallLastWords();

// Writes "fatal: TEXT" and a newline to stderr and ends the process with exit code 74, after a
// second also if stderr takes nothing. Takes no memory.
[[noreturn]] void EndWithLastWords(std::string_view text);

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_LAST_WORDS_H_
