#include "store/log_file.h"

#include <utility>

namespace nowcalls::store {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

LogFile::LogFile(std::unique_ptr<rocksdb::FSWritableFile> file, uint64_t zeros, SpareLogs* spares,
                 std::function<void()> appended, std::function<void()> synced)
    : FSWritableFileOwnerWrapper(std::move(file)),
      zeros_(zeros),
      spares_(spares),
      appended_(std::move(appended)),
      synced_(std::move(synced)) {}

void LogFile::Grow(size_t bytes) {
  appended_();
  size_ += bytes;
  spares_->LogHas(size_);
  if (asked_ || size_ < spares_->ask_from_bytes()) return;
  asked_ = true;
  spares_->Ask();
}

IOStatus LogFile::Append(const rocksdb::Slice& data, const IOOptions& options,
                         IODebugContext* context) {
  IOStatus status = target()->Append(data, options, context);
  if (status.ok()) Grow(data.size());
  return status;
}

IOStatus LogFile::Append(const rocksdb::Slice& data, const IOOptions& options,
                         const rocksdb::DataVerificationInfo& verification,
                         IODebugContext* context) {
  IOStatus status = target()->Append(data, options, verification, context);
  if (status.ok()) Grow(data.size());
  return status;
}

// RocksDB calls this, not Fsync (use_fsync).
IOStatus LogFile::Sync(const IOOptions& options, IODebugContext* context) {
  const uint64_t covered = size_;
  IOStatus status = target()->Sync(options, context);
  if (status.ok() && covered == size_) synced_();
  return status;
}

IOStatus LogFile::Close(const IOOptions& options, IODebugContext* context) {
  // A log that keeps its zeros is read just as well.
  if (size_ < zeros_) target()->Truncate(size_, options, context).PermitUncheckedError();
  return target()->Close(options, context);
}

void LogFile::PrepareWrite(size_t offset, size_t bytes, const IOOptions& options,
                           IODebugContext* context) {
  if (offset + bytes > zeros_) target()->PrepareWrite(offset, bytes, options, context);
}

}  // namespace nowcalls::store
