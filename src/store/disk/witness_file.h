// WitnessFile: keeps the witness of a ledger (ledger/witness.h) up to date, and reads it.
//
// The witness must be true after any crash. So it is told of batches only when they are on the
// disk, and it is synced before a log is deleted that it calls deletable.
//
// Thread: members from any. A thread of its own, "nc-witness", writes and syncs, so that no commit
// waits for it: when there is something new, at most once a second. Then it writes once more, so
// that both slots know the news.
#ifndef NOWCALLS_STORE_DISK_WITNESS_FILE_H_
#define NOWCALLS_STORE_DISK_WITNESS_FILE_H_

#include <rocksdb/file_system.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "ledger/witness.h"
#include "store/disk/ledger_lock.h"

namespace nowcalls::store {

std::string WitnessPath(const std::string& ledger_dir);

// Reads the bytes of the file, with zeros for a slot that cannot be read, so that the other slot
// still counts. A start may have been cut off between its manifest and its witness
// (WitnessFile::Prepare). If CURRENT names the manifest of such a start, its witness is read.
// NotFound: there is none. Another failure: neither slot can be read.
rocksdb::IOStatus ReadWitnessBytes(rocksdb::FileSystem* files, const std::string& ledger_dir,
                                   std::string* bytes);
// `found` stays empty when there is no such file. A failure: it cannot be read.
rocksdb::IOStatus ReadWitness(rocksdb::FileSystem* files, const std::string& ledger_dir,
                              std::optional<ledger::WitnessFound>* found);

class WitnessFile {
 public:
  // Hears of a write that failed, once, on the thread that wrote.
  using Report = std::function<void(const rocksdb::IOStatus& failure)>;

  // `lock` is that of the ledger; it outlives Stop.
  WitnessFile(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock, Report report);
  ~WitnessFile();
  WitnessFile(const WitnessFile&) = delete;
  WitnessFile& operator=(const WitnessFile&) = delete;

  // What the new witness says of logs (ledger::Witness). REQUIRES: Prepare was not called.
  void SetLogs(uint64_t first_log, bool unsynced);
  // Writes a new witness beside the old one. It says that data files have everything up to
  // `batch_number`, and counts from the moment when CURRENT names the manifest of the last
  // SetManifest. So CURRENT never names a manifest that no witness knows. The caller syncs the
  // directory before that moment. Nothing is written before this call.
  rocksdb::IOStatus Prepare(uint64_t batch_number);
  // Removes the new witness: CURRENT stays as it was.
  void Withdraw();
  // Replaces the old witness, if any, by the new one. REQUIRES: Prepare; CURRENT names the new
  // manifest.
  rocksdb::IOStatus Begin();
  // Says that no batch is answered any more before it is on the disk. Synced when it returns.
  rocksdb::IOStatus EndUnsynced();
  // The first `bytes` of this manifest are on the disk.
  void SetManifest(uint64_t number, uint64_t bytes);
  // This batch, and with it all before it, is on the disk.
  void Advance(uint64_t batch_number);
  // Says that the logs of batches up to this one may be gone; logs with numbers below `first_log`
  // have no others. Synced, in both slots, when it returns. Does nothing before Begin.
  rocksdb::IOStatus RaiseFloor(uint64_t batch_number, uint64_t first_log = 0);

  // Writes the rest, and ends the thread.
  void Stop();

 private:
  void Run();
  // Whether one of the slots does not know of the last batch.
  bool Due() const { return now_.batch_number > written_before_; }
  rocksdb::IOStatus PutAside();
  rocksdb::IOStatus Make();
  rocksdb::IOStatus Replace();
  rocksdb::IOStatus WriteSlot();

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const LedgerLock* const lock_;
  const Report report_;

  // Held while a slot is written; taken before mutex_.
  std::mutex write_mutex_;
  std::unique_ptr<rocksdb::FSRandomRWFile> file_;  // nullptr before Begin.
  uint64_t sequence_ = 0;
  bool failed_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  ledger::Witness now_;             // Guarded by mutex_, as are the next seven.
  uint64_t written_ = 0;            // The batch number of the slot that was written last.
  uint64_t written_before_ = 0;     // And of the other.
  uint64_t floor_written_ = 0;      // The floor that both slots have at least.
  uint64_t first_log_written_ = 0;  // The same of the first log.
  bool unsynced_written_ = false;   // Of one of them, if it is set.
  bool begun_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_DISK_WITNESS_FILE_H_
