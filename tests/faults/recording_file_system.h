// RecordingFileSystem: RocksDB on a real directory, with a record of every change that is made to
// its files, in order, for faults/disk.h.
//
// Thread: any. Syncs are recorded and not carried out: the disk that counts is the model. Files
// that do not go through RocksDB's file system (LOCK, LOG) are not recorded.
#ifndef NOWCALLS_FAULTS_RECORDING_FILE_SYSTEM_H_
#define NOWCALLS_FAULTS_RECORDING_FILE_SYSTEM_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "faults/disk.h"

namespace nowcalls::faults {

class RecordingFileSystem : public rocksdb::FileSystemWrapper {
 public:
  // `dir` may not exist yet; `image` is what it holds.
  explicit RecordingFileSystem(std::string dir, const DiskImage& image = {});

  // Marks in the record.
  void Begun(uint64_t batch);
  void Committed(uint64_t batch);
  void Acknowledged(uint64_t batch);
  // What was recorded so far; nothing is recorded any more.
  std::vector<DiskChange> Stop();
  // How often a file with such a name was synced so far.
  int SyncsOf(std::string_view suffix);
  // Whether there is a file whose name begins so, and a sync was the last that was done to it.
  bool HasSynced(std::string_view prefix);

  const char* Name() const override { return "RecordingFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* directory,
                                 rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus LinkFile(const std::string& from, const std::string& to,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus Truncate(const std::string& path, size_t size,
                             const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* context) override;

 private:
  friend class RecordedFile;
  friend class RecordedRandomRWFile;
  friend class RecordedDirectory;

  // Carries `change` out by way of `act` and records it if that succeeds.
  template <typename Act>
  rocksdb::IOStatus Do(DiskChange change, Act act);
  // The name of a file in the directory. REQUIRES: it is one.
  std::string NameOf(const std::string& path) const;

  const std::string dir_;
  std::mutex mutex_;
  bool stopped_ = false;  // Guarded by mutex_, as are the next four.
  uint64_t next_file_ = 1;
  std::map<std::string, uint64_t> names_;
  std::map<std::string, int> syncs_;  // By the name that the file had when it was opened.
  std::vector<DiskChange> changes_;
};

}  // namespace nowcalls::faults

#endif  // NOWCALLS_FAULTS_RECORDING_FILE_SYSTEM_H_
