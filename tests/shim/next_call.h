// What the libraries of this folder share: the call behind the one that they put themselves before.
//
// Thread: any.
#ifndef NOWCALLS_SHIM_NEXT_CALL_H_
#define NOWCALLS_SHIM_NEXT_CALL_H_

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <climits>
#include <cstdarg>
#include <cstdio>

namespace nowcalls::testing {

using Path = char[PATH_MAX];

// The function that would have been called without this library.
template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The path behind a descriptor; false: it has none.
inline bool ReadLink(int fd, Path* path) {
  char link[64];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t bytes = readlink(link, *path, sizeof(*path) - 1);
  if (bytes > 0) (*path)[bytes] = '\0';
  return bytes > 0;
}

// The third parameter of open, which is there only for files that may be made.
inline mode_t ModeOf(int flags, va_list rest) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
}

}  // namespace nowcalls::testing

#define NOWCALLS_NEXT(name) static auto* const next = Next<decltype(name)>(#name)
#define NOWCALLS_MODE(flags)               \
  va_list rest;                            \
  va_start(rest, flags);                   \
  const mode_t mode = ModeOf(flags, rest); \
  va_end(rest)

#endif  // NOWCALLS_SHIM_NEXT_CALL_H_
