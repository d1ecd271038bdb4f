#include "store/salvage.h"

#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/write_batch.h>
#include <sys/wait.h>
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

#include "base/exit_codes.h"
#include "base/last_words.h"
#include "base/os_error.h"
#include "store/file_copy.h"
#include "store/ledger_files.h"
#include "store/log_chain.h"
#include "store/log_salvage.h"
#include "store/log_views.h"
#include "store/rocks_options.h"
#include "store/rocks_status.h"
#include "store/rocks_store_impl.h"
#include "store/witness_file.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using ledger::Family;

constexpr size_t kPieceBytes = 256 * 1024;

std::string Batches(uint64_t first, uint64_t last) {
  if (first == last) return "batch " + std::to_string(first);
  return "batches " + std::to_string(first) + " to " + std::to_string(last);
}

std::string BytesOf(const std::string& path, const SkippedBytes& bytes) {
  return path + ": bytes " + std::to_string(bytes.begin) + " to " + std::to_string(bytes.end - 1);
}

// What else RocksDB needs.
bool IsCopied(std::string_view name) {
  return IsTable(name) || name == "CURRENT" || name == "IDENTITY" || name.starts_with("MANIFEST-");
}

Status NoMoreFiles(const std::string& path) {
  return FromRocks(rocksdb::Status::IOError(path, std::strerror(errno)), "read the ledger", path);
}

// In a process of its own: RocksDB's assertions end it where the last blocks are damaged. kIoError:
// that cannot be told.
Result<bool> CanBeOpened(const std::string& path) {
  const pid_t child = fork();
  if (child < 0) return true;
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    const AssertionsMeanDamage reading;
    rocksdb::Options options;
    rocksdb::SstFileReader reader(options);
    const rocksdb::Status opened = reader.Open(path);
    _exit(opened.ok() ? 0 : IsOutOfFiles(opened.ToString()) ? kExitIoError : 1);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitIoError) {
    errno = EMFILE;
    return NoMoreFiles(path);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Puts the changes of logged batches under the numbers of another database's families.
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
  // An ordinary one: the data files may have the key already, and one more from a log that is
  // applied again, of which a single deletion takes away but the last.
  rocksdb::Status SingleDeleteCF(uint32_t family, const rocksdb::Slice& key) override {
    return DeleteCF(family, key);
  }
  void LogData(const rocksdb::Slice& /*blob*/) override {}

  rocksdb::WriteBatch writes;

 private:
  static rocksdb::Status Unknown() { return rocksdb::Status::Corruption("an unknown family"); }

  const FamilyHandles& families_;
};

// Takes any changes, of any family.
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

// A sound record that is none would be refused with its whole log.
bool IsBatch(std::string_view record) {
  AnyChanges changes;
  return rocksdb::WriteBatch(std::string(record)).Iterate(&changes).ok();
}

class Salvager {
 public:
  Salvager(std::string dir, std::string scratch, SalvageReport* report)
      : dir_(std::move(dir)), scratch_(std::move(scratch)), report_(*report) {}

  Status Copy();
  // That the manifest is whole, as far as the witness knows. REQUIRES: Copy was called.
  Status CheckManifestWhole() const;
  // Makes what was copied a database that can be opened.
  Status Rebuild();

 private:
  void Lose(std::string what) { report_.lost.push_back(std::move(what)); }
  // kIoError of a file that this user may not read: it is not lost.
  Status CheckMayRead() const;
  // What cannot be read is lost; what cannot be written ends the salvage.
  Status CopyFile(const std::string& name);
  Status CheckRoomForIt() const;
  Status CopyLog(const std::string& path);
  // Tells of what lies between the batch that was read last and `next`.
  void TellGap(const std::string& path, const std::optional<uint64_t>& next);
  void FindWitnessed();
  Status ApplyLogs(rocksdb::DB* db, const FamilyHandles& families);

  const std::string dir_;
  const std::string scratch_;
  SalvageReport& report_;
  std::optional<uint64_t> last_batch_;  // Of the records that were read.
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
  const Result<bool> opens = !IsTable(name) ? Result<bool>(true) : CanBeOpened(from);
  if (!opens.ok()) return opens.status();
  if (!*opens) {
    Lose(from + ": the data file cannot be read, and is left out");
    return {};
  }
  Result<FileWriter> writer = FileWriter::Create(to);
  if (!writer.ok()) return writer.status();
  std::ifstream file(from, std::ios::binary);
  if (!file && IsOutOfFiles(std::strerror(errno))) return NoMoreFiles(from);
  std::vector<char> piece(kPieceBytes);
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
  if (gap) batches = Batches(*last_batch_ + 1, *next - 1);
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
  Status read = SalvageLog(path, show, [&](const SkippedBytes& skipped) { skipped_ = skipped; });
  TellGap(path, std::nullopt);
  if (IsOutOfFiles(read.message())) return read;
  if (!read.ok()) Lose(WithoutAdvice(read.message()));
  if (last_batch_.has_value()) {
    report_.newest_batch = std::max(report_.newest_batch, *last_batch_);
  }
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
  // All later ones should be in the logs.
  const uint64_t manifest = ManifestNumber(CurrentManifest(dir_));
  if (manifest != 0 && manifest <= witness_->manifest) last_batch_ = witness_->floor;
}

