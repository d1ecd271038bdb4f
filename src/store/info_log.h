// InfoLog: RocksDB's own log for the engineer, LOG in the ledger's directory.
//
// Thread: any. RocksDB's logger is not used, because it takes a second failed write for a defect of
// the program and aborts it: on a full disk that was the end of the server, before it could say
// that the disk is full. This one drops what cannot be written and notes how many lines are
// missing.
//
// A start goes on in the LOG of the one before, so that many that are refused do not wash out what
// led to it. What no longer fits begins another, and LOG becomes LOG.old.1, and so on; four files
// in all, of 4 MiB each. All is done relative to the directory as it was when the log was opened,
// so that a directory that takes its place gets nothing.
#ifndef NOWCALLS_STORE_INFO_LOG_H_
#define NOWCALLS_STORE_INFO_LOG_H_

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

  // Never fails: what cannot be opened takes no lines.
  explicit InfoLog(const std::string& dir, size_t file_bytes_max = kFileBytesMax);
  ~InfoLog() override;
  InfoLog(const InfoLog&) = delete;
  InfoLog& operator=(const InfoLog&) = delete;

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;

 private:
  // False: there is none, or none that more goes into.
  bool GoOn();
  void BeginFile();
  void RemoveOlder() const;
  bool Write(std::string_view line);

  const size_t file_bytes_max_;
  const int dir_fd_;

  std::mutex mutex_;
  int fd_ = -1;  // Guarded by mutex_, as are the next two.
  size_t file_bytes_ = 0;
  uint64_t lost_ = 0;  // Lines since the last that was written.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_INFO_LOG_H_
