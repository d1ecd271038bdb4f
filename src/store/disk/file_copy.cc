#include "store/disk/file_copy.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/os_error.h"
#include "store/disk/ledger_files.h"

namespace nowcalls::store {
namespace {

constexpr size_t kPieceBytes = 256 * 1024;
// A sync each 2 MiB: one burst at the end would hold up the syncs of a server's commits on the same
// disk.
constexpr uint64_t kSyncEveryBytes = 2 * 1024 * 1024;

// Calls take(piece) with the first `bytes` of a file, piece by piece.
template <typename Take>
Status ReadPieces(const SourceFile& file, uint64_t bytes, const std::atomic<bool>& stop,
                  Take&& take) {
  std::vector<char> piece(kPieceBytes);
  for (uint64_t at = 0; at < bytes;) {
    NOWCALLS_RETURN_IF_ERROR(CheckStop(stop));
    const ssize_t got = pread(file.fd(), piece.data(), std::min<uint64_t>(bytes - at, piece.size()),
                              static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return OsError("read", file.path());
    // The source is shorter than its list said: it was cut while it was copied.
    if (got == 0) {
      return Status::IoError(file.path() + " ends " + std::to_string(bytes - at) +
                             " bytes too early");
    }
    NOWCALLS_RETURN_IF_ERROR(take(std::string_view(piece.data(), static_cast<size_t>(got))));
    at += static_cast<uint64_t>(got);
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
    // Checksum of the bytes that the system took, not of those offered.
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

SourceFile::SourceFile(SourceFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

SourceFile& SourceFile::operator=(SourceFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

SourceFile::~SourceFile() {
  if (fd_ >= 0) close(fd_);
}

Result<SourceFile> SourceFile::Open(const std::string& path) {
  // A pipe in place of a file would block the open for ever.
  NOWCALLS_RETURN_IF_ERROR(CheckMayBeFile(path));
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return OsError("open", path);
  return SourceFile(path, fd);
}

Result<CopiedFile> CopyFile(const SourceFile& from, const std::string& to, uint64_t bytes,
                            const std::atomic<bool>& stop) {
  Result<FileWriter> writer = FileWriter::Create(to);
  if (!writer.ok()) return writer.status();
  NOWCALLS_RETURN_IF_ERROR(
      ReadPieces(from, bytes, stop, [&](std::string_view piece) { return writer->Append(piece); }));
  return writer->Finish();
}

Result<CopiedFile> CopyFile(const std::string& from, const std::string& to, uint64_t bytes,
                            const std::atomic<bool>& stop) {
  const Result<SourceFile> source = SourceFile::Open(from);
  if (!source.ok()) return source.status();
  return CopyFile(*source, to, bytes, stop);
}

bool LinkFile(const std::string& from, const std::string& to) {
  // Only a try tells: two mounts of one file system have one device number, and some file systems
  // have no second names.
  return link(from.c_str(), to.c_str()) == 0;
}

Result<CopiedFile> ReadCopied(const std::string& path, const std::atomic<bool>& stop) {
  const Result<uint64_t> bytes = FileBytes(path);
  if (!bytes.ok()) return bytes.status();
  const Result<SourceFile> source = SourceFile::Open(path);
  if (!source.ok()) return source.status();
  CopiedFile read{.name = NameOf(path), .bytes = *bytes};
  NOWCALLS_RETURN_IF_ERROR(ReadPieces(*source, *bytes, stop, [&](std::string_view piece) {
    read.crc32c = ExtendCrc32c(read.crc32c, piece);
    return Status::Ok();
  }));
  return read;
}

Status ReplaceFile(const std::string& path, std::string_view bytes) {
  // Write, sync, rename, sync the directory: a crash leaves the old file or the new one.
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
  const Result<SourceFile> dir = SourceFile::Open(path);
  if (!dir.ok()) return dir.status();
  return fsync(dir->fd()) == 0 ? Status::Ok() : OsError("sync directory", path);
}

Result<uint64_t> FileBytes(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return OsError("look at", path);
  return static_cast<uint64_t>(info.st_size);
}

bool OnOneFileSystem(const std::string& dir, const std::string& other) {
  struct stat one {};
  struct stat two {};
  return stat(dir.c_str(), &one) == 0 && stat(other.c_str(), &two) == 0 && one.st_dev == two.st_dev;
}

Status CheckRoom(const std::string& dir, uint64_t bytes, uint64_t left_bytes) {
  struct statvfs room {};
  if (statvfs(dir.c_str(), &room) != 0) return OsError("look at the file system of", dir);
  const uint64_t free_bytes = uint64_t{room.f_bavail} * room.f_frsize;
  if (free_bytes >= bytes && free_bytes - bytes >= left_bytes) return {};
  return Status::IoError("the file system of " + dir + " has no room: " + std::to_string(bytes) +
                         " bytes are to be copied, " + std::to_string(left_bytes) +
                         " must be left for others, and " + std::to_string(free_bytes) +
                         " are free");
}

Status CheckFileLimit(uint64_t files) {
  constexpr uint64_t kOfOthers = 64;
  rlimit limit{};
  std::error_code error;
  uint64_t open_now = 0;
  // Counts what is open now: the limit is for the process, and 64 stay for connections and others.
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++open_now;
  }
  if (error || getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  if (open_now + files + kOfOthers <= limit.rlim_cur) return {};
  return Status::IoError(std::to_string(files) + " more files would have to be open at once, and " +
                         std::to_string(open_now) + " of " + std::to_string(limit.rlim_cur) +
                         " that may be are: raise the limit (ulimit -n, or LimitNOFILE= of the "
                         "service)");
}

}  // namespace nowcalls::store
