#include "store/rocks/server_ledger.h"

#include <rocksdb/env.h>

#include <utility>

#include "base/clock.h"
#include "base/last_words.h"
#include "ledger/codec.h"
#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"
#include "store/log/log_end.h"
#include "store/rocks/batch_proof.h"
#include "store/rocks/rocks_options.h"

namespace nowcalls::store {

ServerLedger::ServerLedger(std::unique_ptr<LedgerLock> lock, const RocksStoreOptions& options,
                           std::function<void(const Status&)> report)
    : dir_(lock->ledger_dir()),
      options_(options),
      report_(std::move(report)),
      lock_(std::move(lock)),
      database_(dir_, options.write_buffer_bytes) {}

ServerLedger::~ServerLedger() { Close().PermitUncheckedError(); }

std::unique_ptr<rocksdb::Env> ServerLedger::MakeEnv(const std::shared_ptr<rocksdb::Logger>& log) {
  const std::shared_ptr<rocksdb::FileSystem> disk =
      options_.env != nullptr ? options_.env->GetFileSystem() : rocksdb::FileSystem::Default();
  files_ = std::make_shared<LedgerFileSystem>(
      disk, lock_.get(), SpareLogBytes(options_), log,
      [this](const rocksdb::IOStatus& failure, const std::string& doing) {
        report_(FromRocks(failure, doing, dir_));
      });
  auto env = std::make_unique<LateCompactions>(rocksdb::NewCompositeEnv(files_));
  compactions_ = env.get();
  // A compaction can wait; a commit and the loop cannot.
  env->LowerThreadPoolCPUPriority(rocksdb::Env::LOW, rocksdb::CpuPriority::kLow)
      .PermitUncheckedError();
  return env;
}

Status ServerLedger::Open() {
  const AssertionsMeanDamage reading;
  const rocksdb::DBOptions options = ServerDbOptions(options_, dir_, report_);
  const Status present = CheckLedgerPresent(dir_);
  if (present.ok()) return OpenPresent(options);
  return present.code() == StatusCode::kNotFound ? OpenNew(options) : present;
}

// Steps: note what this open makes, prove the logs, let RocksDB replay, prove the outcome.
// Failure at any step: Close undoes the open, and the directory stays as it was.
Status ServerLedger::OpenPresent(rocksdb::DBOptions options) {
  std::unique_ptr<rocksdb::Env> env = MakeEnv(options.info_log);
  rocksdb::FileSystem* const disk = files_->disk();
  NOWCALLS_RETURN_IF_ERROR(MarkOpening());
  // Before RocksDB looks: where do logs end, and is all that counts there?
  BatchProof proof(dir_);
  NOWCALLS_RETURN_IF_ERROR(proof.Prepare(disk));
  NOWCALLS_RETURN_IF_ERROR(CheckLogPresent(disk, dir_));
  // After a kill logs may not be on disk yet. A power cut must not shorten what is read and
  // accepted.
  if (proof.unsynced()) {
    NOWCALLS_RETURN_IF_ERROR(FromRocks(SyncLogs(disk, dir_), "sync the logs", dir_));
  }
  // RocksDB replays the shown logs and changes nothing that counts.
  files_->HideLogs(proof.hidden());
  database_.SetFailedRead([this] { return files_->views().FailedRead(); });
  files_->BeginOpen();
  options.env = env.get();
  std::vector<std::string> names;
  NOWCALLS_RETURN_IF_ERROR(ListFamilies(options, dir_, &names));
  const StoreError opened =
      database_.Open(Database::Access::kWrite, options, std::move(env), names, "open the ledger");
  files_->LogsRead();
  NOWCALLS_RETURN_IF_ERROR(opened);
  // A whole ledger, or one never finished.
  const Result<uint32_t> version = database_.FormatVersion();
  if (!version.ok()) return version.status();
  may_lack_ = proof.may_lack();
  if (*version == 0) {
    notes_.insert(notes_.end(), proof.notes().begin(), proof.notes().end());
    return Format();
  }
  NOWCALLS_RETURN_IF_ERROR(database_.CheckAllRead());
  NOWCALLS_RETURN_IF_ERROR(database_.CheckFamilies(*version));
  NOWCALLS_RETURN_IF_ERROR(proof.Check(database_, files_->views()));
  opened_batch_ = proof.last_batch();
  notes_.insert(notes_.end(), proof.notes().begin(), proof.notes().end());
  return {};
}

Status ServerLedger::OpenNew(rocksdb::DBOptions options) {
  std::unique_ptr<rocksdb::Env> env = MakeEnv(options.info_log);
  // A witness may be there without a ledger.
  BatchProof proof(dir_);
  NOWCALLS_RETURN_IF_ERROR(proof.Prepare(files_->disk()));
  may_lack_ = proof.may_lack();
  notes_ = proof.notes();
  options.create_if_missing = true;
  const StoreError made = database_.Open(Database::Access::kWrite, options, std::move(env),
                                         {rocksdb::kDefaultColumnFamilyName}, "open the ledger");
  files_->LogsRead();
  NOWCALLS_RETURN_IF_ERROR(made);
  return Format();
}

Status ServerLedger::MarkOpening() {
  std::vector<std::string> removed;
  const rocksdb::IOStatus marked = files_->MarkOpening(&removed);
  for (const std::string& name : removed) {
    notes_.push_back("removed " + dir_ + "/" + name + ", which a start made that was cut off");
  }
  return FromRocks(marked, "note what this start makes, or remove what one made", dir_);
}

// Making a ledger takes three steps: database, families, format record with a sync. A crash between
// two leaves an empty database, which the next open finishes.
Status ServerLedger::Format() {
  NOWCALLS_RETURN_IF_ERROR(Accept());
  NOWCALLS_RETURN_IF_ERROR(database_.MakeFamilies());
  ledger::Format format;
  format.token_id_key = RandomBits128();
  format.created_wall_ms = WallMs();
  NOWCALLS_RETURN_IF_ERROR(database_.WriteFormat(options_.format.value_or(format)));
  formatted_now_ = true;
  return {};
}

Status ServerLedger::Accept() {
  if (accepted_) return {};
  // The first batch skips fences that may have been given out. Until it is on disk, the next start
  // must know that, too.
  const bool unsynced = options_.durability != Durability::kSync || may_lack_;
  Status status =
      FromRocks(files_->Accept(opened_batch_, unsynced), "keep what was recovered", dir_);
  accepted_ = status.ok();
  return status;
}

// Order: no new spares, database, helper threads, undo, lock. The lock goes last.
rocksdb::Status ServerLedger::Close() {
  rocksdb::Status status;
  if (files_ != nullptr) files_->BeginStop();
  status = database_.Close();
  if (files_ != nullptr) {
    files_->StopHelpers();
    files_->Undo();
  }
  lock_.reset();
  return status;
}

}  // namespace nowcalls::store
