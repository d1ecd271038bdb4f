// FaultyFileSystem: a file system of which one call fails, or all from one on, or at one call of
// which the process is killed.
//
// Thread: any. Every call that RocksDB makes is counted, those that read too. A write that fails
// has written the first half. Those that a full disk does not refuse (reads, deletions) are not
// counted for ENOSPC. The error is made as RocksDB's own file system makes it of errno.
//
// What passes through, and why:
//   Flush, Skip, InvalidateCache, PrepareWrite, hints   make no system call, or one that only
//   advises UnlockFile, Close of files that are read            nothing hangs on them, and nobody
//   asks NewLogger                                           ours writes the log, and not through
//   here GetAbsolutePath, IsDirectory, times, link counts    nothing of the ledger is decided by
//   them
// What nobody does to a ledger is not supported, so that whoever begins to do it must see to it
// here: LinkFile, Truncate by name, DeleteDir, ReopenWritableFile, PositionedAppend, mapped files,
// ReadAsync.
#ifndef NOWCALLS_FAULTS_FAULTY_FILE_SYSTEM_H_
#define NOWCALLS_FAULTS_FAULTY_FILE_SYSTEM_H_

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace nowcalls::faults {

// When the process gets SIGKILL. In the middle of a write half of it has been written; in the
// middle of any other call nothing has been done.
enum class KillAt { kNever, kBefore, kMiddle, kAfter };

struct Failure {
  uint64_t nth = 0;  // Counted from 1; 0: none.
  bool sticky = false;
  bool disk_full = false;        // ENOSPC instead of EIO.
  KillAt kill = KillAt::kNever;  // Instead of a failure.
  bool writes_only = false;      // Only calls that a full disk may refuse are counted.
  // Only calls of this name on files with this in their names are counted; empty: all.
  std::string only_call = {};
  std::string only_file = {};
  // A FIFO: no call before it is there is counted, and the first one to fail waits for who opens it
  // for writing. Empty: none.
  std::string gate = {};

  std::string ToString() const;
};

// Whether a store may go on without a word after `call` failed, as nothing that it promised depends
// on it: spares, RocksDB's notes of its options, files that nobody needs any more, zeros behind a
// log that stay, the closing of a log, a manifest or a directory, which was synced, or of a table
// to which nothing was written, which RocksDB deletes next; what is free, for which spares look.
// Reads too (statistics, a second try), since what a store shows is compared.
bool MayPass(const std::string& call);

class FaultyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  // `on_failure` is told which call fails ("append 000012.log"), before the first that does.
  FaultyFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target, const Failure& failure,
                   std::function<void(const std::string&)> on_failure);

  // What a call on a directory is for: the file in it that was made or renamed last.
  std::string LastNamed();
  // The call `name` on the file at `path`: does `call` (to IOStatus), or `in_part` if it is to
  // fail.
  template <typename Call, typename Part>
  rocksdb::IOStatus Do(const char* name, const std::string& path, bool takes_space,
                       const Call& call, const Part& in_part) {
    bool dies = false;
    rocksdb::IOStatus status = Check(name, path, takes_space, &dies);
    if (status.ok()) {
      status = call();
    } else {
      in_part();
    }
    if (dies) Die();
    return status;
  }
  template <typename Call>
  rocksdb::IOStatus Do(const char* name, const std::string& path, bool takes_space,
                       const Call& call) {
    return Do(name, path, takes_space, call, [] {});
  }

  const char* Name() const override { return "FaultyFileSystem"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewMemoryMappedFileBuffer(
      const std::string& path, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* file) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus FileExists(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetChildren(const std::string& path, const rocksdb::IOOptions& options,
                                std::vector<std::string>* names,
                                rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions& options,
                                uint64_t* bytes, rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetChildrenFileAttributes(const std::string& path,
                                              const rocksdb::IOOptions& options,
                                              std::vector<rocksdb::FileAttributes>* files,
                                              rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options,
                                 uint64_t* bytes, rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus CreateDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteDir(const std::string& path, const rocksdb::IOOptions& options,
                              rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus LockFile(const std::string& path, const rocksdb::IOOptions& options,
                             rocksdb::FileLock** lock, rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus Truncate(const std::string& path, size_t size,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;

 private:
  // `*dies`: the process is to be killed once the call has been made, or half of it.
  rocksdb::IOStatus Check(const char* name, const std::string& path, bool takes_space, bool* dies);
  [[noreturn]] static void Die();
  bool Counts(const std::string& name, const std::string& file, bool takes_space) const;
  void SetLastNamed(const std::string& path);

  const Failure failure_;
  const std::function<void(const std::string&)> on_failure_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<bool> told_ = false;
  std::mutex mutex_;
  std::string last_named_;  // Guarded by mutex_.
};

}  // namespace nowcalls::faults

#endif  // NOWCALLS_FAULTS_FAULTY_FILE_SYSTEM_H_
