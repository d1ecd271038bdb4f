#include "store/file_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/crc32c.h"

namespace nowcalls::store {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;
constexpr uint64_t kSyncEveryBytes = 2 * 1024 * 1024;

Status OsError(const std::string& doing, const std::string& path) {
  return Status::IoError("cannot " + doing + " " + path + ": " + std::strerror(errno));
}

// A descriptor that is closed with its scope.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  const int fd_;
};

// Calls take(piece) with the first `bytes` of a file, piece by piece.
template <typename Take>
Status ReadPieces(const std::string& path, uint64_t bytes, const std::atomic<bool>& stop,
                  Take&& take) {
  const Descriptor file(path, O_RDONLY);
  if (!file.ok()) return OsError("open", path);
  std::vector<char> piece(kPieceBytes);
  for (uint64_t left = bytes; left > 0;) {
    NOWCALLS_RETURN_IF_ERROR(CheckStop(stop));
    const ssize_t got = read(file.get(), piece.data(), std::min<uint64_t>(left, piece.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OsError("read", path);
    if (got == 0) {
      return Status::IoError(path + " ends " + std::to_string(left) + " bytes too early");
    }
    NOWCALLS_RETURN_IF_ERROR(take(std::string_view(piece.data(), static_cast<size_t>(got))));
    left -= static_cast<uint64_t>(got);
  }
  return {};
}

std::string NameOf(const std::string& path) { return std::filesystem::path(path).filename(); }

}  // namespace

Status CheckStop(const std::atomic<bool>& stop) {
  return stop ? Status::Unavailable("it was stopped, because the server ends") : Status::Ok();
}

FileWriter::FileWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {
  written_.name = NameOf(path_);
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      written_(std::move(other.written_)),
      synced_bytes_(other.synced_bytes_) {}

FileWriter::~FileWriter() {
  if (fd_ >= 0) close(fd_);
}

Result<FileWriter> FileWriter::Create(const std::string& path) {
  constexpr mode_t kMode = 0600;
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (fd < 0 && errno == EEXIST) return Status::AlreadyExists(path + " exists already");
  if (fd < 0) return OsError("make", path);
  return FileWriter(path, fd);
}

Status FileWriter::SyncData() {
  if (fdatasync(fd_) != 0) return OsError("sync", path_);
  synced_bytes_ = written_.bytes;
  return {};
}

Status FileWriter::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t took = write(fd_, bytes.data(), bytes.size());
    if (took < 0 && errno == EINTR) continue;
    if (took < 0) return OsError("write", path_);
    const std::string_view part = bytes.substr(0, static_cast<size_t>(took));
    written_.crc32c = ExtendCrc32c(written_.crc32c, part);
    written_.bytes += part.size();
    bytes.remove_prefix(part.size());
  }
  return written_.bytes - synced_bytes_ >= kSyncEveryBytes ? SyncData() : Status::Ok();
}

Result<CopiedFile> FileWriter::Finish() {
  NOWCALLS_RETURN_IF_ERROR(SyncData());
  if (close(std::exchange(fd_, -1)) != 0) return OsError("close", path_);
  return written_;
}

Result<CopiedFile> CopyFile(const std::string& from, const std::string& to, uint64_t bytes,
                            const std::atomic<bool>& stop) {
  Result<FileWriter> writer = FileWriter::Create(to);
  if (!writer.ok()) return writer.status();
  NOWCALLS_RETURN_IF_ERROR(
      ReadPieces(from, bytes, stop, [&](std::string_view piece) { return writer->Append(piece); }));
  return writer->Finish();
}

bool CanLink(const std::string& from, const std::string& dir) {
  const std::string probe = dir + "/" + NameOf(from);
  return link(from.c_str(), probe.c_str()) == 0 && unlink(probe.c_str()) == 0;
}

Result<CopiedFile> LinkOrCopyFile(const std::string& from, const std::string& to,
                                  const std::atomic<bool>& stop) {
  const Result<uint64_t> bytes = FileBytes(from);
  if (!bytes.ok()) return bytes.status();
  // Whatever is in the way of a link, a copy may work; if it does not, it says why.
  if (link(from.c_str(), to.c_str()) != 0) {
    NOWCALLS_RETURN_IF_ERROR(CheckRoom(std::filesystem::path(to).parent_path(), *bytes));
    return CopyFile(from, to, *bytes, stop);
  }
  CopiedFile linked{.name = NameOf(to), .bytes = *bytes};
  NOWCALLS_RETURN_IF_ERROR(ReadPieces(to, *bytes, stop, [&](std::string_view piece) {
    linked.crc32c = ExtendCrc32c(linked.crc32c, piece);
    return Status::Ok();
  }));
  return linked;
}

Status ReplaceFile(const std::string& path, std::string_view bytes) {
  const std::string made = path + ".new";
  unlink(made.c_str());
  Result<FileWriter> writer = FileWriter::Create(made);
  if (!writer.ok()) return writer.status();
  NOWCALLS_RETURN_IF_ERROR(writer->Append(bytes));
  NOWCALLS_RETURN_IF_ERROR(writer->Finish().status());
  if (rename(made.c_str(), path.c_str()) != 0) return OsError("rename " + made + " to", path);
  return SyncDir(std::filesystem::path(path).parent_path());
}

Status SyncDir(const std::string& path) {
  const Descriptor dir(path, O_RDONLY | O_DIRECTORY);
  if (!dir.ok()) return OsError("open directory", path);
  return fsync(dir.get()) == 0 ? Status::Ok() : OsError("sync directory", path);
}

Result<uint64_t> FileBytes(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return OsError("look at", path);
  return static_cast<uint64_t>(info.st_size);
}

Status CheckRoom(const std::string& dir, uint64_t bytes) {
  struct statvfs room {};
  if (statvfs(dir.c_str(), &room) != 0) return OsError("look at the file system of", dir);
  const uint64_t free_bytes = uint64_t{room.f_bavail} * room.f_frsize;
  if (free_bytes >= bytes && free_bytes - bytes >= kRoomLeftBytes) return {};
  return Status::IoError("the file system of " + dir + " has no room: " + std::to_string(bytes) +
                         " bytes are to be copied, " + std::to_string(kRoomLeftBytes) +
                         " must be left for others, and " + std::to_string(free_bytes) +
                         " are free");
}

}  // namespace nowcalls::store
