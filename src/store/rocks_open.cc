// How a ledger is opened, made and closed.
//
// Opening one changes nothing that could not be undone, until Keep (see ledger_file_system.h).
//
// Making one is three steps, and a crash may fall between any two: RocksDB makes the database, the
// families are created, the format record is written with a sync. Until the third is done the
// ledger is empty, so an empty database without a format record is simply finished; one that holds
// anything is damaged.
#include <algorithm>

#include "base/clock.h"
#include "base/last_words.h"
#include "ledger/codec.h"
#include "store/frozen_files.h"
#include "store/ledger_files.h"
#include "store/log_chain.h"
#include "store/rocks_options.h"
#include "store/rocks_status.h"
#include "store/rocks_store_impl.h"
#include "store/witness_file.h"

namespace nowcalls::store {
namespace {

using ledger::Family;

constexpr int kReadAttemptsMax = 10;

const std::string& DefaultFamily() { return rocksdb::kDefaultColumnFamilyName; }

Result<std::vector<std::string>> ListFamilies(const rocksdb::DBOptions& options,
                                              const std::string& dir) {
  std::vector<std::string> names;
  const rocksdb::Status status = rocksdb::DB::ListColumnFamilies(options, dir, &names);
  if (!status.ok()) return FromRocks(status, "read the manifest", dir);
  return names;
}

Status Damaged(const std::string& dir, const std::string& what) {
  return Status::Corruption("the ledger in " + dir + " " + what +
                            ": restore it from a backup; was the directory copied while a server "
                            "was running, or made by another program?");
}

Status NeverFinished(const std::string& dir) {
  return Status::NotFound("the ledger in " + dir +
                          " was never finished: start the server once to finish it");
}

}  // namespace

RocksStore::Impl::~Impl() { CloseDb().PermitUncheckedError(); }

std::vector<rocksdb::ColumnFamilyDescriptor> RocksStore::Impl::Describe(
    const std::vector<std::string>& names) const {
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.reserve(names.size());
  for (const std::string& name : names) {
    descriptors.emplace_back(name, FamilyOptions(options.write_buffer_bytes, memtables));
  }
  return descriptors;
}

rocksdb::Status RocksStore::Impl::Adopt(const rocksdb::Status& status, rocksdb::DB* opened) {
  db.reset(opened);
  if (!status.ok()) handles.clear();
  for (const Family family : ledger::kAllFamilies) {
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      if (handle->GetName() == FamilyName(family)) families[static_cast<size_t>(family)] = handle;
    }
  }
  return status;
}

Status RocksStore::Impl::OpenForServer() {
  const AssertionsMeanDamage reading;
  const std::shared_ptr<rocksdb::FileSystem> real =
      options.env != nullptr ? options.env->GetFileSystem() : rocksdb::FileSystem::Default();
  RocksStoreOptions heard = options;
  heard.on_background_error = [this](const Status& failure) { FailInBackground(failure); };
  rocksdb::DBOptions db_options = ServerDbOptions(heard, dir);
  files = std::make_shared<LedgerFileSystem>(
      real, lock.get(), SpareLogBytes(options), db_options.info_log,
      [report = heard.on_background_error, where = dir](const rocksdb::IOStatus& failure,
                                                        const std::string& doing) {
        report(FromRocks(failure, doing, where));
      });
  auto late = std::make_unique<LateCompactions>(rocksdb::NewCompositeEnv(files));
  compactions = late.get();
  env = std::move(late);
  db_options.env = env.get();
  // A compaction can wait; who waits for a commit, or for the loop, cannot.
  env->LowerThreadPoolCPUPriority(rocksdb::Env::LOW, rocksdb::CpuPriority::kLow)
      .PermitUncheckedError();
  std::vector<std::string> names = {DefaultFamily()};
  Status present = CheckLedgerPresent(dir);
  if (present.ok()) {
    std::vector<std::string> removed;
    const rocksdb::IOStatus marked = files->MarkOpening(&removed);
    for (const std::string& name : removed) {
      notes.push_back("removed " + dir + "/" + name + ", which a start made that was cut off");
    }
    NOWCALLS_RETURN_IF_ERROR(
        FromRocks(marked, "note what this start makes, or remove what one made", dir));
  }
  if (present.ok() || present.code() == StatusCode::kNotFound) {
    NOWCALLS_RETURN_IF_ERROR(FindWitness(real.get()));
  }
  if (present.ok()) {
    NOWCALLS_RETURN_IF_ERROR(CheckLogPresent(real.get(), dir));
    // After a kill they may not be on the disk yet: what is read, and then kept, must not end
    // earlier when the power is cut meanwhile.
    if (witness.has_value() && witness->unsynced) {
      NOWCALLS_RETURN_IF_ERROR(FromRocks(SyncLogs(real.get(), dir), "sync the logs", dir));
    }
    files->HideLogs(log_end.hidden);
    files->BeginOpen();
    Result<std::vector<std::string>> listed = ListFamilies(db_options, dir);
    if (!listed.ok()) return listed.status();
    names = *std::move(listed);
  } else if (present.code() == StatusCode::kNotFound) {
    db_options.create_if_missing = true;
  } else {
    return present;
  }
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::Open(db_options, dir, Describe(names), &handles, &opened);
  files->LogsRead();
  NOWCALLS_RETURN_IF_ERROR(FromRocks(Adopt(status, opened), "open the ledger", dir));
  write_options = CommitOptions(options.durability);
  bool formatted = false;
  NOWCALLS_RETURN_IF_ERROR(CheckFormat(&formatted));
  return formatted ? CheckBatches(files->views()) : Format();
}

