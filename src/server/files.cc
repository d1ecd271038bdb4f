#include "server/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace nowcalls::server {
namespace {

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

std::string FreshName(const std::string& path) { return path + ".new"; }

int CreateFresh(const std::string& name) {
  constexpr mode_t kReadableByAll = 0644;
  return open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kReadableByAll);
}

}  // namespace

Result<std::string> ReadWholeFile(const std::string& path, size_t bytes_max) {
  const File file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return Failed("open", path);
  std::string text;
  char chunk[64 * 1024];
  while (true) {
    const ssize_t size = read(file.fd(), chunk, sizeof(chunk));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Failed("read", path);
    if (size == 0) return text;
    text.append(chunk, static_cast<size_t>(size));
    if (text.size() > bytes_max) {
      return Status::ResourceExhausted(path + " is longer than " + std::to_string(bytes_max) +
                                       " bytes");
    }
  }
}

Status RemoveFile(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return Status::Ok();
  return Failed("remove", path);
}

Status CheckReplaceable(const std::string& path) {
  const std::string fresh = FreshName(path);
  if (const File file(CreateFresh(fresh)); file.fd() < 0) return Failed("create", fresh);
  return RemoveFile(fresh);
}

Status ReplaceFile(const std::string& path, std::string_view text) {
  const std::string fresh = FreshName(path);
  {
    const File file(CreateFresh(fresh));
    if (file.fd() < 0) return Failed("create", fresh);
    while (!text.empty()) {
      const ssize_t size = write(file.fd(), text.data(), text.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return Failed("write", fresh);
      text.remove_prefix(static_cast<size_t>(size));
    }
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return Failed("rename a file to", path);
  return Status::Ok();
}

}  // namespace nowcalls::server
