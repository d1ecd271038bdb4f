#include "store/manifest_file.h"

#include <utility>

namespace nowcalls::store {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

ManifestFile::ManifestFile(std::unique_ptr<rocksdb::FSWritableFile> file)
    : FSWritableFileOwnerWrapper(std::move(file)) {}

IOStatus ManifestFile::SyncLast(const IOOptions& options, IODebugContext* context) {
  if (!begun_ || synced_) return IOStatus::OK();
  return Sync(options, context);
}

IOStatus ManifestFile::Append(const rocksdb::Slice& data, const IOOptions& options,
                              IODebugContext* context) {
  IOStatus status = SyncLast(options, context);
  if (!status.ok()) return status;
  synced_ = false;
  return target()->Append(data, options, context);
}

IOStatus ManifestFile::Append(const rocksdb::Slice& data, const IOOptions& options,
                              const rocksdb::DataVerificationInfo& verification,
                              IODebugContext* context) {
  IOStatus status = SyncLast(options, context);
  if (!status.ok()) return status;
  synced_ = false;
  return target()->Append(data, options, verification, context);
}

IOStatus ManifestFile::Sync(const IOOptions& options, IODebugContext* context) {
  IOStatus status = target()->Sync(options, context);
  if (status.ok()) begun_ = synced_ = true;
  return status;
}

IOStatus ManifestFile::Fsync(const IOOptions& options, IODebugContext* context) {
  IOStatus status = target()->Fsync(options, context);
  if (status.ok()) begun_ = synced_ = true;
  return status;
}

}  // namespace nowcalls::store
