// LedgerFileSystem: what RocksDB may do to the files of a ledger, and when.
//
// Thread: any. It adds rules to the real file system.
//
// Nothing of a ledger is lost before it is proved. RocksDB tidies up while it opens a database: it
// writes a new manifest, and deletes the files that the old one does not name. If the old one is
// damaged, these are the ledger. It also cuts off what follows the last record of a log. So from
// BeginOpen on CURRENT keeps naming the old manifest, logs keep their ends, and deletions of files
// that were there before wait. Keep, called when the ledger has been proved to
// be complete, does both; Undo, called when it was refused and the database is closed, removes what
// was made instead, and the directory is as it was. A process that is killed in between leaves what
// RocksDB leaves when it is killed while it opens: an old manifest, and files beside it. The next
// open removes these at once (opening_mark.h).
//
// The ledger stays locked until its LedgerLock goes. RocksDB takes and drops the same lock, and the
// process would lose it when the database is closed, before Undo and StopHelpers. So RocksDB is
// told that it has it, and nothing more.
//
// Nothing is done to a ledger that is not ours. RocksDB makes, renames and deletes files by their
// paths. When another directory has taken the place of ours, these calls fail (IOFenced).
//
// What is certain of the ledger's end is in the witness before anything relies on it
// (witness_file.h): a log goes only when the witness says that it may be gone.
//
// What CURRENT names is there. RocksDB makes a manifest, renames CURRENT, and syncs the directory
// once, for both. A power cut may then leave the second without the first where a file system does
// not keep their order. So the directory is synced before CURRENT is renamed, too.
//
// Logs are written over zeros where possible (log_file.h), and read without them (log_views.h).
// Manifests are written record by record (manifest_file.h).
#ifndef NOWCALLS_STORE_LEDGER_FILE_SYSTEM_H_
#define NOWCALLS_STORE_LEDGER_FILE_SYSTEM_H_

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

#include "store/durable_notice.h"
#include "store/freed_files.h"
#include "store/ledger_lock.h"
#include "store/log_views.h"
#include "store/opening_mark.h"
#include "store/spare_logs.h"
#include "store/witness_file.h"

namespace nowcalls::store {

class LedgerFileSystem : public rocksdb::FileSystemWrapper {
 public:
  using Report = std::function<void(const rocksdb::IOStatus& failure, const std::string& doing)>;

  // `lock` is that of the ledger; it outlives all calls. Logs are begun in spares of `spare_bytes`;
  // 0: in new files. `log` is told of spares that cannot be made; may be nullptr. `report` is told
  // what could not be done beside RocksDB, after which nobody knows what is on the disk.
  LedgerFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target, const LedgerLock* lock,
                   uint64_t spare_bytes = 0, std::shared_ptr<rocksdb::Logger> log = nullptr,
                   Report report = nullptr);

  // First of all, when there is a ledger with a CURRENT file: removes what an open left that was
  // killed, whose names `removed` gets, and notes what this one makes.
  rocksdb::IOStatus MarkOpening(std::vector<std::string>* removed);
  // See LogViews. REQUIRES: BeginOpen was not called.
  void HideLogs(HiddenLogs hidden) { views_->Hide(std::move(hidden)); }
  // REQUIRES: there is a ledger with a CURRENT file, and it is not open yet.
  void BeginOpen();
  // RocksDB has read the logs.
  void LogsRead() { views_->EndReading(); }
  // Ends what BeginOpen began, if it was called; from now on the ledger is written. Data files have
  // all up to `batch_number`, the last. Later ones are answered before they are on the disk, if
  // `unsynced`. After a failure it may be unknown which manifest CURRENT names: both are left, and
  // no later call changes that.
  rocksdb::IOStatus Keep(uint64_t batch_number = 0, bool unsynced = false);
  // REQUIRES: the database is closed.
  void Undo();
  // Batch `batch_number` is about to be written to the log. `durable`, which outlives Ended, may be
  // called when it is on the disk (durable_notice.h). The writer.
  void Begun(uint64_t batch_number, const std::function<void()>& durable = {}) {
    begun_ = batch_number;
    notice_.Begin(durable);
  }
  // It was written, and is on the disk if it is `durable`; or that has failed. The writer.
  void Ended(bool durable) { notice_.End(durable); }
  // Batch `batch_number` is in the log, and on the disk if it is `durable`. The writer.
  void Committed(uint64_t batch_number, bool durable);
  // All that was committed is on the disk. The writer.
  void Synced() { witness_.Advance(committed_); }
  // From now on nothing is answered before it is on the disk, as all is that was; the witness says
  // so when it returns. The writer.
  rocksdb::IOStatus EndUnsynced() { return witness_.EndUnsynced(); }
  // All that was committed is in data files. The writer.
  rocksdb::IOStatus Flushed() { return witness_.RaiseFloor(committed_); }

