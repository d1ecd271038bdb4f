// InfoLog: RocksDB's own log for the engineer, LOG in the ledger's directory.
//
// RocksDB's logger takes a second failed write for a defect of the program and aborts it: a full
// disk ended the server before it could say so. This one drops lines that cannot be written and
// notes how many are missing.
//
// A start goes on in the LOG of the one before, so that many refused starts do not wash out what
// led to them. When LOG is full it becomes LOG.old.1, and so on: four files in all, of 4 MiB each.
// All is done relative to the directory as it was when the log was opened, so a directory that
// takes its place gets nothing.
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

  // Never fails: a file that cannot be opened takes no lines.
  explicit InfoLog(const std::string& dir, size_t file_bytes_max = kFileBytesMax);
  ~InfoLog() override;
  InfoLog(const InfoLog&) = delete;
  InfoLog& operator=(const InfoLog&) = delete;

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;

 private:
  // Goes on in the file that is there. False: there is none, or it is full.
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
