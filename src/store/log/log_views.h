// LogViews: a file system that shows a ledger's logs and manifest as far as they count (FORMAT.md,
// The log). Sizes are told accordingly. Damage is refused.
//
// Thread: any; each opened file is for one thread.
#ifndef NOWCALLS_STORE_LOG_LOG_VIEWS_H_
#define NOWCALLS_STORE_LOG_LOG_VIEWS_H_

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/log/log_scan.h"

namespace nowcalls::store {

struct LogSegment {
  std::string path;
  uint64_t end = 0;  // Behind its last record.
  BatchRun batches;
};

struct HiddenLogs {
  uint64_t below = 0;        // All logs with smaller numbers.
  std::set<uint64_t> whole;  // These logs.
  uint64_t tail_of = 0;      // What follows the last record of this log. 0: of none.

  bool Has(uint64_t number) const { return number < below || whole.contains(number); }
};

class LogViews : public rocksdb::FileSystemWrapper {
 public:
  // Whether a server writes the ledger meanwhile.
  enum class State { kAtRest, kBeingWritten };

  LogViews(const std::shared_ptr<rocksdb::FileSystem>& target, State state)
      : FileSystemWrapper(target), state_(state) {}

  // Applies to logs opened from now on.
  void SetState(State state);
  void EndReading();

  // REQUIRES: no log was opened.
  void Hide(HiddenLogs hidden) { hidden_ = std::move(hidden); }

  // Logs of `dir` by number, as they were when read; damaged ones are left out. Fails if a log
  // cannot be read.
  rocksdb::IOStatus FindSegments(const std::string& dir,
                                 std::map<uint64_t, LogSegment>* segments) const;

  const char* Name() const override { return "nowcalls.LogViews"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* context) override;
  // The first failed read of a data file: RocksDB goes on and silently misses rows.
  rocksdb::IOStatus FailedRead() const;

  // Once CURRENT could not be opened, it never can (log_views.cc).
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions& options,
                                uint64_t* bytes, rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetChildrenFileAttributes(const std::string& dir,
                                              const rocksdb::IOOptions& options,
                                              std::vector<rocksdb::FileAttributes>* attributes,
                                              rocksdb::IODebugContext* context) override;

 private:
  struct Opened {
    std::unique_ptr<rocksdb::FSSequentialFile> file;  // At its beginning.
    LogSegment segment;
  };

  void NoteFailedRead(const rocksdb::IOStatus& failed);
  rocksdb::IOStatus OpenLog(const std::string& path, const rocksdb::FileOptions& options,
                            Opened* opened) const;
  Opened TakeSized(const std::string& path);
  rocksdb::IOStatus IsNewest(const std::string& path, bool* newest) const;
  rocksdb::IOStatus HasContent(const std::string& path, bool* content) const;

  std::atomic<State> state_;
  HiddenLogs hidden_;

  mutable std::mutex mutex_;
  rocksdb::IOStatus current_unopened_;  // Guarded by mutex_, as are the next three.
  rocksdb::IOStatus failed_read_;
  std::map<uint64_t, LogSegment> segments_;
  std::map<std::string, Opened> sized_;  // By path. No log that is written.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_LOG_VIEWS_H_
