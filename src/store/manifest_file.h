// ManifestFile: a manifest that RocksDB writes, of which a power cut leaves the last record in part
// at most.
//
// Thread: as rocksdb::FSWritableFile.
//
// RocksDB appends one record after the other and then syncs them together, when several families
// were flushed at about the same time. Of these a power cut may leave any sectors: also a whole
// record behind one that is torn, which cannot be told from a manifest that is damaged
// (log_views.h). So a record is synced before the next one is appended. A manifest that is just
// being begun needs that not: until its first sync CURRENT does not name it.
#ifndef NOWCALLS_STORE_MANIFEST_FILE_H_
#define NOWCALLS_STORE_MANIFEST_FILE_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace nowcalls::store {

class ManifestFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  // `synced` is called with the size of what is on the disk; may be empty.
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
  bool begun_ = false;  // It was synced before.
  bool synced_ = true;  // All that was appended is.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_MANIFEST_FILE_H_