  // The database is about to be closed.
  void BeginStop() { spares_.BeginStop(); }
  // Ends what runs beside RocksDB, removes the spare log, and writes the witness. REQUIRES: the
  // database is closed.
  void StopHelpers();

  // What deleted files still take of the disk, and give back within seconds.
  uint64_t BytesToFree() { return freed_.bytes_left(); }
  // See FreedFiles.
  void FreeAtOnce(bool on) { freed_.FreeAtOnce(on); }

  // See LogViews.
  const LogViews& views() const { return *views_; }

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
  // Of log `number`: it has got more; and all that it has so far is on the disk.
  void LogAppended(uint64_t number);
  void LogSynced(uint64_t number);
  void LogClosed(uint64_t number, uint64_t bytes);
  // Tells the witness of logs that were synced as a whole, as RocksDB does before it names data
  // files of what they have.
  void WitnessSyncedLogs();
  // The logs that follow one that goes, and where their batches begin. Zeros: there are none. And
  // how long the one that goes is, if it was written and closed.
  struct LogsBehind {
    uint64_t first_log = 0;
    uint64_t first_batch = 0;
    std::optional<uint64_t> closed_bytes;
  };
  LogsBehind ForgetLog(uint64_t number);

  const LedgerLock* const lock_;
  rocksdb::FileLock shown_lock_;  // What RocksDB gets for that of the ledger.
  const std::string current_path_;
  const Report report_;
  const std::shared_ptr<LogViews> views_;
  std::mutex directory_mutex_;
  // The ledger's, once it has been synced. Set once, guarded by directory_mutex_.
  std::unique_ptr<rocksdb::FSDirectory> directory_;
  OpeningMark mark_;
  SpareLogs spares_;
  FreedFiles freed_;
  WitnessFile witness_;
  std::atomic<uint64_t> committed_{0};
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> logged_{0};  // The last batch of which a log has something.
  DurableNotice notice_;

  std::mutex mutex_;
  bool opening_ = false;          // Guarded by mutex_, as are the next six.
  bool marked_ = false;           // By MarkOpening.
  bool replaced_ = false;         // CURRENT may be the new one: nothing is undone.
  rocksdb::IOStatus kept_;        // Of the first Keep that failed.
  std::set<std::string> made_;    // By this open.
  std::set<std::string> doomed_;  // Deletions that wait.
  std::string next_current_;      // What is to be CURRENT; empty: nothing.

  // Taken after mutex_, and held across no call: a log is synced, and so committed to, while
  // RocksDB makes or renames a file, which may take long.
  std::mutex logs_mutex_;
  // The first batch of each log that was made; 0 until Keep. Guarded by logs_mutex_, as are the
  // next four.
  std::map<uint64_t, uint64_t> first_batches_;
  std::set<uint64_t> synced_logs_;            // To which nothing is added any more.
  uint64_t synced_to_ = 0;                    // By these logs.
  bool unsynced_ = false;                     // See Keep.
  std::map<uint64_t, uint64_t> closed_logs_;  // Their lengths.
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_LEDGER_FILE_SYSTEM_H_
