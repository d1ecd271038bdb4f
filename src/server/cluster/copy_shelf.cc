#include "server/cluster/copy_shelf.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/os_error.h"

namespace nowcalls::server {
namespace {

constexpr mode_t kCopiesMode = 0700;
std::string CopiesDir(const std::string& data_dir) { return data_dir + "/copies"; }

}  // namespace

std::string LastCopyDir(const std::string& data_dir) { return CopiesDir(data_dir) + "/last"; }

Status PrepareCopies(const std::string& data_dir) {
  const std::string dir = CopiesDir(data_dir);
  std::error_code error;
  std::filesystem::remove_all(dir, error);
  if (error) return Status::IoError("cannot remove " + dir + ": " + error.message());
  return mkdir(dir.c_str(), kCopiesMode) == 0 ? Status::Ok() : OsError("make", dir);
}

CopyShelf::~CopyShelf() { Close(); }

Status CopyShelf::Open(std::string_view file) {
  struct stat open_one {};
  struct stat named {};
  const std::string path = dir_ + "/" + std::string(file);
  const bool is_open = fd_ >= 0 && file == file_ && fstat(fd_, &open_one) == 0 &&
                       stat(path.c_str(), &named) == 0 && open_one.st_ino == named.st_ino;
  if (is_open) return {};
  Close();
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd_ < 0) return Status::NotFound("there is no copy with a file " + std::string(file));
  file_ = file;
  return {};
}

void CopyShelf::Close() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void CopyShelf::DropUnused(uv_loop_t* loop, int64_t now_ms) {
  if (used_ms_ == 0 || dropping_ || now_ms - used_ms_ < kKeptMsMax) return;
  Close();
  used_ms_ = 0;
  dropping_ = true;
  work_.data = this;
  uv_queue_work(
      loop, &work_,
      [](uv_work_t* work) {
        std::error_code ignored;  // The next copy tries again, and tells.
        std::filesystem::remove_all(
            std::filesystem::path(static_cast<CopyShelf*>(work->data)->dir_).parent_path(),
            ignored);
      },
      [](uv_work_t* work, int) { static_cast<CopyShelf*>(work->data)->dropping_ = false; });
}

// A loop does not wait for a disk: what is not in memory is asked for, and read another time.
Result<std::string_view> CopyShelf::Read(std::string_view file, uint64_t offset, int64_t now_ms) {
  // -1 would mean the file's own position.
  if (offset > INT64_MAX) return Status::InvalidArgument("no file has so many bytes");
  NOWCALLS_RETURN_IF_ERROR(Open(file));
  read_ms_ = now_ms;
  used_ms_ = now_ms;
  piece_.resize(kPieceBytesMax);
  const iovec piece{.iov_base = piece_.data(), .iov_len = piece_.size()};
  const auto at = static_cast<off_t>(offset);
  ssize_t size = preadv2(fd_, &piece, 1, at, RWF_NOWAIT);
  // Of a file system that has no such reads.
  if (size < 0 && errno == EOPNOTSUPP) size = pread(fd_, piece_.data(), piece_.size(), at);
  if (size < 0 && errno == EAGAIN) {
    posix_fadvise(fd_, at, kPieceBytesMax, POSIX_FADV_WILLNEED);
    return Status::ResourceExhausted("this piece is being read from the disk: ask again");
  }
  if (size < 0) return OsError("read", file_);
  return std::string_view(piece_.data(), static_cast<size_t>(size));
}

}  // namespace nowcalls::server
