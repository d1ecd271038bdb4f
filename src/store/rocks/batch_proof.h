// BatchProof: proves, while a ledger is opened, that none of its batches is lost.
//
// The witness and the lengths of the logs are read before RocksDB opens the ledger, since they
// decide which logs RocksDB is shown. What was opened is compared with them afterwards. FORMAT.md
// has the rules; log_chain.h and log_end.h apply them.
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

  // Before the open: reads the witness, checks the manifest and finds where the logs end. `files`
  // shows the ledger. kCorruption, kIoError.
  Status Prepare(rocksdb::FileSystem* files);
  // The logs, and parts of logs, that are not of the ledger. RocksDB must not see them.
  const HiddenLogs& hidden() const { return end_.hidden; }
  // Whether later batches may have been answered before they were on the disk.
  bool unsynced() const { return witness_.has_value() && witness_->unsynced; }
  // See Log::MayLackBatches.
  bool may_lack() const { return may_lack_; }

  // After the open: compares what was opened with the logs that `logs` has shown. kCorruption,
  // kIoError. REQUIRES: the database has a format record.
  Status Check(const Database& database, const LogViews& logs);
  // The last batch of the ledger. REQUIRES: Check is ok.
  uint64_t last_batch() const { return last_batch_; }

  // What an operator should know though nothing was refused, as sentences.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Status ReadWitness(rocksdb::FileSystem* files);
  // No data file may hold changes of batches that the logs were found not to have.
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