Status RocksStore::Impl::FindWitness(rocksdb::FileSystem* real) {
  std::optional<ledger::WitnessFound> found;
  const rocksdb::IOStatus read = ReadWitness(real, dir, &found);
  if (!read.ok()) return FromRocks(read, "read the witness", dir);
  if (found.has_value()) witness = found->witness;
  may_lack = found.has_value() && (!witness.has_value() || witness->unsynced);
  const std::string path = WitnessPath(dir);
  if (found.has_value() && !witness.has_value()) {
    notes.push_back(path +
                    " is damaged in both places: whether the ledger has lost its last batches "
                    "cannot be told; a server writes it anew");
  } else if (found.has_value() && found->damaged) {
    notes.push_back("one of two places in " + path +
                    " is damaged, as a power cut may leave it; the other is used");
  }
  NOWCALLS_RETURN_IF_ERROR(CheckManifest(real, dir, witness, &floor_counts));
  return FindEnd(real);
}

Status RocksStore::Impl::FindEnd(rocksdb::FileSystem* real) {
  if (!witness.has_value()) return {};
  const std::optional<uint64_t> floor = floor_counts ? std::optional(witness->floor) : std::nullopt;
  return FromRocks(FindLogEnd(real, dir, *witness, floor, &log_end), "read the logs", dir);
}

Status RocksStore::Impl::CheckEnd() {
  if (!log_end.early) return {};
  std::vector<rocksdb::LiveFileMetaData> tables;
  db->GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    if (!log_end.sequence.has_value() || table.largest_seqno <= *log_end.sequence) continue;
    return Status::Corruption("the ledger in " + dir + " has lost batches behind batch " +
                              std::to_string(log_end.batch) + ", " + log_end.place +
                              ": the data file " + table.relative_filename +
                              " has changes of them" + kDamagedAdvice);
  }
  // A server that was cut off while it kept what it had recovered has told of it.
  if (last_batch != log_end.batch) return {};
  notes.push_back("the ledger in " + dir + " ends with batch " + std::to_string(log_end.batch) +
                  ", " + log_end.place +
                  "; what followed is not whole, as a crash of the machine may leave it with the "
                  "durability interval or none, and is left out");
  return {};
}

Result<uint64_t> RocksStore::Impl::SealedBatch() const {
  std::string value;
  const rocksdb::Status found =
      db->Get(rocksdb::ReadOptions(), HandleOf(Family::kMeta),
              rocksdb::Slice(ledger::kSealKey.data(), ledger::kSealKey.size()), &value);
  if (found.IsNotFound()) return uint64_t{0};
  if (!found.ok()) return FromRocks(found, "read the seal", dir);
  const Result<ledger::Seal> seal = ledger::DecodeSeal(value);
  if (!seal.ok()) return seal.status().WithContext(dir);
  return seal->batch_number;
}

Status RocksStore::Impl::CheckBatches(const LogViews& logs) {
  std::map<uint64_t, LogSegment> segments;
  NOWCALLS_RETURN_IF_ERROR(FromRocks(logs.FindSegments(dir, &segments), "read the logs", dir));
  const Result<uint64_t> sealed = SealedBatch();
  // A seal that cannot be read is for whoever loads the ledger to tell.
  if (sealed.status().code() == StatusCode::kCorruption) return {};
  if (!sealed.ok()) return sealed.status();
  last_batch = *sealed;
  KnownBatches known;
  known.sealed = last_batch;
  if (witness.has_value()) known.witnessed = witness->batch_number;
  if (floor_counts) known.floor = witness->floor;
  NOWCALLS_RETURN_IF_ERROR(CheckChain(dir, segments, known));
  return CheckEnd();
}

Status RocksStore::Impl::KeepOpened() {
  if (kept) return {};
  // Fences that may have been given out already are skipped by the first batch; until that is on
  // the disk, the next start must know of them.
  const bool unsynced = options.durability != Durability::kSync || may_lack;
  Status status = FromRocks(files->Keep(last_batch, unsynced), "keep what was recovered", dir);
  kept = status.ok();
  return status;
}

