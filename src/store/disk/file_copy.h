// Copies of whole files on disk, each with the checksum of what was written.
//
// A copy is on disk when the call returns; its name is on disk after SyncDir of its directory. Long
// calls look now and then whether `stop` is set, and then return kUnavailable. The caller removes a
// copy that is half made.
//
// Thread: any; each call works on files of its own.
#ifndef NOWCALLS_STORE_DISK_FILE_COPY_H_
#define NOWCALLS_STORE_DISK_FILE_COPY_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "nowcalls/status.h"

namespace nowcalls::store {

struct CopiedFile {
  std::string name;  // Without its directory.
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  bool operator==(const CopiedFile&) const = default;
};

// kUnavailable when somebody has set `stop`.
Status CheckStop(const std::atomic<bool>& stop);

// A new file that is written from its beginning to its end.
class FileWriter {
 public:
  // kAlreadyExists when there is one, else kIoError.
  static Result<FileWriter> Create(const std::string& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  // Syncs in small parts: a burst would hold up the syncs of other files of the same disk, as a
  // server's commits are.
  Status Append(std::string_view bytes);
  // Syncs and closes it.
  Result<CopiedFile> Finish();

 private:
  FileWriter(std::string path, int fd);
  Status SyncData();

  std::string path_;
  int fd_;
  CopiedFile written_;
  uint64_t synced_bytes_ = 0;
};

// A file that is open for reading. Its bytes stay until it is closed, also when its name is gone.
class SourceFile {
 public:
  static Result<SourceFile> Open(const std::string& path);
  SourceFile(SourceFile&& other) noexcept;
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;
  SourceFile& operator=(SourceFile&& other) noexcept;
  ~SourceFile();

  const std::string& path() const { return path_; }
  int fd() const { return fd_; }

 private:
  SourceFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
};

// `to` becomes a copy of the first `bytes` of `from`. kIoError, also when it has fewer.
Result<CopiedFile> CopyFile(const SourceFile& from, const std::string& to, uint64_t bytes,
                            const std::atomic<bool>& stop);
Result<CopiedFile> CopyFile(const std::string& from, const std::string& to, uint64_t bytes,
                            const std::atomic<bool>& stop);

// Gives `from` the second name `to`. False: it cannot have one. Only a try tells: two mounts of one
// file system look like one, and some file systems have no second names.
bool LinkFile(const std::string& from, const std::string& to);

// Reads all of `path`, and returns what CopyFile would of a copy.
Result<CopiedFile> ReadCopied(const std::string& path, const std::atomic<bool>& stop);

// Replaces the file at `path`, if any, by one with these bytes. Both it and its name are on disk.
Status ReplaceFile(const std::string& path, std::string_view bytes);

Status SyncDir(const std::string& path);

Result<uint64_t> FileBytes(const std::string& path);

// Whether two directories are on one file system, as far as their device numbers tell.
bool OnOneFileSystem(const std::string& dir, const std::string& other);

// A copy leaves at least this free, for others that write there.
inline constexpr uint64_t kRoomLeftBytes = 128 * 1024 * 1024;
// kIoError when the file system of `dir` has no room for `bytes` besides `left_bytes`. The message
// has all these numbers.
Status CheckRoom(const std::string& dir, uint64_t bytes, uint64_t left_bytes = kRoomLeftBytes);

// kIoError when this process may not open `files` more files and some spare ones.
Status CheckFileLimit(uint64_t files);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_FILE_COPY_H_
