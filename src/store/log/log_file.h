// LogFile: a log that RocksDB writes, perhaps over zeros (spare_logs.h).
//
// Thread: as rocksdb::FSWritableFile; Sync may run beside Append.
#ifndef NOWCALLS_STORE_LOG_LOG_FILE_H_
#define NOWCALLS_STORE_LOG_LOG_FILE_H_

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "store/log/spare_logs.h"

namespace nowcalls::store {

class LogFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  // On the thread of the reported call.
  struct Events {
    std::function<void(uint64_t log_bytes)> appended;  // An Append succeeded: so many in all.
    std::function<void()> synced;                      // A sync covers all that was appended.
    std::function<void(uint64_t log_bytes)> closed;    // `log_bytes` were appended in all.
  };

  // Writes `file` from its begin, over `zeros` zero bytes. `spares` outlives it.
  LogFile(std::unique_ptr<rocksdb::FSWritableFile> file, uint64_t zeros, SpareLogs* spares,
          Events events);

  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* context) override;
  void PrepareWrite(size_t offset, size_t bytes, const rocksdb::IOOptions& options,
                    rocksdb::IODebugContext* context) override;

 private:
  void Grow(size_t bytes);

  const uint64_t zeros_;
  SpareLogs* const spares_;
  const Events events_;
  std::atomic<uint64_t> size_{0};
  bool asked_ = false;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_LOG_FILE_H_
