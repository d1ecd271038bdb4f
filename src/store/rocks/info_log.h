// InfoLog: RocksDB's own log, LOG in the ledger's directory. Drops and counts lines that cannot be
// written. A full LOG becomes LOG.old.1. Works in the directory as opened, also if moved.
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_INFO_LOG_H_
#define NOWCALLS_STORE_ROCKS_INFO_LOG_H_

#include <rocksdb/env.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace nowcalls::store {

class InfoLog : public rocksdb::Logger {
 public:
  static constexpr int kOldFiles = 3;
  static constexpr size_t kFileBytesMax = 4 * 1024 * 1024;

  // Never fails: an unopened file takes no lines.
  explicit InfoLog(const std::string& dir, size_t file_bytes_max = kFileBytesMax);
  ~InfoLog() override;
  InfoLog(const InfoLog&) = delete;
  InfoLog& operator=(const InfoLog&) = delete;

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;

 private:
  bool GoOn();
  void BeginFile();
  void RemoveOlder() const;
  bool Write(std::string_view line);

  const size_t file_bytes_max_;
  const int dir_fd_;

  std::mutex mutex_;
  int fd_ = -1;  // Guarded by mutex_, as are the next two.
  size_t file_bytes_ = 0;
  uint64_t lost_ = 0;  // Lines dropped since the last that was written.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_INFO_LOG_H_
