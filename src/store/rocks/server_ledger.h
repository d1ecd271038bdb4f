// ServerLedger: lock, file system and database of a served ledger. Opening is undone unless
// accepted (ledger_file_system.h).
//
// Thread: Open, Accept and Close as RocksStore's; parts as each says.
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
  // `report` hears of failures beside the calls, on their thread.
  ServerLedger(std::unique_ptr<LedgerLock> lock, const RocksStoreOptions& options,
               std::function<void(const Status&)> report);
  ~ServerLedger();
  ServerLedger(const ServerLedger&) = delete;
  ServerLedger& operator=(const ServerLedger&) = delete;

  // Opens and proves the ledger, or makes one. Once.
  Status Open();
  // See RocksStore::Accept. No-op after success.
  Status Accept();
  // Undoes an unaccepted open, unlocks.
  rocksdb::Status Close();

  const LedgerLock& lock() const { return *lock_; }
  LedgerFileSystem& files() { return *files_; }
  Database& database() { return database_; }
  void LetCompactionsIn() { compactions_->LetIn(); }

  // Of Open.
  bool formatted_now() const { return formatted_now_; }
  bool may_lack_batches() const { return may_lack_; }
  uint64_t opened_batch() const { return opened_batch_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::unique_ptr<rocksdb::Env> MakeEnv(const std::shared_ptr<rocksdb::Logger>& log);
  Status OpenPresent(rocksdb::DBOptions options);
  Status OpenNew(rocksdb::DBOptions options);
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
