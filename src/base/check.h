// NOWCALLS_CHECK: a statement that is always true in a correct program, checked in release builds.
//
// A failed check means that memory no longer says what the ledger says, so nothing may go on: it
// prints the place and exits with kExitIoError (74), the code that tells a supervisor to restart;
// recovery then decides from the ledger alone. No input may ever reach a failing check.
#ifndef NOWCALLS_BASE_CHECK_H_
#define NOWCALLS_BASE_CHECK_H_

namespace nowcalls {

// Prints "fatal: FILE:LINE: check failed: EXPR" to stderr and ends the process with exit code 74,
// after a second also if stderr takes nothing.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace nowcalls

#define NOWCALLS_CHECK(expression)                              \
  do {                                                          \
    if (!(expression)) [[unlikely]] {                           \
      ::nowcalls::CheckFailed(__FILE__, __LINE__, #expression); \
    }                                                           \
  } while (false)

#endif  // NOWCALLS_BASE_CHECK_H_
