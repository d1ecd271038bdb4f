// LogViews: shows the logs of a ledger without the zeros behind them (spare_logs.h).
//
// Thread: any; each file it opens is for one thread. It lies under RocksDB wherever that reads a
// ledger, and sees to three things:
//
// A log ends behind its last record, wherever its file does; its size is told accordingly. While a
// server writes it, the end moves on, and what is half written is not shown.
//
// A power cut may have left the last write of the newest log in part, in any order of its sectors
// (log_scan.h). Nobody was answered on account of it, so the log ends before it. That is true of
// the newest log only: before a batch is answered, the logs before that of the batch are synced
// too.
//
// What is damaged otherwise is refused. RocksDB takes zeros in the place of a record for the end of
// a block, and goes on behind them.
//
// A manifest has the form of a log, and is shown as the newest one is: of its records too only the
// last can be unsynced (manifest_file.h). RocksDB refuses one of which sectors are missing.
//
// Where the durability was not `sync`, the ledger may end before the end of its logs; the rest is
// not shown (log_end.h).
//
// It also remembers which batches it has shown, for log_chain.h.
//
// RocksDB asks for the size of each log before it reads it, and both take a look at every record.
// So of a ledger at rest what was opened for its size is kept, to be read then.
#ifndef NOWCALLS_STORE_LOG_VIEWS_H_
#define NOWCALLS_STORE_LOG_VIEWS_H_

#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/log_scan.h"

namespace nowcalls::store {

// The number of a log, by its name: a number and ".log". 0: the file is none.
uint64_t LogNumber(std::string_view path);
inline bool IsLog(std::string_view path) { return LogNumber(path) != 0; }

// A log that was read.
struct LogSegment {
  std::string path;
  uint64_t end = 0;  // Behind its last record.
  BatchRun batches;
};

// What is not shown of logs, since it is not of the ledger.
struct HiddenLogs {
  uint64_t below = 0;        // Logs with smaller numbers.
  std::set<uint64_t> whole;  // These logs.
  uint64_t tail_of = 0;      // Of this one, whatever follows its last record. 0: of none.

  bool Has(uint64_t number) const { return number < below || whole.contains(number); }
};

class LogViews : public rocksdb::FileSystemWrapper {
 public:
  // Whether a server writes the ledger meanwhile.
  enum class State { kAtRest, kBeingWritten };

  LogViews(const std::shared_ptr<rocksdb::FileSystem>& target, State state)
      : FileSystemWrapper(target), state_(state) {}

  // Of the logs that are opened from now on.
  void SetState(State state);
  // The ledger has been read: what was opened for its size and not read is let go.
  void EndReading();

  // REQUIRES: no log was opened.
  void Hide(HiddenLogs hidden) { hidden_ = std::move(hidden); }

  // The logs of `dir` by their numbers: those that were opened to be read, as they were then, and
  // those that RocksDB passed over, since data files have all that is in them, and it died before
  // it could delete them. Of the latter damaged ones are left out. A failure: one cannot be read.
  rocksdb::IOStatus FindSegments(const std::string& dir,
                                 std::map<uint64_t, LogSegment>* segments) const;

  const char* Name() const override { return "nowcalls.LogViews"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetFileSize(const std::string& path, const rocksdb::IOOptions& options,
                                uint64_t* bytes, rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus GetChildrenFileAttributes(const std::string& dir,
                                              const rocksdb::IOOptions& options,
                                              std::vector<rocksdb::FileAttributes>* attributes,
                                              rocksdb::IODebugContext* context) override;

 private:
  struct Opened {
    std::unique_ptr<rocksdb::FSSequentialFile> file;  // Nothing of it was read.
    LogSegment segment;
  };

  // Of a log or a manifest.
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
  std::map<uint64_t, LogSegment> segments_;  // Guarded by mutex_, as is the next.
  std::map<std::string, Opened> sized_;      // By path, and none that is written.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LOG_VIEWS_H_
