// NOWCALLS_CHECK: an invariant, checked in release builds, too.
//
// Thread: any. No input may reach a failing check.
#ifndef NOWCALLS_BASE_CHECK_H_
#define NOWCALLS_BASE_CHECK_H_

namespace nowcalls {

// Prints "fatal: FILE:LINE: check failed: EXPR" to stderr and exits with 74, within a second.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);

}  // namespace nowcalls

#define NOWCALLS_CHECK(expression)                              \
  do {                                                          \
    if (!(expression)) [[unlikely]] {                           \
      ::nowcalls::CheckFailed(__FILE__, __LINE__, #expression); \
    }                                                           \
  } while (false)

#endif  // NOWCALLS_BASE_CHECK_H_
