#include "store/log/log_file.h"

#include <utility>

namespace nowcalls::store {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

LogFile::LogFile(std::unique_ptr<rocksdb::FSWritableFile> file, uint64_t zeros, SpareLogs* spares,
                 Events events)
    : FSWritableFileOwnerWrapper(std::move(file)),
      zeros_(zeros),
      spares_(spares),
      events_(std::move(events)) {}

void LogFile::Grow(size_t bytes) {
  size_ += bytes;
  events_.appended(size_);
  spares_->LogHas(size_);
  // Asks for a spare once the log has grown a little: a server that writes little needs none.
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

// RocksDB syncs logs by Sync, not Fsync (use_fsync). Appends during the sync are not covered.
IOStatus LogFile::Sync(const IOOptions& options, IODebugContext* context) {
  const uint64_t covered = size_;
  IOStatus status = target()->Sync(options, context);
  if (status.ok() && covered == size_) events_.synced();
  return status;
}

IOStatus LogFile::Close(const IOOptions& options, IODebugContext* context) {
  // Only the last log of a closing database is cut: others may become spares. A failed cut is
  // harmless, since a log with zeros is read as well.
  if (size_ < zeros_ && spares_->stopping()) {
    target()->Truncate(size_, options, context).PermitUncheckedError();
  }
  IOStatus status = target()->Close(options, context);
  if (status.ok()) events_.closed(size_);
  return status;
}

void LogFile::PrepareWrite(size_t offset, size_t bytes, const IOOptions& options,
                           IODebugContext* context) {
  // Within the zeros the blocks exist already: nothing to preallocate.
  if (offset + bytes > zeros_) target()->PrepareWrite(offset, bytes, options, context);
}

}  // namespace nowcalls::store
