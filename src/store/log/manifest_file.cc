#include "store/log/manifest_file.h"

#include <utility>

namespace nowcalls::store {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

ManifestFile::ManifestFile(std::unique_ptr<rocksdb::FSWritableFile> file, Synced synced)
    : FSWritableFileOwnerWrapper(std::move(file)), synced_to_(std::move(synced)) {}

// RocksDB appends records of several flushes and syncs them together. A power cut could leave a
// whole record behind a torn one, which looks like damage. So each Append, which is of one record,
// syncs the one before. A manifest being begun needs no such sync: CURRENT does not name it before
// its first.
IOStatus ManifestFile::SyncLast(const IOOptions& options, IODebugContext* context) {
  if (!begun_ || synced_) return IOStatus::OK();
  return Sync(options, context);
}

IOStatus ManifestFile::Append(const rocksdb::Slice& data, const IOOptions& options,
                              IODebugContext* context) {
  IOStatus status = SyncLast(options, context);
  if (!status.ok()) return status;
  synced_ = false;
  size_ += data.size();
  return target()->Append(data, options, context);
}

IOStatus ManifestFile::Append(const rocksdb::Slice& data, const IOOptions& options,
                              const rocksdb::DataVerificationInfo& verification,
                              IODebugContext* context) {
  IOStatus status = SyncLast(options, context);
  if (!status.ok()) return status;
  synced_ = false;
  size_ += data.size();
  return target()->Append(data, options, verification, context);
}

// `begun_` and the witness learn only of bytes that are on disk.
IOStatus ManifestFile::Tell(IOStatus status) {
  if (!status.ok()) return status;
  begun_ = synced_ = true;
  if (synced_to_) synced_to_(size_);
  return status;
}

IOStatus ManifestFile::Sync(const IOOptions& options, IODebugContext* context) {
  return Tell(target()->Sync(options, context));
}

IOStatus ManifestFile::Fsync(const IOOptions& options, IODebugContext* context) {
  return Tell(target()->Fsync(options, context));
}

}  // namespace nowcalls::store
