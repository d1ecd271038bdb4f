#include "store/disk/file_use.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

namespace nowcalls::store {

bool IsUsedOnlyHere(int fd, uint64_t names) {
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink != names) return false;
  // Linux grants a write lease only if no other descriptor of the file is open. Opens by others
  // wait until the lease ends, and signal us: not by SIGIO, which would end the process.
  if (fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_WRLCK) != 0) return false;
  return fcntl(fd, F_SETLEASE, F_UNLCK) == 0;
}

bool IsUnused(const std::string& path, uint64_t* bytes) {
  const int fd = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat status {};
  const bool unused = IsUsedOnlyHere(fd, 1) && fstat(fd, &status) == 0;
  *bytes = static_cast<uint64_t>(status.st_size);
  close(fd);
  return unused;
}

}  // namespace nowcalls::store
