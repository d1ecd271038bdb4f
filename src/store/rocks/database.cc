#include "store/rocks/database.h"

#include <algorithm>
#include <utility>

#include "store/rocks/rocks_options.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::store {
namespace {

using ledger::Family;

rocksdb::Slice AsSlice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

StoreError NotALedger(const std::string& dir, const std::string& what) {
  return {StoreError::Kind::kDamaged, "the ledger in " + dir + " " + what,
          ": restore it from a backup; was the directory copied while a server was running, or "
          "made by another program?"};
}

}  // namespace

StoreError ListFamilies(const rocksdb::DBOptions& options, const std::string& dir,
                        std::vector<std::string>* names) {
  return ErrorFromRocks(rocksdb::DB::ListColumnFamilies(options, dir, names), "read the manifest",
                        dir);
}

// The families share their memtables' factory: flushed tables hand their memory on.
Database::Database(std::string dir, size_t write_buffer_bytes)
    : dir_(std::move(dir)),
      write_buffer_bytes_(write_buffer_bytes),
      memtables_(std::make_shared<AppendMemtableFactory>(RocksStoreOptions().write_buffer_bytes)) {}

Database::~Database() { Close().PermitUncheckedError(); }

StoreError Database::Open(Access access, rocksdb::DBOptions options,
                          std::unique_ptr<rocksdb::Env> env, const std::vector<std::string>& names,
                          std::string_view doing) {
  env_ = std::move(env);
  if (env_ != nullptr) options.env = env_.get();
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.reserve(names.size());
  for (const std::string& name : names) {
    descriptors.emplace_back(name, FamilyOptions(write_buffer_bytes_, memtables_));
  }
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status =
      access == Access::kWrite
          ? rocksdb::DB::Open(options, dir_, descriptors, &handles_, &opened)
          : rocksdb::DB::OpenForReadOnly(options, dir_, descriptors, &handles_, &opened);
  db_.reset(opened);
  if (!status.ok()) handles_.clear();
  // RocksDB may call damage what it could not read.
  if (status.IsCorruption()) {
    if (StoreError unread = CheckAllRead(); !unread.ok()) return unread;
  }
  FindFamilies();
  return ErrorFromRocks(status, doing, dir_);
}

void Database::FindFamilies() {
  families_ = {};
  for (const auto& [family, name, keys, since] : ledger::kFamilies) {
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      if (handle->GetName() == name) families_[static_cast<size_t>(family)] = handle;
    }
  }
}

rocksdb::Status Database::Close() {
  if (db_ == nullptr) return {};
  // Handles go before the database, or its assertions fail.
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    db_->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  handles_.clear();
  families_ = {};
  rocksdb::Status status = db_->Close();
  db_.reset();
  return status;
}

StoreError Database::CheckAllRead() const {
  return failed_read_ ? ErrorFromRocks(failed_read_(), "read the ledger", dir_) : StoreError();
}

rocksdb::Status Database::GetMeta(std::string_view key, std::string* value) const {
  return db_->Get(rocksdb::ReadOptions(), HandleOf(Family::kMeta), AsSlice(key), value);
}

Result<bool> Database::IsEmpty(rocksdb::ColumnFamilyHandle* handle) const {
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), handle));
  it->SeekToFirst();
  if (!it->status().ok()) return FromRocks(it->status(), "read " + handle->GetName(), dir_);
  return !it->Valid();
}

Result<uint32_t> Database::FormatVersion() const {
  std::string value;
  const rocksdb::Status found = GetMeta(ledger::kFormatKey, &value);
  if (found.ok()) {
    const Result<ledger::Format> format = ledger::DecodeFormat(value);
    if (!format.ok()) return format.status().WithContext(dir_);
    return format->version;
  }
  if (!found.IsNotFound()) return FromRocks(found, "read the format record", dir_);
  // No record: fine in an empty database, which a killed start left. Records without it are damage.
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    const Result<bool> empty = IsEmpty(handle);
    if (!empty.ok()) return empty.status();
    if (!*empty) return NotALedger(dir_, "holds records but no format record").WithAdvice();
  }
  return uint32_t{0};
}

StoreError Database::CheckFamilies(uint32_t format_version) const {
  // 0, without a format record: as the first version.
  format_version = std::max(format_version, ledger::kFormatVersionMin);
  for (const auto& [family, name, keys, since] : ledger::kFamilies) {
    if (HandleOf(family) != nullptr || format_version < since) continue;
    return NotALedger(dir_, "lacks the column family '" + std::string(name) + "'");
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    if (std::find(families_.begin(), families_.end(), handle) != families_.end()) continue;
    return NotALedger(dir_, "has the unknown column family '" + handle->GetName() + "'");
  }
  return {};
}

FamilyNumbers Database::NumbersOfFamilies() const {
  FamilyNumbers numbers{};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const rocksdb::ColumnFamilyHandle* handle = families_[i];
    numbers[i] = handle == nullptr ? kNoFamilyNumber : handle->GetID();
  }
  return numbers;
}

Status Database::MakeFamilies() {
  for (const auto& [family, name, keys, since] : ledger::kFamilies) {
    if (HandleOf(family) != nullptr) continue;
    rocksdb::ColumnFamilyHandle* handle = nullptr;
    const rocksdb::Status made = db_->CreateColumnFamily(
        FamilyOptions(write_buffer_bytes_, memtables_), std::string(name), &handle);
    if (!made.ok()) return FromRocks(made, "make a column family", dir_);
    handles_.push_back(handle);
  }
  FindFamilies();
  return CheckFamilies(ledger::kFormatVersion);
}

Status Database::WriteFormat(const ledger::Format& format) {
  rocksdb::WriteBatch writes;
  rocksdb::Status written = writes.Put(HandleOf(Family::kMeta), AsSlice(ledger::kFormatKey),
                                       ledger::EncodeFormat(format));
  // Log data of no batch: the proof of batches counts the record of the format as none.
  if (written.ok()) written = writes.PutLogData(ledger::EncodeLogData(0));
  rocksdb::WriteOptions synced;
  synced.sync = true;
  if (written.ok()) written = db_->Write(synced, &writes);
  // Into a data file: a lost log must not make the ledger look like one never made.
  if (written.ok()) written = db_->Flush(rocksdb::FlushOptions(), HandleOf(Family::kMeta));
  return FromRocks(written, "write the format record", dir_);
}

Result<uint64_t> Database::SealedBatch() const {
  std::string value;
  const rocksdb::Status found = GetMeta(ledger::kSealKey, &value);
  if (found.IsNotFound()) return uint64_t{0};
  if (!found.ok()) return FromRocks(found, "read the seal", dir_);
  const Result<ledger::Seal> seal = ledger::DecodeSeal(value);
  if (!seal.ok()) return seal.status().WithContext(dir_);
  return seal->batch_number;
}

}  // namespace nowcalls::store
