// WitnessFile: writes and reads the witness of a ledger (ledger/witness.h).
//
// Thread: any. A thread, "nc-witness", writes and syncs at most once a second.
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

// The bytes of the file that counts (FORMAT.md), with zeros for an unreadable slot. NotFound: none;
// else no slot can be read.
rocksdb::IOStatus ReadWitnessBytes(rocksdb::FileSystem* files, const std::string& ledger_dir,
                                   std::string* bytes);
// `found` stays empty without a file.
rocksdb::IOStatus ReadWitness(rocksdb::FileSystem* files, const std::string& ledger_dir,
                              std::optional<ledger::WitnessFound>* found);

class WitnessFile {
 public:
  // Hears of a failed write once, on the writing thread.
  using Report = std::function<void(const rocksdb::IOStatus& failure)>;

  // `lock`: of the ledger; outlives Stop.
  WitnessFile(std::shared_ptr<rocksdb::FileSystem> files, const LedgerLock* lock, Report report);
  ~WitnessFile();
  WitnessFile(const WitnessFile&) = delete;
  WitnessFile& operator=(const WitnessFile&) = delete;

  // REQUIRES: before Prepare.
  void SetLogs(uint64_t first_log, bool unsynced);
  // Writes a new witness beside the old one: data files have all up to `batch_number`. It counts
  // once CURRENT names the manifest of the last SetManifest; the caller syncs the directory before.
  rocksdb::IOStatus Prepare(uint64_t batch_number);
  // Removes the new witness.
  void Withdraw();
  // Replaces the old witness. REQUIRES: Prepare; CURRENT names the new manifest.
  rocksdb::IOStatus Begin();
  // From now on answered batches are on disk. Synced on return.
  rocksdb::IOStatus EndUnsynced();
  // The manifest's first `bytes` are on disk.
  void SetManifest(uint64_t number, uint64_t bytes);
  // All batches up to this one are on disk.
  void Advance(uint64_t batch_number);
  // Logs of batches up to this one may be gone; logs below `first_log` have no others. Synced in
  // both slots on return. No-op before Begin.
  rocksdb::IOStatus RaiseFloor(uint64_t batch_number, uint64_t first_log = 0);

  // Writes the rest and ends the thread.
  void Stop();

 private:
  void Run();
  // A slot lacks the last batch.
  bool Due() const { return now_.batch_number > written_before_; }
  rocksdb::IOStatus PutAside();
  rocksdb::IOStatus Make();
  rocksdb::IOStatus Replace();
  rocksdb::IOStatus WriteSlot();

  const std::shared_ptr<rocksdb::FileSystem> files_;
  const LedgerLock* const lock_;
  const Report report_;

  // Held while a slot is written; locked before mutex_.
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
