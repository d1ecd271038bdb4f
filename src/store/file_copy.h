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

// `to` becomes a copy of the first `bytes` of `from`. kIoError, also when it has fewer.
Result<CopiedFile> CopyFile(const std::string& from, const std::string& to, uint64_t bytes,
                            const std::atomic<bool>& stop);

// Whether files of the directory of `from` can get a second name in `dir`, where there is none of
// that name. Tried, since two mounts of one file system look like one, and not all have such names.
bool CanLink(const std::string& from, const std::string& dir);

// CopyFile of all of a file that never changes any more; as a second name of it where that can be
// done. kIoError also when a copy does not leave kRoomLeftBytes.
Result<CopiedFile> LinkOrCopyFile(const std::string& from, const std::string& to,
                                  const std::atomic<bool>& stop);

// Makes `path` a file with these bytes, in place of what is there.
Status ReplaceFile(const std::string& path, std::string_view bytes);

Status SyncDir(const std::string& path);

Result<uint64_t> FileBytes(const std::string& path);

// kIoError when the file system of `dir` has no room for `bytes` besides what a server that writes
// there needs (kRoomLeftBytes), with both numbers.
inline constexpr uint64_t kRoomLeftBytes = 128 * 1024 * 1024;
Status CheckRoom(const std::string& dir, uint64_t bytes);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_FILE_COPY_H_
