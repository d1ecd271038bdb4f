// ManifestFile: a manifest that syncs each record before the next (README, decision 16).
//
// Thread: as rocksdb::FSWritableFile.
#ifndef NOWCALLS_STORE_LOG_MANIFEST_FILE_H_
#define NOWCALLS_STORE_LOG_MANIFEST_FILE_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace nowcalls::store {

class ManifestFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  // Gets the number of bytes on disk; may be empty.
  using Synced = std::function<void(uint64_t bytes)>;
  explicit ManifestFile(std::unique_ptr<rocksdb::FSWritableFile> file, Synced synced = {});

  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* context) override;

 private:
  rocksdb::IOStatus SyncLast(const rocksdb::IOOptions& options, rocksdb::IODebugContext* context);

  rocksdb::IOStatus Tell(rocksdb::IOStatus status);

  const Synced synced_to_;
  uint64_t size_ = 0;
  bool begun_ = false;  // It was synced once.
  bool synced_ = true;  // All that was appended is on the disk.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_MANIFEST_FILE_H_
