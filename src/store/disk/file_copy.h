// Copies of whole files, with checksums.
//
// Thread: any, on distinct files. A returned copy is on disk, its name after SyncDir. Long calls
// return kUnavailable once `stop` is set. The caller removes a partial copy.
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

Status CheckStop(const std::atomic<bool>& stop);

class FileWriter {
 public:
  // kAlreadyExists or kIoError.
  static Result<FileWriter> Create(const std::string& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  Status Append(std::string_view bytes);
  Result<CopiedFile> Finish();

 private:
  FileWriter(std::string path, int fd);
  Status SyncData();

  std::string path_;
  int fd_;
  CopiedFile written_;
  uint64_t synced_bytes_ = 0;
};

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

// Copies the first `bytes` of `from`. kIoError, also if `from` is shorter.
Result<CopiedFile> CopyFile(const SourceFile& from, const std::string& to, uint64_t bytes,
                            const std::atomic<bool>& stop);
Result<CopiedFile> CopyFile(const std::string& from, const std::string& to, uint64_t bytes,
                            const std::atomic<bool>& stop);

// False: `from` cannot have a second name `to`. Only a try tells.
bool LinkFile(const std::string& from, const std::string& to);

// The checksum of all of `path`, as CopyFile would return it.
Result<CopiedFile> ReadCopied(const std::string& path, const std::atomic<bool>& stop);

// Replaces or makes the file at `path`; file and name are on disk.
Status ReplaceFile(const std::string& path, std::string_view bytes);

Status SyncDir(const std::string& path);

Result<uint64_t> FileBytes(const std::string& path);

// By device numbers.
bool OnOneFileSystem(const std::string& dir, const std::string& other);

// Left free by copies, in bytes.
inline constexpr uint64_t kRoomLeftBytes = 128 * 1024 * 1024;
// kIoError, with the numbers: no room in `dir` for `bytes` besides `left_bytes`.
Status CheckRoom(const std::string& dir, uint64_t bytes, uint64_t left_bytes = kRoomLeftBytes);

// kIoError: this process may not open `files` more files and some spare ones.
Status CheckFileLimit(uint64_t files);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_FILE_COPY_H_