Status Salvager::CheckManifestWhole() const {
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
  const Status logged = CheckLogPresent(rocksdb::FileSystem::Default().get(), dir_);
  if (logged.code() == StatusCode::kCorruption) Lose(WithoutAdvice(logged.message()));
  for (const auto& [number, path] : logs) {
    // Of what is left over, batches that were lost may have been numbered again.
    if (witness_.has_value() && number < witness_->first_log) continue;
    NOWCALLS_RETURN_IF_ERROR(CopyLog(path));
  }
  return {};
}

Status Salvager::ApplyLogs(rocksdb::DB* db, const FamilyHandles& families) {
  std::map<uint64_t, std::string> logs;
  for (const auto& entry : fs::directory_iterator(scratch_ + "/logs")) {
    logs.emplace(LogNumber(entry.path().string()), entry.path());
  }
  Status failed;
  for (const auto& [number, path] : logs) {
    const auto apply = [&](const SalvagedRecord& record) {
      Translator translator(families);
      rocksdb::Status status = rocksdb::WriteBatch(std::string(record.bytes)).Iterate(&translator);
      if (status.ok()) status = db->Write(rocksdb::WriteOptions(), &translator.writes);
      if (!status.ok()) failed = FromRocks(status, "apply a log", scratch_);
    };
    NOWCALLS_RETURN_IF_ERROR(SalvageLog(path, apply, [](const SkippedBytes&) {}));
  }
  return failed;
}

Status Salvager::Rebuild() {
  report_.rebuilt = true;
  fs::create_directory(scratch_ + "/logs");
  std::vector<fs::path> logs;
  for (const auto& entry : fs::directory_iterator(scratch_)) {
    if (IsLog(entry.path().string())) logs.push_back(entry.path());
  }
  for (const fs::path& log : logs) fs::rename(log, fs::path(scratch_) / "logs" / log.filename());
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  descriptors.reserve(ledger::kAllFamilies.size());
  for (const Family family : ledger::kAllFamilies) {
    descriptors.emplace_back(std::string(FamilyName(family)), rocksdb::ColumnFamilyOptions());
  }
  rocksdb::DBOptions options = ReaderDbOptions();
  const rocksdb::Status repaired =
      rocksdb::RepairDB(scratch_, options, descriptors, rocksdb::ColumnFamilyOptions());
  if (!repaired.ok()) return FromRocks(repaired, "rebuild a copy of the ledger", scratch_);
  std::error_code ignored;
  for (fs::directory_iterator it(scratch_ + "/lost", ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    if (!IsTable(it->path().filename().string())) continue;
    Lose(dir_ + "/" + it->path().filename().string() + ": the data file cannot be used");
  }
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* raw = nullptr;
  const rocksdb::Status opened = rocksdb::DB::Open(options, scratch_, descriptors, &handles, &raw);
  if (!opened.ok()) return FromRocks(opened, "open a copy of the ledger", scratch_);
  const std::unique_ptr<rocksdb::DB> db(raw);
  FamilyHandles families{};
  std::copy_n(handles.begin(), families.size(), families.begin());
  Status status = ApplyLogs(db.get(), families);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    db->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
  }
  const rocksdb::Status closed = db->Close();
  return status.ok() ? FromRocks(closed, "close a copy of the ledger", scratch_) : status;
}

}  // namespace

std::string SaidOfLedger(const std::string& message, const std::string& scratch_dir,
                         const std::string& data_dir) {
  std::string said = WithoutAdvice(message);
  const std::string dir = LedgerDir(data_dir);
  for (size_t at = said.find(scratch_dir); at != std::string::npos;
       at = said.find(scratch_dir, at + dir.size())) {
    said.replace(at, scratch_dir.size(), dir);
  }
  return said;
}

Result<std::unique_ptr<RocksStore>> OpenSalvaged(const std::string& data_dir,
                                                 const std::string& scratch_dir,
                                                 SalvageReport* report) {
  const AssertionsMeanDamage reading;
  const std::string dir = LedgerDir(data_dir);
  Salvager salvager(dir, scratch_dir, report);
  NOWCALLS_RETURN_IF_ERROR(salvager.Copy());
  // RocksDB would open it as it was before what the manifest lacks.
  Status status = salvager.CheckManifestWhole();
  if (status.ok()) {
    Result<std::unique_ptr<RocksStore>> opened = RocksStore::OpenCopy(scratch_dir);
    if (opened.ok()) return opened;
    status = opened.status();
    if (IsOutOfFiles(status.message())) return status;
  }
  report->lost.push_back("the ledger could not be opened as it is (" +
                         SaidOfLedger(status.message(), scratch_dir, data_dir) +
                         "): it is put together from the data files that can be read, so tokens "
                         "that had ended may have come back");
  NOWCALLS_RETURN_IF_ERROR(salvager.Rebuild());
  return RocksStore::OpenCopy(scratch_dir);
}

}  // namespace nowcalls::store