Status RocksStore::Impl::OpenReadOnly(const std::shared_ptr<rocksdb::FileSystem>& shown) {
  NOWCALLS_RETURN_IF_ERROR(CheckLogPresent(shown.get(), dir));
  NOWCALLS_RETURN_IF_ERROR(FindWitness(shown.get()));
  views = std::make_shared<LogViews>(shown, LogViews::State::kAtRest);
  views->Hide(log_end.hidden);
  env = rocksdb::NewCompositeEnv(views);
  rocksdb::DBOptions db_options = ReaderDbOptions();
  db_options.env = env.get();
  const Result<std::vector<std::string>> names = ListFamilies(db_options, dir);
  if (!names.ok()) return names.status();
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status =
      rocksdb::DB::OpenForReadOnly(db_options, dir, Describe(*names), &handles, &opened);
  views->EndReading();
  return FromRocks(Adopt(status, opened), "open the ledger for reading", dir);
}

Status RocksStore::Impl::OpenAtRest() {
  read_mode = ReadMode::kAtRest;
  return OpenReadOnly(rocksdb::FileSystem::Default());
}

Status RocksStore::Impl::OpenBesideServer() {
  read_mode = ReadMode::kBesideServer;
  const Result<std::shared_ptr<FrozenFiles>> frozen = FrozenFiles::Take(dir);
  if (!frozen.ok()) return frozen.status();
  return OpenReadOnly(*frozen);
}

Result<bool> RocksStore::Impl::IsEmpty(rocksdb::ColumnFamilyHandle* handle) const {
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(rocksdb::ReadOptions(), handle));
  it->SeekToFirst();
  if (!it->status().ok()) return FromRocks(it->status(), "read " + handle->GetName(), dir);
  return !it->Valid();
}

Status RocksStore::Impl::CheckFormat(bool* formatted) {
  std::string value;
  const rocksdb::Status found =
      db->Get(rocksdb::ReadOptions(), HandleOf(Family::kMeta),
              rocksdb::Slice(ledger::kFormatKey.data(), ledger::kFormatKey.size()), &value);
  *formatted = found.ok();
  if (found.ok()) {
    NOWCALLS_RETURN_IF_ERROR(ledger::DecodeFormat(value).status().WithContext(dir));
    return CheckFamilyNames();
  }
  if (!found.IsNotFound()) return FromRocks(found, "read the format record", dir);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    const Result<bool> empty = IsEmpty(handle);
    if (!empty.ok()) return empty.status();
    if (!*empty) return Damaged(dir, "holds records but no format record");
  }
  return {};
}

Status RocksStore::Impl::CheckFamilyNames() {
  for (const Family family : ledger::kAllFamilies) {
    if (HandleOf(family) != nullptr) {
      family_numbers[static_cast<size_t>(family)] = HandleOf(family)->GetID();
      continue;
    }
    return Damaged(dir, "lacks the column family '" + std::string(FamilyName(family)) + "'");
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    if (std::find(families.begin(), families.end(), handle) != families.end()) continue;
    return Damaged(dir, "has the unknown column family '" + handle->GetName() + "'");
  }
  return {};
}

Status RocksStore::Impl::Format() {
  NOWCALLS_RETURN_IF_ERROR(KeepOpened());
  for (const Family family : ledger::kAllFamilies) {
    if (HandleOf(family) != nullptr) continue;
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    const rocksdb::Status created =
        db->CreateColumnFamily(FamilyOptions(options.write_buffer_bytes, memtables),
                               std::string(FamilyName(family)), &handle);
    if (!created.ok()) return FromRocks(created, "make a column family", dir);
    handles.push_back(handle);
    families[static_cast<size_t>(family)] = handle;
  }
  NOWCALLS_RETURN_IF_ERROR(CheckFamilyNames());
  ledger::Format format;
  format.token_id_key = RandomBits128();
  format.created_wall_ms = WallMs();
  if (options.format.has_value()) format = *options.format;
  rocksdb::WriteBatch writes;
  rocksdb::Status written = writes.Put(
      HandleOf(Family::kMeta), rocksdb::Slice(ledger::kFormatKey.data(), ledger::kFormatKey.size()),
      ledger::EncodeFormat(format));
  if (written.ok()) written = writes.PutLogData(ledger::EncodeLogData(0));
  rocksdb::WriteOptions synced;
  synced.sync = true;
  if (written.ok()) written = db->Write(synced, &writes);
  if (!written.ok()) return FromRocks(written, "write the format record", dir);
  // Into a data file, so that a lost log cannot make a ledger look like one that was never made.
  const rocksdb::Status flushed = db->Flush(rocksdb::FlushOptions(), HandleOf(Family::kMeta));
  if (!flushed.ok()) return FromRocks(flushed, "write the format record", dir);
  formatted_now = true;
  return {};
}

