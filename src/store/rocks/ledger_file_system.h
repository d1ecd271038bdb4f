// LedgerFileSystem: the file system through which RocksDB writes a served ledger.
//
// From BeginOpen on CURRENT, old files and log ends stay. Accept replaces and deletes; Undo removes
// what was made. Nothing is done to a ledger that is not ours: calls fail (IOFenced).
//
// Thread: any.
#ifndef NOWCALLS_STORE_ROCKS_LEDGER_FILE_SYSTEM_H_
#define NOWCALLS_STORE_ROCKS_LEDGER_FILE_SYSTEM_H_

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/disk/freed_files.h"
#include "store/disk/ledger_lock.h"
#include "store/disk/witness_file.h"
#include "store/log/durable_notice.h"
#include "store/log/log_views.h"
#include "store/log/spare_logs.h"
#include "store/rocks/opening_mark.h"

namespace nowcalls::store {

class LedgerFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using Report = std::function<void(const rocksdb::IOStatus& failure, const std::string& doing)>;

  // `lock` outlives all calls. `spare_bytes`, `log`: of SpareLogs. `report`: hears of failures
  // beside RocksDB's calls, after which the disk's state is unknown.
  LedgerFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target, const LedgerLock* lock,
                   uint64_t spare_bytes = 0, std::shared_ptr<rocksdb::Logger> log = nullptr,
                   Report report = nullptr);

  // First, if CURRENT exists: removes files of a killed open, named in `removed`, and notes this
  // open's.
  rocksdb::IOStatus MarkOpening(std::vector<std::string>* removed);
  // REQUIRES: before BeginOpen.
  void HideLogs(HiddenLogs hidden) { views_->Hide(std::move(hidden)); }
  // REQUIRES: CURRENT exists; not open yet.
  void BeginOpen();
  void LogsRead() { views_->EndReading(); }
  // Ends BeginOpen, if called. Data files have all up to `batch_number`. `unsynced`: later batches
  // are answered unsynced. After a failure CURRENT may be either manifest: both stay.
  rocksdb::IOStatus Accept(uint64_t batch_number = 0, bool unsynced = false);
  // REQUIRES: the database is closed.
  void Undo();
  // The next five: the writer. Batch `batch_number` is about to be logged. `durable` may be called
  // when it is on disk, and outlives Ended.
  void Begun(uint64_t batch_number, const std::function<void()>& durable = {}) {
    begun_ = batch_number;
    notice_.Begin(durable);
  }
  // `durable`: successful and on disk.
  void Ended(bool durable) { notice_.End(durable); }
  // The batch is in the log; `durable`: on disk.
  void Committed(uint64_t batch_number, bool durable);
  void Synced() { witness_.Advance(committed_); }
  // All answers are on disk from now on; the witness says so on return.
  rocksdb::IOStatus EndUnsynced() { return witness_.EndUnsynced(); }
  rocksdb::IOStatus Flushed() { return witness_.RaiseFloor(committed_); }

  // Before the database is closed.
  void BeginStop() { spares_.BeginStop(); }
  // Ends helper threads, writes the witness. REQUIRES: the database is closed.
  void StopHelpers();

  // Harm to a log in use, as "PATH was removed"; empty: none. Misses a cut of bytes new since the
  // last look, if regrown. The writer, while nothing is committed.
  std::string FindHarmedLog();

  uint64_t BytesToFree() { return freed_.bytes_left(); }
  void FreeAtOnce(bool on) { freed_.FreeAtOnce(on); }

  const LogViews& views() const { return *views_; }
  // Shows files as they are.
  rocksdb::FileSystem* disk() const { return views_->target(); }

  const char* Name() const override { return "nowcalls.LedgerFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* file,
                                       rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus CreateDirIfMissing(const std::string& path, const rocksdb::IOOptions& options,
                                       rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus LockFile(const std::string& path, const rocksdb::IOOptions& options,
                             rocksdb::FileLock** lock, rocksdb::IODebugContext* context) override;
  rocksdb::IOStatus UnlockFile(rocksdb::FileLock* lock, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override;

 private:
  LedgerFileSystem(const std::shared_ptr<LogViews>& views, const LedgerLock* lock,
                   uint64_t spare_bytes, std::shared_ptr<rocksdb::Logger> log, Report report);
  rocksdb::IOStatus CheckOurs() const;
  rocksdb::IOStatus NewLog(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           rocksdb::IODebugContext* context);
  rocksdb::IOStatus SyncDirectory();
  rocksdb::IOStatus SyncDirectoryOrReport();
  rocksdb::IOStatus ReplaceCurrent();
  void LogAppended(uint64_t number, uint64_t bytes);
  void LogSynced(uint64_t number);
  void LogClosed(uint64_t number, uint64_t bytes);
  void WitnessSyncedLogs();
  // What follows a deleted log; zeros: nothing.
  struct LogsBehind {
    uint64_t first_log = 0;
    uint64_t first_batch = 0;
    std::optional<uint64_t> closed_bytes;  // The deleted log's own length, if it was closed.
  };
  LogsBehind ForgetLog(uint64_t number);
  std::map<uint64_t, uint64_t> LogBytes();

  const LedgerLock* const lock_;
  rocksdb::FileLock shown_lock_;  // RocksDB gets this one for that of the ledger.
  const std::string current_path_;
  const Report report_;
  const std::shared_ptr<LogViews> views_;
  std::mutex directory_mutex_;
  // Open from the first sync on. Set once, guarded by directory_mutex_.
  std::unique_ptr<rocksdb::FSDirectory> directory_;
  OpeningMark mark_;
  SpareLogs spares_;
  FreedFiles freed_;
  WitnessFile witness_;
  std::atomic<uint64_t> committed_{0};
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> logged_{0};  // The last batch of which a log has something.
  std::atomic<uint64_t> newest_log_{0};
  std::atomic<uint64_t> newest_log_bytes_{0};
  std::map<uint64_t, uint64_t> looked_logs_;  // LogBytes of the last FindHarmedLog. The writer's.
  DurableNotice notice_;

  std::mutex mutex_;
  bool opening_ = false;          // Guarded by mutex_, as are the next six.
  bool marked_ = false;           // By MarkOpening.
  bool replaced_ = false;         // CURRENT may be the new one: nothing is undone.
  rocksdb::IOStatus accepted_;    // Of the first Accept that failed.
  std::set<std::string> made_;    // By this open.
  std::set<std::string> doomed_;  // To be deleted by Accept.
  std::string next_current_;      // The file that is to be CURRENT; empty: none.

  // Locked after mutex_; held across no call.
  std::mutex logs_mutex_;
  // First batch of each new log; 0 until Accept. Guarded by logs_mutex_, as are the next four.
  std::map<uint64_t, uint64_t> first_batches_;
  std::set<uint64_t> synced_logs_;            // Closed logs that are on the disk.
  uint64_t synced_to_ = 0;                    // The last batch that the witness heard of by them.
  bool unsynced_ = false;                     // See Accept.
  std::map<uint64_t, uint64_t> closed_logs_;  // The lengths of closed logs.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_FILE_SYSTEM_H_
