// ServerLedger: a ledger that this process serves: its lock, its file system and its database.
//
// Opening changes nothing that could not be undone, until Accept (ledger_file_system.h).
//
// Making a ledger is three steps, and a crash may fall between any two: RocksDB makes the database,
// the families are made, the format record is written with a sync. Until then the ledger is empty,
// so an empty database without a format record is finished by the next open. A database that holds
// anything without one is damaged.
//
// Thread: Open, Accept and Close as RocksStore's; the parts as each says.
#ifndef NOWCALLS_STORE_ROCKS_SERVER_LEDGER_H_
#define NOWCALLS_STORE_ROCKS_SERVER_LEDGER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nowcalls/status.h"
#include "store/disk/ledger_lock.h"
#include "store/rocks/database.h"
#include "store/rocks/late_compactions.h"
#include "store/rocks/ledger_file_system.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::store {

class ServerLedger {
 public:
  // `report` is told of failures beside the calls, on the thread where they happen.
  ServerLedger(std::unique_ptr<LedgerLock> lock, const RocksStoreOptions& options,
               std::function<void(const Status&)> report);
  ~ServerLedger();
  ServerLedger(const ServerLedger&) = delete;
  ServerLedger& operator=(const ServerLedger&) = delete;

  // Opens the ledger and proves that it has all its batches, or makes one. Once.
  Status Open();
  // See RocksStore::Accept. Does nothing when it has succeeded before.
  Status Accept();
  // Closes the database, ends all threads, undoes an open that was not accepted, and gives up the
  // lock.
  rocksdb::Status Close();

  const LedgerLock& lock() const { return *lock_; }
  LedgerFileSystem& files() { return *files_; }
  Database& database() { return database_; }
  // Schedules the compactions that wait for the start to be over.
  void LetCompactionsIn() { compactions_->LetIn(); }

  // Of Open.
  bool formatted_now() const { return formatted_now_; }
  bool may_lack_batches() const { return may_lack_; }
  uint64_t opened_batch() const { return opened_batch_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // The Env through which RocksDB uses the ledger's files.
  std::unique_ptr<rocksdb::Env> MakeEnv(const std::shared_ptr<rocksdb::Logger>& log);
  // Opens a ledger that is there.
  Status OpenPresent(rocksdb::DBOptions options);
  Status OpenNew(rocksdb::DBOptions options);
  // Notes what this open makes, and removes what one made that was cut off.
  Status MarkOpening();
  Status Format();

  const std::string dir_;
  const RocksStoreOptions options_;
  const std::function<void(const Status&)> report_;
  std::unique_ptr<LedgerLock> lock_;
  std::shared_ptr<LedgerFileSystem> files_;
  LateCompactions* compactions_ = nullptr;  // The database's env.
  Database database_;

  bool accepted_ = false;
  bool formatted_now_ = false;
  bool may_lack_ = false;
  uint64_t opened_batch_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_SERVER_LEDGER_H_
