// Copies of whole files on disk, each with the checksum of what was written.
//
// Thread: any; each call works on files of its own. A copy is on disk when the call returns; its
// name is when SyncDir was called for the directory. A call looks now and then whether it is to
// stop, and says so with kUnavailable; what is half made then is the caller's to remove.
#ifndef NOWCALLS_STORE_FILE_COPY_H_
#define NOWCALLS_STORE_FILE_COPY_H_

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

  // What is written goes to the disk in small parts: a burst would hold up who waits for another
  // file of the same disk, as a server's commits do.
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

// A file that is open for reading. Its bytes are there until it is closed, also when its name has
// gone.
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

// Gives `from` the second name `to`. False: that cannot be done, for whatever reason. It is tried,
// since two mounts of one file system look like one, and not all have such names.
bool LinkFile(const std::string& from, const std::string& to);

// What CopyFile tells of a copy of all of `path`.
Result<CopiedFile> ReadCopied(const std::string& path, const std::atomic<bool>& stop);

// Makes `path` a file with these bytes, in place of what is there.
Status ReplaceFile(const std::string& path, std::string_view bytes);

Status SyncDir(const std::string& path);

Result<uint64_t> FileBytes(const std::string& path);

// Whether two directories are on one file system, as far as their device numbers tell.
bool OnOneFileSystem(const std::string& dir, const std::string& other);

// What a copy leaves free at least, for whoever else writes there.
inline constexpr uint64_t kRoomLeftBytes = 128 * 1024 * 1024;
// kIoError when the file system of `dir` has no room for `bytes` besides those that are to be left,
// with all these numbers.
Status CheckRoom(const std::string& dir, uint64_t bytes, uint64_t left_bytes = kRoomLeftBytes);

// kIoError when this process may not open `files` more files and some besides.
Status CheckFileLimit(uint64_t files);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_FILE_COPY_H_
