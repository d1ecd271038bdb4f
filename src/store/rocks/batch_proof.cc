#include "store/rocks/batch_proof.h"

#include <map>
#include <utility>

#include "store/disk/store_error.h"
#include "store/disk/witness_file.h"
#include "store/log/log_chain.h"

namespace nowcalls::store {

Status BatchProof::ReadWitness(rocksdb::FileSystem* files) {
  std::optional<ledger::WitnessFound> found;
  const rocksdb::IOStatus read = store::ReadWitness(files, dir_, &found);
  if (!read.ok()) return FromRocks(read, "read the witness", dir_);
  // A ledger without a witness is accepted.
  if (!found.has_value()) return {};
  witness_ = found->witness;
  // No sound slot: any loss is possible.
  may_lack_ = !witness_.has_value() || witness_->unsynced;
  const std::string path = WitnessPath(dir_);
  if (!witness_.has_value()) {
    notes_.push_back(path +
                     " is damaged in both places: whether the ledger has lost its last batches "
                     "cannot be told; a server writes it anew");
  } else if (found->damaged) {
    notes_.push_back("one of two places in " + path +
                     " cannot be read, or is not whole, as a power cut may leave it; the other is "
                     "used");
  }
  return {};
}

// Order: the witness and the logs' lengths first, since they decide which logs RocksDB is shown.
Status BatchProof::Prepare(rocksdb::FileSystem* files) {
  NOWCALLS_RETURN_IF_ERROR(ReadWitness(files));
  NOWCALLS_RETURN_IF_ERROR(CheckManifest(files, dir_, witness_, &floor_counts_));
  if (!witness_.has_value()) return {};
  const std::optional<uint64_t> floor =
      floor_counts_ ? std::optional(witness_->floor) : std::nullopt;
  return FromRocks(FindLogEnd(files, dir_, *witness_, floor, &end_), "read the logs", dir_);
}

Status BatchProof::Check(const Database& database, const LogViews& logs) {
  std::map<uint64_t, LogSegment> segments;
  NOWCALLS_RETURN_IF_ERROR(FromRocks(logs.FindSegments(dir_, &segments), "read the logs", dir_));
  const Result<uint64_t> sealed = database.SealedBatch();
  // The load reports a seal that does not decode.
  if (sealed.status().code() == StatusCode::kCorruption) return {};
  if (!sealed.ok()) return sealed.status();
  last_batch_ = *sealed;
  KnownBatches known;
  known.sealed = last_batch_;
  if (witness_.has_value()) known.witnessed = witness_->batch_number;
  if (floor_counts_) known.floor = witness_->floor;
  NOWCALLS_RETURN_IF_ERROR(CheckChain(dir_, segments, known));
  // An early end: data files must not be ahead of it, or changes of lost batches would be mixed in.
  return end_.early ? CheckTables(database) : Status::Ok();
}

// No data file may hold changes of batches that the logs lack.
Status BatchProof::CheckTables(const Database& database) {
  std::vector<rocksdb::LiveFileMetaData> tables;
  database.db()->GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    if (!end_.sequence.has_value() || table.largest_seqno <= *end_.sequence) continue;
    return StoreError::Damaged("the ledger in " + dir_ + " has lost batches behind batch " +
                               std::to_string(end_.batch) + ", " + end_.place + ": the data file " +
                               table.relative_filename + " has changes of them");
  }
  // A server killed while it accepted its recovery has reported the end before.
  if (last_batch_ != end_.batch) return {};
  notes_.push_back("the ledger in " + dir_ + " ends with batch " + std::to_string(end_.batch) +
                   ", " + end_.place +
                   "; what followed is not whole, as a crash of the machine may leave it with the "
                   "durability interval or none, and is left out");
  return {};
}

}  // namespace nowcalls::store
