#include "store/salvage/salvage.h"

#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/last_words.h"
#include "base/os_error.h"
#include "store/disk/file_copy.h"
#include "store/disk/file_names.h"
#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"
#include "store/disk/witness_file.h"
#include "store/log/log_chain.h"
#include "store/log/log_views.h"
#include "store/rocks/database.h"
#include "store/rocks/rocks_options.h"
#include "store/salvage/log_salvage.h"
#include "store/salvage/trial.h"

// Of a log, every complete and sound record counts, also behind damage. If RocksDB opens the copy
// with these logs, each family is its data files and the logs from its own point on. If not,
// readable data files become a database, and all logs are applied again behind them.

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using ledger::Family;

constexpr size_t kCopyPieceBytes = 256 * 1024;

std::string BatchRange(uint64_t first, uint64_t last) {
  if (first == last) return "batch " + std::to_string(first);
  return "batches " + std::to_string(first) + " to " + std::to_string(last);
}

std::string BytesOf(const std::string& path, const SkippedBytes& bytes) {
  return path + ": bytes " + std::to_string(bytes.begin) + " to " + std::to_string(bytes.end - 1);
}

// Files besides logs that RocksDB needs.
bool IsCopied(std::string_view name) {
  return IsTable(name) || name == "CURRENT" || name == "IDENTITY" || name.starts_with("MANIFEST-");
}

std::vector<std::string> ManifestsIn(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("MANIFEST-")) names.push_back(name);
  }
  return names;
}

bool IsOutOfFiles(int error) { return error == EMFILE || error == ENFILE; }

// A failure of the work in a Try is damage. Other errors of a Try are its child's: the system
// refused, and sound files would be lost by a wrong verdict.
StoreError AsDamage(const StoreError& error) {
  if (error.ok() || error.Is(StoreError::Kind::kOutOfFiles)) return error;
  return StoreError::Damaged(error.what());
}

// Opens and reads the data file in a process of its own: RocksDB's assertions end it where the last
// blocks are damaged. Unreadable parts in between do not count.
TrialEnd TryTable(const std::string& path) {
  return Try([&](const Tell&) -> StoreError {
    rocksdb::SstFileReader reader{rocksdb::Options()};
    const rocksdb::Status opened = reader.Open(path);
    if (!opened.ok()) return AsDamage(ErrorFromRocks(opened, "read the ledger", path));
    const std::unique_ptr<rocksdb::Iterator> it(reader.NewIterator(rocksdb::ReadOptions()));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
    }
    it->status().PermitUncheckedError();
    return {};
  });
}

// Looks at everything and keeps nothing.
class Onlooker : public ledger::EntityVisitor {
 public:
  Status OnEntity(const ledger::Entity& /*entity*/) override { return {}; }
  Status OnBadRecord(const ledger::BadRecord& /*record*/) override { return {}; }
  Status OnUnreadable(Family /*family*/, Status /*what*/) override { return {}; }
};

// Whether this process will survive reading the copy.
StoreError OpenAndLoad(const std::string& scratch_dir, const std::string& dir) {
  SalvagedLedger ledger(scratch_dir, dir);
  StoreError error = ledger.Open();
  if (!error.ok()) return error;
  Onlooker onlooker;
  const Status loaded = ledger.Load(&onlooker);
  if (loaded.ok()) return error;
  const bool damaged = loaded.code() == StatusCode::kCorruption;
  return {damaged ? StoreError::Kind::kDamaged : StoreError::Kind::kIo, loaded.message(), ""};
}

// Gives changes of logged batches the family numbers of another database.
class Translator : public rocksdb::WriteBatch::Handler {
 public:
  explicit Translator(const FamilyHandles& families) : families_(families) {}

  rocksdb::Status PutCF(uint32_t family, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    return family < families_.size() ? writes.Put(families_[family], key, value) : Unknown();
  }
  rocksdb::Status DeleteCF(uint32_t family, const rocksdb::Slice& key) override {
    return family < families_.size() ? writes.Delete(families_[family], key) : Unknown();
  }
  // An ordinary deletion: the data files may have the key, and a replayed log puts it again. A
  // single deletion removes only the last put.
  rocksdb::Status SingleDeleteCF(uint32_t family, const rocksdb::Slice& key) override {
    return DeleteCF(family, key);
  }
  void LogData(const rocksdb::Slice& /*blob*/) override {}

  rocksdb::WriteBatch writes;

 private:
  static rocksdb::Status Unknown() { return rocksdb::Status::Corruption("an unknown family"); }

  const FamilyHandles& families_;
};