rocksdb::Status RocksStore::Impl::CloseDb() {
  rocksdb::Status status;
  cursor.reset();
  if (db != nullptr) {
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    handles.clear();
    families = {};
    if (files != nullptr) files->BeginStop();
    status = db->Close();
    db.reset();
  }
  if (files != nullptr) {
    files->StopHelpers();
    files->Undo();
  }
  lock.reset();
  return status;
}

Result<std::unique_ptr<RocksStore>> RocksStore::Open(std::unique_ptr<LedgerLock> lock,
                                                     const RocksStoreOptions& options) {
  auto impl = std::make_unique<Impl>(lock->ledger_dir());
  impl->options = options;
  impl->lock = std::move(lock);
  NOWCALLS_RETURN_IF_ERROR(impl->OpenForServer());
  return std::unique_ptr<RocksStore>(new RocksStore(std::move(impl)));
}

Result<std::unique_ptr<RocksStore>> RocksStore::Open(const std::string& data_dir,
                                                     const RocksStoreOptions& options) {
  Result<std::unique_ptr<LedgerLock>> lock = LedgerLock::Take(data_dir);
  if (!lock.ok()) return lock.status();
  return Open(*std::move(lock), options);
}

Result<std::unique_ptr<RocksStore>> RocksStore::OpenCopy(const std::string& dir) {
  auto impl = std::make_unique<Impl>(dir);
  impl->for_read = true;
  impl->for_salvage = true;
  const rocksdb::DBOptions db_options = ReaderDbOptions();
  const Result<std::vector<std::string>> names = ListFamilies(db_options, dir);
  if (!names.ok()) return names.status();
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(
      db_options, dir, impl->Describe(*names), &impl->handles, &opened);
  NOWCALLS_RETURN_IF_ERROR(
      FromRocks(impl->Adopt(status, opened), "open a copy of the ledger", dir));
  NOWCALLS_RETURN_IF_ERROR(impl->CheckFamilyNames());
  return std::unique_ptr<RocksStore>(new RocksStore(std::move(impl)));
}

Result<std::unique_ptr<RocksStore>> RocksStore::OpenForRead(const std::string& data_dir) {
  NOWCALLS_RETURN_IF_ERROR(CheckDataDir(data_dir));
  const AssertionsMeanDamage reading;
  const std::string dir = LedgerDir(data_dir);
  for (int attempt = 1;; ++attempt) {
    NOWCALLS_RETURN_IF_ERROR(CheckLedgerPresent(dir));
    const Result<LedgerHolder> holder = FindLedgerHolder(data_dir);
    if (!holder.ok()) return holder.status();
    const std::string before = ManifestState(dir);
    auto impl = std::make_unique<Impl>(dir);
    impl->for_read = true;
    const bool held = holder->pid != 0;
    Status opened = held ? impl->OpenBesideServer() : impl->OpenAtRest();
    bool formatted = false;
    if (opened.ok()) opened = impl->CheckFormat(&formatted);
    if (opened.ok() && formatted) opened = impl->CheckBatches(*impl->views);
    // A server that started meanwhile may have taken files away under the open.
    bool disturbed = !held && ManifestState(dir) != before;
    if (!held && !disturbed && !opened.ok()) {
      const Result<LedgerHolder> now = FindLedgerHolder(data_dir);
      disturbed = now.ok() && now->pid != 0;
    }
    if (disturbed && attempt < kReadAttemptsMax) continue;
    if (!opened.ok()) return opened;
    if (!formatted) return NeverFinished(dir);
    if (IsBackupWithoutManifest(data_dir)) {
      impl->notes.push_back(CheckNoBackup(data_dir).message());
    }
    return std::unique_ptr<RocksStore>(new RocksStore(std::move(impl)));
  }
}

Result<std::unique_ptr<RocksStore>> RocksStore::OpenForRead(const LedgerLock& lock) {
  const AssertionsMeanDamage reading;
  auto impl = std::make_unique<Impl>(lock.ledger_dir());
  NOWCALLS_RETURN_IF_ERROR(CheckLedgerPresent(impl->dir));
  impl->for_read = true;
  NOWCALLS_RETURN_IF_ERROR(impl->OpenAtRest());
  bool formatted = false;
  NOWCALLS_RETURN_IF_ERROR(impl->CheckFormat(&formatted));
  if (!formatted) return NeverFinished(impl->dir);
  NOWCALLS_RETURN_IF_ERROR(impl->CheckBatches(*impl->views));
  return std::unique_ptr<RocksStore>(new RocksStore(std::move(impl)));
}

}  // namespace nowcalls::store
