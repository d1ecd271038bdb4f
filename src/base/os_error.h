// A refusal of the operating system as a Status.
//
// Thread: any.
#ifndef NOWCALLS_BASE_OS_ERROR_H_
#define NOWCALLS_BASE_OS_ERROR_H_

#include <cerrno>
#include <cstring>
#include <string>

#include "nowcalls/status.h"

namespace nowcalls {

// kIoError "cannot DOING PATH: " and the text of errno.
inline Status OsError(const std::string& doing, const std::string& path) {
  const int error = errno;
  return Status::IoError("cannot " + doing + " " + path + ": " + std::strerror(error));
}

}  // namespace nowcalls

#endif  // NOWCALLS_BASE_OS_ERROR_H_