// Accepts changes of any family.
class AnyChanges : public rocksdb::WriteBatch::Handler {
 public:
  rocksdb::Status PutCF(uint32_t /*family*/, const rocksdb::Slice& /*key*/,
                        const rocksdb::Slice& /*value*/) override {
    return rocksdb::Status::OK();
  }
  rocksdb::Status DeleteCF(uint32_t /*family*/, const rocksdb::Slice& /*key*/) override {
    return rocksdb::Status::OK();
  }
  rocksdb::Status SingleDeleteCF(uint32_t /*family*/, const rocksdb::Slice& /*key*/) override {
    return rocksdb::Status::OK();
  }
  void LogData(const rocksdb::Slice& /*blob*/) override {}
};

// RocksDB refuses a whole log for one sound record that is no batch.
bool IsBatch(std::string_view record) {
  AnyChanges changes;
  return rocksdb::WriteBatch(std::string(record)).Iterate(&changes).ok();
}

class Salvager {
 public:
  Salvager(std::string dir, std::string scratch, SalvageReport* report)
      : dir_(std::move(dir)), scratch_(std::move(scratch)), report_(*report) {}

  Status Copy();
  // kDamaged unless the manifest is whole, as far as the witness knows. REQUIRES: Copy.
  StoreError CheckManifestWhole() const;
  // Makes a database of the copy; tells of losses.
  StoreError Rebuild(const Tell& tell);

 private:
  void Lose(std::string what) { report_.lost.push_back(std::move(what)); }
  // kIoError if this user may not read a file: such a file is not lost.
  Status CheckMayRead() const;
  // An unreadable file is lost. An unwritable copy ends the salvage.
  Status CopyFile(const std::string& name);
  Status CheckRoomForIt() const;
  Status CopyLog(const std::string& path);
  // Reports batches between the last one read and `next` as lost.
  void TellGap(const std::string& path, const std::optional<uint64_t>& next);
  void FindWitnessed();
  StoreError ApplyLogs(rocksdb::DB* db, const FamilyHandles& families);

  const std::string dir_;
  const std::string scratch_;
  SalvageReport& report_;
  std::optional<uint64_t> last_batch_;  // Last batch read.
  std::optional<SkippedBytes> skipped_;
  std::optional<ledger::Witness> witness_;
};

Status Salvager::CheckMayRead() const {
  std::error_code error;
  for (fs::directory_iterator it(dir_, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path();
    if (!IsLog(path) && !IsCopied(it->path().filename().string()) && path != WitnessPath(dir_)) {
      continue;
    }
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) close(fd);
    if (fd >= 0 || (errno != EACCES && errno != EPERM)) continue;
    const Status refused = OsError("open", path);
    return Status::IoError(refused.message() +
                           "; what may not be read would be lost: repair as a user who may read "
                           "the whole ledger");
  }
  return {};
}

Status Salvager::CopyFile(const std::string& name) {
  const std::string from = dir_ + "/" + name;
  const std::string to = scratch_ + "/" + name;
  const StoreError opened = IsTable(name) ? TryTable(from).error : StoreError();
  if (opened.Is(StoreError::Kind::kDamaged)) {
    Lose(from + ": the data file cannot be read, and is left out");
    return {};
  }
  if (!opened.ok()) return opened;
  Result<FileWriter> writer = FileWriter::Create(to);
  if (!writer.ok()) return writer.status();
  std::ifstream file(from, std::ios::binary);
  // Out of descriptors is no damage: the file would be lost for no reason.
  if (!file && IsOutOfFiles(errno)) return ErrorFromSystem(errno, "read the ledger", from);
  std::vector<char> piece(kCopyPieceBytes);
  while (file.good()) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    NOWCALLS_RETURN_IF_ERROR(writer->Append({piece.data(), static_cast<size_t>(file.gcount())}));
  }
  NOWCALLS_RETURN_IF_ERROR(writer->Finish().status());
  if (file.eof() && !file.bad()) return {};
  std::error_code ignored;
  fs::remove(to, ignored);
  Lose(from + ": the file cannot be read, and is left out");
  return {};
}

void Salvager::TellGap(const std::string& path, const std::optional<uint64_t>& next) {
  std::string batches;
  const bool gap = next.has_value() && last_batch_.has_value() && *next > *last_batch_ + 1;
  const bool is_one = gap && *next == *last_batch_ + 2;
  if (gap) batches = BatchRange(*last_batch_ + 1, *next - 1);
  if (skipped_.has_value()) {
    Lose(BytesOf(path, *skipped_) + " are no sound record" +
         (gap ? ", " + batches + (is_one ? " is" : " are") + " missing there" : ""));
  } else if (gap) {
    Lose(batches + ": in no log, before " + path);
  }
  skipped_.reset();
}

