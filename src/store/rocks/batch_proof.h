// BatchProof: proves during an open that no batch of the ledger is lost (FORMAT.md, log_chain.h,
// log_end.h).
//
// Thread: one.
#ifndef NOWCALLS_STORE_ROCKS_BATCH_PROOF_H_
#define NOWCALLS_STORE_ROCKS_BATCH_PROOF_H_

#include <rocksdb/file_system.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/witness.h"
#include "nowcalls/status.h"
#include "store/log/log_end.h"
#include "store/log/log_views.h"
#include "store/rocks/database.h"

namespace nowcalls::store {

class BatchProof {
 public:
  explicit BatchProof(std::string ledger_dir) : dir_(std::move(ledger_dir)) {}

  // Before the open: reads the witness, checks the manifest, finds the logs' end. `files` shows the
  // ledger. kCorruption, kIoError.
  Status Prepare(rocksdb::FileSystem* files);
  // Logs, and tails of logs, that RocksDB must not see.
  const HiddenLogs& hidden() const { return end_.hidden; }
  // Whether later batches may have been answered unsynced.
  bool unsynced() const { return witness_.has_value() && witness_->unsynced; }
  // See Log::MayLackBatches.
  bool may_lack() const { return may_lack_; }

  // After the open: compares the database with the logs that `logs` has shown. kCorruption,
  // kIoError. REQUIRES: a format record.
  Status Check(const Database& database, const LogViews& logs);
  // The ledger's last batch. REQUIRES: Check is ok.
  uint64_t last_batch() const { return last_batch_; }

  // As RocksStore::notes.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Status ReadWitness(rocksdb::FileSystem* files);
  Status CheckTables(const Database& database);

  const std::string dir_;
  std::optional<ledger::Witness> witness_;
  bool floor_counts_ = false;  // The witness means this manifest.
  bool may_lack_ = false;
  LogEnd end_;
  uint64_t last_batch_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_BATCH_PROOF_H_
