// LogFile: a log that RocksDB writes, in a file that may have been filled with zeros beforehand.
//
// Thread: as rocksdb::FSWritableFile; Sync may run beside Append.
//
// An fdatasync behind bytes that made the file longer also has to write the file system's journal;
// behind bytes that replaced zeros it is the data alone, in about half the time. So a log is begun
// in a file of zeros if there is one (spare_logs.h), and asks for the next when it has grown a
// little. When its zeros are used up it grows as any file does. Those that are left stay when it is
// closed, since the file may become a spare again, but for the log with which the database ends.
#ifndef NOWCALLS_STORE_LOG_FILE_H_
#define NOWCALLS_STORE_LOG_FILE_H_

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "store/spare_logs.h"

namespace nowcalls::store {

class LogFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  // Each is called on the thread of the call that it tells of.
  struct Events {
    std::function<void()> appended;                  // An Append succeeded.
    std::function<void()> synced;                    // A sync that covers all of them.
    std::function<void(uint64_t log_bytes)> closed;  // So much was appended.
  };

  // `file` writes from its beginning on over `zeros` bytes, all of them 0. `spares` outlives it.
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

#endif  // NOWCALLS_STORE_LOG_FILE_H_
