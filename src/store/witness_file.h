// WitnessFile: keeps the witness of a ledger (ledger/witness.h) up to date, and reads it.
//
// Thread: members from any. A thread of its own, "nc-witness", writes and syncs, so that no commit
// waits for it: as soon as there is something new, but not more often than once a second; and when
// there is nothing new, once more, so that both slots know of it.
//
// What it says must be true after any crash, so it is told of batches only when they are on the
// disk, and it is on the disk itself before the first log goes that it says may be gone.
#ifndef NOWCALLS_STORE_WITNESS_FILE_H_
#define NOWCALLS_STORE_WITNESS_FILE_H_

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
#include "store/ledger_lock.h"

namespace nowcalls::store {

std::string WitnessPath(const std::string& ledger_dir);

// What the file has, with zeros for a slot that the disk does not give back, so that the other
// still counts. If CURRENT names the manifest of a start that was cut off before its witness was in
// the place of the one before (WitnessFile::Prepare), it is that of the start. NotFound; another
// failure: neither slot can be read.
rocksdb::IOStatus ReadWitnessBytes(rocksdb::FileSystem* files, const std::string& ledger_dir,
                                   std::string* bytes);
// Nothing when there is no such file. Another failure: it cannot be read.
rocksdb::IOStatus ReadWitness(rocksdb::FileSystem* files, const std::string& ledger_dir,
                              std::optional<ledger::WitnessFound>* found);

class WitnessFile {
 public:
  // Told of a write that failed, on the thread that wrote; once.
  using Report = std::function<void(const rocksdb::IOStatus& failure)>;

  // `lock` is that of the ledger; it outlives Stop.
  WitnessFile(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock, Report report);
  ~WitnessFile();
  WitnessFile(const WitnessFile&) = delete;
  WitnessFile& operator=(const WitnessFile&) = delete;

  // What the new witness says of logs, see ledger::Witness. REQUIRES: before Prepare.
  void SetLogs(uint64_t first_log, bool unsynced);
  // Writes a new witness beside the old one: that data files have everything up to `batch_number`,
  // as it will be when CURRENT names the manifest of the last SetManifest. From that moment on it
  // counts, so there is none at which CURRENT has a manifest that no witness knows. Its name is on
  // the disk with the next sync of the directory, which must come before that moment. Nothing is
  // written before.
  rocksdb::IOStatus Prepare(uint64_t batch_number);
  // Takes it away again: CURRENT is to stay.
  void Withdraw();
  // Puts it in the place of the old one, if any, once CURRENT names its manifest. REQUIRES:
  // Prepare.
  rocksdb::IOStatus Begin();
  // No batch is answered any more before it is on the disk. On the disk when it returns.
  rocksdb::IOStatus EndUnsynced();
  // So much of this manifest is on the disk.
  void SetManifest(uint64_t number, uint64_t bytes);
  // This batch, and with it all before it, is on the disk.
  void Advance(uint64_t batch_number);
  // The logs of batches up to this one may be gone once this has returned; so it is on the disk.
  // Logs with numbers below `first_log` have no others. Does nothing before Begin.
  rocksdb::IOStatus RaiseFloor(uint64_t batch_number, uint64_t first_log = 0);

  // Writes what is not written yet, and ends the thread.
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

#endif  // NOWCALLS_STORE_WITNESS_FILE_H_
