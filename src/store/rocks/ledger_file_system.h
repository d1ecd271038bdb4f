// LedgerFileSystem: what RocksDB may do to the files of a ledger that is served, and when.
//
// - Nothing of a ledger is lost before it is proved. While RocksDB opens a database it writes a new
//   manifest, deletes the files that the old one does not name, and cuts off what follows the last
//   record of a log. If the old manifest is damaged, the deleted files are the ledger. So from
//   BeginOpen on CURRENT keeps naming the old manifest, logs keep their ends, and files that were
//   there before are not deleted. Accept, called when the ledger is proved, does all that. Undo,
//   called when it was refused and the database is closed, removes what was made instead. A process
//   that is killed in between leaves an old manifest and files beside it, which the next open
//   removes at once (opening_mark.h).
// - The ledger stays locked until its LedgerLock is destroyed. The process would lose the lock when
//   RocksDB closes it, before Undo and StopHelpers. So RocksDB is told that it has the lock.
// - Nothing is done to a ledger that is not ours. RocksDB makes, renames and deletes files by path.
//   When another directory has taken the place of ours, these calls fail (IOFenced).
// - The witness knows of an end before anything relies on it (witness_file.h): it is synced before
//   a log is deleted that it calls deletable.
// - A file that CURRENT names is there. RocksDB makes a manifest, renames CURRENT, and syncs the
//   directory once for both. Where a file system does not keep their order, a power cut may leave
//   the second alone. So the directory is synced before CURRENT is renamed, too.
// - Logs are written over zeros where possible (log_file.h) and read without them (log_views.h).
//   Manifests are written record by record (manifest_file.h).
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

  // `lock` is that of the ledger; it outlives all calls. Logs are begun in spares of `spare_bytes`;
  // 0: in new files. `log` gets a line for each spare that cannot be made; may be nullptr. `report`
  // hears of failures beside RocksDB's calls, after which nobody knows what is on the disk.
  LedgerFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target, const LedgerLock* lock,
                   uint64_t spare_bytes = 0, std::shared_ptr<rocksdb::Logger> log = nullptr,
                   Report report = nullptr);

  // The first call, when there is a ledger with a CURRENT file. Removes the files that a killed
  // open left, whose names `removed` gets, and notes from now on what this open makes.
  rocksdb::IOStatus MarkOpening(std::vector<std::string>* removed);
  // See LogViews. REQUIRES: BeginOpen was not called.
  void HideLogs(HiddenLogs hidden) { views_->Hide(std::move(hidden)); }
  // REQUIRES: there is a ledger with a CURRENT file, and it is not open yet.
  void BeginOpen();
  // RocksDB has read the logs.
  void LogsRead() { views_->EndReading(); }
  // Ends what BeginOpen began, if it was called. From now on the ledger is written. Data files have
  // all batches up to `batch_number`, the last. With `unsynced`, later batches are answered before
  // they are on the disk. After a failure it may be unknown which manifest CURRENT names: both
  // stay, and no later call changes that.
  rocksdb::IOStatus Accept(uint64_t batch_number = 0, bool unsynced = false);
  // REQUIRES: the database is closed.
  void Undo();
  // The next five: the writer.
  //
  // Batch `batch_number` is about to be written to the log. `durable` may be called when it is on
  // the disk (durable_notice.h), and outlives Ended.
  void Begun(uint64_t batch_number, const std::function<void()>& durable = {}) {
    begun_ = batch_number;
    notice_.Begin(durable);
  }
  // The write is over. With `durable` it has succeeded, and the batch is on the disk.
  void Ended(bool durable) { notice_.End(durable); }
  // Batch `batch_number` is in the log, and on the disk if it is `durable`.
  void Committed(uint64_t batch_number, bool durable);
  // All that was committed is on the disk.
  void Synced() { witness_.Advance(committed_); }
  // All that was answered is on the disk, and so will be all that is answered from now on. The
  // witness says so when it returns.
  rocksdb::IOStatus EndUnsynced() { return witness_.EndUnsynced(); }
  // All that was committed is in data files.
  rocksdb::IOStatus Flushed() { return witness_.RaiseFloor(committed_); }

  // The database is about to be closed.
  void BeginStop() { spares_.BeginStop(); }
  // Ends what runs beside RocksDB, removes the spare log, and writes the witness. REQUIRES: the
  // database is closed.
  void StopHelpers();

  // What somebody else has done to a log that is in use, as "PATH was removed"; empty: nothing.
  // Misses a cut behind the end that the look before knew of, if the log has grown again. The
  // writer, while nothing is committed.
  std::string FindHarmedLog();

  // What deleted files still take of the disk, and give back within seconds.
  uint64_t BytesToFree() { return freed_.bytes_left(); }
  // See FreedFiles.
  void FreeAtOnce(bool on) { freed_.FreeAtOnce(on); }

  // What shows RocksDB the logs.
  const LogViews& views() const { return *views_; }
  // The file system below, which shows files as they are.
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
  // The ledger's own directory is there, since its LOCK is held: RocksDB need not look, and call a
  // look that failed a file in its place.
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
  // What happened to log `number`. Synced: all that it has so far is on the disk.
  void LogAppended(uint64_t number, uint64_t bytes);
  void LogSynced(uint64_t number);
  void LogClosed(uint64_t number, uint64_t bytes);
  // Tells the witness of closed logs that were synced. RocksDB syncs them before the manifest names
  // data files of their batches.
  void WitnessSyncedLogs();
  // What follows a log that is deleted: the next log and its first batch. Zeros: there is none.
  struct LogsBehind {
    uint64_t first_log = 0;
    uint64_t first_batch = 0;
    std::optional<uint64_t> closed_bytes;  // The deleted log's own length, if it was closed.
  };
  LogsBehind ForgetLog(uint64_t number);
  // What was appended to each log that is in use.
  std::map<uint64_t, uint64_t> LogBytes();

  const LedgerLock* const lock_;
  rocksdb::FileLock shown_lock_;  // RocksDB gets this one for that of the ledger.
  const std::string current_path_;
  const Report report_;
  const std::shared_ptr<LogViews> views_;
  std::mutex directory_mutex_;
  // The ledger's directory, open from its first sync on. Set once, guarded by directory_mutex_.
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

  // Taken after mutex_, and held across no call: commits sync a log while RocksDB makes or renames
  // a file, which may take long.
  std::mutex logs_mutex_;
  // The first batch of each log that was made; 0 until Accept. Guarded by logs_mutex_, as are the
  // next four.
  std::map<uint64_t, uint64_t> first_batches_;
  std::set<uint64_t> synced_logs_;            // Closed logs that are on the disk.
  uint64_t synced_to_ = 0;                    // The last batch that the witness heard of by them.
  bool unsynced_ = false;                     // See Accept.
  std::map<uint64_t, uint64_t> closed_logs_;  // The lengths of closed logs.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_LEDGER_FILE_SYSTEM_H_
