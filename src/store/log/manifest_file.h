// ManifestFile: a manifest that RocksDB writes, of which a power cut tears the last record at most.
//
// When several families were flushed at about the same time, RocksDB appends several records and
// syncs them together. A power cut may leave any of their sectors, such as a whole record behind a
// torn one, which looks like damage (log_views.h). So each record is synced before the next one is
// appended. A manifest that is being begun needs no such syncs: CURRENT does not name it before its
// first sync.
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
  // Called with the number of bytes that are on the disk; may be empty.
  using Synced = std::function<void(uint64_t bytes)>;
  explicit ManifestFile(std::unique_ptr<rocksdb::FSWritableFile> file, Synced synced = {});

  // RocksDB appends a record with one call.
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