Status Salvager::CopyLog(const std::string& path) {
  std::string sound;
  const auto show = [&](const SalvagedRecord& record) {
    TellGap(path, record.batch);
    if (!IsBatch(record.bytes)) {
      return Lose(BytesOf(path, {record.begin, record.end}) + " are a sound record, but no batch");
    }
    AppendLogRecord(record.bytes, &sound);
    if (record.batch.has_value()) last_batch_ = record.batch;
  };
  const StoreError read =
      SalvageLog(path, show, [&](const SkippedBytes& skipped) { skipped_ = skipped; });
  TellGap(path, std::nullopt);
  if (read.Is(StoreError::Kind::kOutOfFiles)) return read;
  if (!read.ok()) Lose(read.what());
  if (last_batch_.has_value()) {
    report_.newest_batch = std::max(report_.newest_batch, *last_batch_);
  }
  // The copied log holds sound batches only.
  Result<FileWriter> writer =
      FileWriter::Create(scratch_ + "/" + fs::path(path).filename().string());
  if (!writer.ok()) return writer.status();
  NOWCALLS_RETURN_IF_ERROR(writer->Append(sound));
  return writer->Finish().status();
}

void Salvager::FindWitnessed() {
  std::optional<ledger::WitnessFound> found;
  const rocksdb::IOStatus read = ReadWitness(rocksdb::FileSystem::Default().get(), dir_, &found);
  if (!read.ok() || !found.has_value() || !found->witness.has_value()) return;
  witness_ = found->witness;
  report_.newest_batch = witness_->batch_number;
  // Batches behind the floor should all be in the logs.
  const uint64_t manifest = ManifestNumber(CurrentManifest(dir_));
  if (manifest != 0 && manifest <= witness_->manifest) last_batch_ = witness_->floor;
}

StoreError Salvager::CheckManifestWhole() const {
  bool floor_counts = false;
  return CheckManifest(rocksdb::FileSystem::Default().get(), dir_, witness_, &floor_counts);
}

// The new ledger is about as large as the copy.
Status Salvager::CheckRoomForIt() const {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator it(dir_, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!IsLog(it->path().string()) && !IsCopied(it->path().filename().string())) continue;
    if (it->is_regular_file(ignored)) bytes += it->file_size(ignored);
  }
  return CheckRoom(scratch_, 2 * bytes);
}

Status Salvager::Copy() {
  // Order: may all be read, is there room, data files, then logs by number: gaps show between
  // neighbours.
  std::error_code error;
  if (!fs::create_directory(scratch_, error)) {
    return CannotMakeDirectory(scratch_, error.value());
  }
  NOWCALLS_RETURN_IF_ERROR(CheckMayRead());
  NOWCALLS_RETURN_IF_ERROR(CheckRoomForIt());
  std::map<uint64_t, std::string> logs;
  for (fs::directory_iterator it(dir_, error), end; !error && it != end; it.increment(error)) {
    const std::string path = it->path();
    const std::string name = it->path().filename();
    if (IsLog(path)) logs.emplace(LogNumber(path), path);
    if (IsCopied(name)) NOWCALLS_RETURN_IF_ERROR(CopyFile(name));
  }
  if (error) return Status::IoError("cannot read directory " + dir_ + ": " + error.message());
  FindWitnessed();
  const StoreError logged = CheckLogPresent(rocksdb::FileSystem::Default().get(), dir_);
  if (logged.Is(StoreError::Kind::kDamaged)) Lose(logged.what());
  for (const auto& [number, path] : logs) {
    // Obsolete logs may hold lost batches whose numbers were given again.
    if (witness_.has_value() && number < witness_->first_log) continue;
    NOWCALLS_RETURN_IF_ERROR(CopyLog(path));
  }
  return {};
}

StoreError Salvager::ApplyLogs(rocksdb::DB* db, const FamilyHandles& families) {
  std::map<uint64_t, std::string> logs;
  for (const auto& entry : fs::directory_iterator(scratch_ + "/logs")) {
    logs.emplace(LogNumber(entry.path().string()), entry.path());
  }
  StoreError failed;
  for (const auto& [number, path] : logs) {
    const auto apply = [&](const SalvagedRecord& record) {
      Translator translator(families);
      rocksdb::Status status = rocksdb::WriteBatch(std::string(record.bytes)).Iterate(&translator);
      if (status.ok()) status = db->Write(rocksdb::WriteOptions(), &translator.writes);
      if (!status.ok()) failed = ErrorFromRocks(status, "apply a log", scratch_);
    };
    StoreError read = SalvageLog(path, apply, [](const SkippedBytes&) {});
    if (!read.ok()) return read;
  }
  return failed;
}

