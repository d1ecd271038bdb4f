// LogViews: a file system that shows the logs of a ledger as they count. It lies under RocksDB
// wherever that reads a ledger.
//
// - A log ends behind its last record, wherever its file does, and its size is told accordingly.
//   While a server writes it, the end moves on, and no half written record is shown.
// - A power cut may have left the last write of the newest log in part, in any order of its sectors
//   (log_scan.h). Nobody was answered because of it, so the log ends before it. That holds for the
//   newest log only: before a batch is answered, the logs before its own are synced too.
// - Other damage is refused. RocksDB takes zeros in the place of a record for the end of a block,
//   and goes on behind them.
// - A manifest has the form of a log, and is shown as the newest log is: only its last record can
//   be unsynced (manifest_file.h). RocksDB refuses a manifest of which sectors are missing.
// - Without the durability `sync` the ledger may end before its logs do; the rest is hidden
//   (log_end.h).
//
// It remembers which batches it has shown, for log_chain.h. RocksDB asks for the size of each log
// before it reads the log, and both look at every record. So a log of a ledger at rest stays open
// from the one to the other.
//
// Thread: any; each file that it opens is for one thread.
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

// A log that was read.
struct LogSegment {
  std::string path;
  uint64_t end = 0;  // Behind its last record.
  BatchRun batches;
};

// Logs, and parts of logs, that are not of the ledger.
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

  // For the logs that are opened from now on.
  void SetState(State state);
  // The ledger has been read: closes the logs that were opened for their size and not read.
  void EndReading();

  // REQUIRES: no log was opened.
  void Hide(HiddenLogs hidden) { hidden_ = std::move(hidden); }

  // The logs of `dir` by their numbers. Logs that were opened to be read are as they were then. The
  // others are obsolete logs that a crash left undeleted; damaged ones of these are left out. A
  // failure: a log cannot be read.
  rocksdb::IOStatus FindSegments(const std::string& dir,
                                 std::map<uint64_t, LogSegment>* segments) const;

  const char* Name() const override { return "nowcalls.LogViews"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* context) override;
  // CURRENT, once it could not be opened, cannot later: RocksDB tries twice, and from a second try
  // that succeeds concludes that the first has failed for want of direct I/O.
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

  // Opens a log or a manifest.
  rocksdb::IOStatus OpenLog(const std::string& path, const rocksdb::FileOptions& options,
                            Opened* opened) const;
  // The log that GetFileSize opened; null if none.
  Opened TakeSized(const std::string& path);
  // Whether no log with a greater number has anything in it that is shown.
  rocksdb::IOStatus IsNewest(const std::string& path, bool* newest) const;
  rocksdb::IOStatus HasContent(const std::string& path, bool* content) const;

  std::atomic<State> state_;
  HiddenLogs hidden_;

  mutable std::mutex mutex_;
  rocksdb::IOStatus current_unopened_;  // Guarded by mutex_, as are the next two.
  std::map<uint64_t, LogSegment> segments_;
  std::map<std::string, Opened> sized_;  // By path. No log that is written.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_LOG_VIEWS_H_
