#include "server/config/files.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace nowcalls::server {
namespace {

namespace fs = std::filesystem;

// A pipe may never get a writer; a regular file is ready at once.
constexpr int kWriterMsMax = 2'000;

Status Failed(std::string_view what, const std::string& path) {
  return Status::IoError("cannot " + std::string(what) + " " + path + ": " +
                         std::generic_category().message(errno));
}

class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

fs::path WithoutEndSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

fs::path DirectoryOf(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

}  // namespace

bool IsSameName(std::string a, std::string b) {
  const fs::path one = WithoutEndSlashes(std::move(a));
  const fs::path other = WithoutEndSlashes(std::move(b));
  std::error_code ignored;
  // Directories are compared by inode, so that links and ".." do not matter; the file need not
  // exist.
  return !one.empty() && one.filename() == other.filename() &&
         fs::equivalent(DirectoryOf(one), DirectoryOf(other), ignored);
}

Result<std::string> ReadWholeFile(const std::string& path, size_t bytes_max) {
  // O_NONBLOCK: the opening of a pipe does not wait for its writer.
  const File file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (file.fd() < 0) return Failed("open", path);
  std::string text;
  char chunk[64 * 1024];
  while (true) {
    pollfd ready{.fd = file.fd(), .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kWriterMsMax) == 0) {
      return Status::IoError("cannot read " + path +
                             ": it is a pipe or a device, and nothing came " + "from it for " +
                             std::to_string(kWriterMsMax) + " ms");
    }
    const ssize_t size = read(file.fd(), chunk, sizeof(chunk));
    // EAGAIN: the bytes went to another reader; poll again.
    if (size < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (size < 0) return Failed("read", path);
    if (size == 0) return text;
    text.append(chunk, static_cast<size_t>(size));
    if (text.size() > bytes_max) {
      return Status::ResourceExhausted(path + " is longer than " + std::to_string(bytes_max) +
                                       " bytes");
    }
  }
}

}  // namespace nowcalls::server