StoreError Salvager::Rebuild(const Tell& tell) {
  // RocksDB could not read the manifest and must not look at it.
  for (const std::string& name : ManifestsIn(scratch_)) fs::remove(scratch_ + "/" + name);
  fs::remove(scratch_ + "/CURRENT");
  // Move logs aside: RepairDB drops their records of a family without a data file.
  fs::create_directory(scratch_ + "/logs");
  std::vector<fs::path> logs;
  for (const auto& entry : fs::directory_iterator(scratch_)) {
    if (IsLog(entry.path().string())) logs.push_back(entry.path());
  }
  for (const fs::path& log : logs) fs::rename(log, fs::path(scratch_) / "logs" / log.filename());
  // Let RocksDB make a database of the data files, and note those set aside.
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.reserve(ledger::kFamilyCount);
  for (const ledger::FamilyRow& row : ledger::kFamilies) {
    descriptors.emplace_back(std::string(row.name), rocksdb::ColumnFamilyOptions());
  }
  rocksdb::DBOptions options = ReaderDbOptions();
  const rocksdb::Status repaired =
      rocksdb::RepairDB(scratch_, options, descriptors, rocksdb::ColumnFamilyOptions());
  if (!repaired.ok()) return ErrorFromRocks(repaired, "rebuild a copy of the ledger", scratch_);
  std::error_code ignored;
  for (fs::directory_iterator it(scratch_ + "/lost", ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    if (!IsTable(it->path().filename().string())) continue;
    tell(dir_ + "/" + it->path().filename().string() + ": the data file cannot be used");
  }
  // Open it for writing, and apply all logs behind the data files.
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(options, scratch_, descriptors, &handles, &raw);
  if (!opened.ok()) return ErrorFromRocks(opened, "open a copy of the ledger", scratch_);
  const std::unique_ptr<rocksdb::DB> db(raw);
  FamilyHandles families{};
  std::copy_n(handles.begin(), families.size(), families.begin());
  StoreError error = ApplyLogs(db.get(), families);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  const rocksdb::Status closed = db->Close();
  return error.ok() ? ErrorFromRocks(closed, "close a copy of the ledger", scratch_) : error;
}

}  // namespace

Result<std::unique_ptr<SalvagedLedger>> OpenSalvaged(const std::string& data_dir,
                                                     const std::string& scratch_dir,
                                                     SalvageReport* report) {
  const AssertionsMeanDamage reading;
  const std::string dir = LedgerDir(data_dir);
  Salvager salvager(dir, scratch_dir, report);
  NOWCALLS_RETURN_IF_ERROR(salvager.Copy());
  // First as it is. RocksDB would open a manifest that is cut short, as an earlier state of the
  // ledger.
  StoreError error = AsDamage(salvager.CheckManifestWhole());
  if (error.ok()) {
    error = Try([&](const Tell&) { return AsDamage(OpenAndLoad(scratch_dir, dir)); }).error;
  }
  if (!error.ok() && !error.Is(StoreError::Kind::kDamaged)) return error.WithAdvice();
  // Else from data files and logs alone.
  if (!error.ok()) {
    report->rebuilt = true;
    report->lost.push_back("the ledger could not be opened as it is (" +
                           AboutLedger(error.what(), scratch_dir, dir) +
                           "): it is put together from the data files that can be read, so tokens "
                           "that had ended may have come back");
    const TrialEnd rebuilt = Try([&](const Tell& tell) {
      const StoreError failed = salvager.Rebuild(tell);
      return failed.ok() ? OpenAndLoad(scratch_dir, dir) : failed;
    });
    report->lost.insert(report->lost.end(), rebuilt.told.begin(), rebuilt.told.end());
    error = rebuilt.error;
  }
  // The trials passed, so this process survives the same reading.
  auto opened = std::make_unique<SalvagedLedger>(scratch_dir, dir);
  if (error.ok()) error = opened->Open();
  if (error.ok()) return opened;
  // Without advice: the caller is salvaging already.
  if (!error.Is(StoreError::Kind::kDamaged)) return error.WithAdvice();
  return Status::Corruption(AboutLedger(error.what(), scratch_dir, dir));
}

}  // namespace nowcalls::store
