#include "store/rocks/ledger_copy.h"

#include <algorithm>
#include <utility>

#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"

namespace nowcalls::store {
namespace {

using rocksdb::FileType;

constexpr size_t kLogPieceBytes = 256 * 1024;

// While one lives, RocksDB deletes no file.
class NoDeletions {
 public:
  // nullptr: nothing is deleted anyway.
  explicit NoDeletions(rocksdb::DB* db) : db_(db) {
    if (db_ != nullptr) status_ = db_->DisableFileDeletions();
  }
  ~NoDeletions() {
    if (db_ != nullptr) db_->EnableFileDeletions(/*force=*/false).PermitUncheckedError();
  }
  NoDeletions(const NoDeletions&) = delete;
  NoDeletions& operator=(const NoDeletions&) = delete;

  const rocksdb::Status& status() const { return status_; }

 private:
  rocksdb::DB* const db_;
  rocksdb::Status status_;
};

}  // namespace

LedgerCopy::LedgerCopy(const Database& database, Source source, uint64_t leaves_bytes,
                       std::string to, const std::atomic<bool>* stop)
    : database_(database),
      dir_(database.dir()),
      is_served_(source == Source::kServed),
      to_(std::move(to)),
      is_on_ledgers_disk_(OnOneFileSystem(dir_, to_)),
      leaves_bytes_(is_on_ledgers_disk_ ? std::max(kRoomLeftBytes, leaves_bytes) : kRoomLeftBytes),
      stop_(*stop) {}

// Served: RocksDB flushes, then names the files and how much of growing ones belongs to the copy.
// Logs are read through LogViews: no zeros, no torn record. They end later than the manifest knows.
// Checkpoint would take the spare log for its own, and gives no checksums.
// The thread keeps its priority: the flush and the list take locks that commits take, too.
Result<std::vector<CopiedFile>> LedgerCopy::Make() {
  NOWCALLS_RETURN_IF_ERROR(TakeFiles());
  NOWCALLS_RETURN_IF_ERROR(CheckRoomFor(bytes_to_copy_));
  NOWCALLS_RETURN_IF_ERROR(CopyAll());
  NOWCALLS_RETURN_IF_ERROR(SyncDir(to_));
  return std::move(copied_);
}

// Deletions wait here for the ledger's own disk only. A slow or hanging target keeps no file alive:
// open files stay what they were, and growing ones are read up to a length.
// Second names beside the ledger would do the same, but outlive a killed process.
Status LedgerCopy::TakeFiles() {
  const NoDeletions all(is_served_ ? database_.db() : nullptr);
  NOWCALLS_RETURN_IF_ERROR(FromRocks(all.status(), "keep the files", dir_));
  NOWCALLS_RETURN_IF_ERROR(is_served_ ? ListServed() : ListAtRest());
  // RocksDB does not list an empty log. A ledger without any log has lost it.
  if (logs_.empty()) {
    const std::vector<std::string> names = LogNames(dir_);
    if (names.empty()) return Status::Corruption("the ledger in " + dir_ + " has no log");
    logs_.push_back({names.back(), 0});
  }
  // Another file system may hang at any look. Data files never change, so a link is a copy.
  if (is_on_ledgers_disk_) LinkTables();
  NOWCALLS_RETURN_IF_ERROR(SumBytes());
  // At rest nothing is deleted: files are opened one by one.
  if (!is_served_) return {};
  NOWCALLS_RETURN_IF_ERROR(CheckFileLimit(tables_.size() + logs_.size() + 1));
  for (Part& table : tables_) NOWCALLS_RETURN_IF_ERROR(OpenPart(&table));
  for (Log& log : logs_) NOWCALLS_RETURN_IF_ERROR(OpenLog(&log));
  return OpenPart(&manifest_);
}

Status LedgerCopy::ListServed() {
  std::vector<rocksdb::LiveFileStorageInfo> files_now;
  rocksdb::LiveFilesStorageInfoOptions always_flush;
  always_flush.wal_size_for_flush = 0;
  const rocksdb::Status listed = database_.db()->GetLiveFilesStorageInfo(always_flush, &files_now);
  NOWCALLS_RETURN_IF_ERROR(FromRocks(listed, "list the files", dir_));
  for (const rocksdb::LiveFileStorageInfo& file : files_now) {
    const std::string& name = file.relative_filename;
    switch (file.file_type) {
      case FileType::kTableFile: tables_.push_back({name, file.size}); break;
      case FileType::kDescriptorFile: manifest_ = {name, file.size}; break;
      case FileType::kWalFile:
        logs_.push_back({name, file.trim_to_size ? file.size : UINT64_MAX});
        break;
      default: break;
    }
  }
  return {};
}

Status LedgerCopy::ListAtRest() {
  std::vector<rocksdb::LiveFileMetaData> tables;
  database_.db()->GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    tables_.push_back({table.relative_filename, table.size});
  }
  manifest_.name = CurrentManifest(dir_);
  const Result<uint64_t> manifest_bytes = FileBytes(dir_ + "/" + manifest_.name);
  if (!manifest_bytes.ok()) return manifest_bytes.status();
  manifest_.bytes = *manifest_bytes;
  for (const std::string& name : LogNames(dir_)) logs_.push_back({name, UINT64_MAX});
  return {};
}

void LedgerCopy::LinkTables() {
  std::erase_if(tables_, [&](const Part& table) {
    const bool is_linked = LinkFile(dir_ + "/" + table.name, to_ + "/" + table.name);
    if (is_linked) linked_.push_back(table.name);
    return is_linked;
  });
}

Status LedgerCopy::SumBytes() {
  bytes_to_copy_ = manifest_.bytes;
  for (const Part& table : tables_) bytes_to_copy_ += table.bytes;
  for (const Log& log : logs_) {
    const Result<uint64_t> bytes = FileBytes(dir_ + "/" + log.name);
    if (!bytes.ok()) return bytes.status();
    bytes_to_copy_ += std::min(*bytes, log.bytes_max);
  }
  return {};
}

Status LedgerCopy::OpenLog(Log* log) const {
  if (log->file != nullptr) return {};
  const rocksdb::IOStatus opened = database_.env()->GetFileSystem()->NewSequentialFile(
      dir_ + "/" + log->name, rocksdb::FileOptions(), &log->file, nullptr);
  return FromRocks(opened, "read the log", dir_);
}

Status LedgerCopy::OpenPart(Part* part) const {
  if (part->file.has_value()) return {};
  Result<SourceFile> opened = SourceFile::Open(dir_ + "/" + part->name);
  if (!opened.ok()) return opened.status();
  part->file.emplace(*std::move(opened));
  return {};
}

Status LedgerCopy::CheckRoomFor(uint64_t bytes) const {
  return CheckRoom(to_, bytes, is_served_ ? leaves_bytes_ : kRoomLeftBytes);
}

Status LedgerCopy::CopyAll() {
  for (Log& log : logs_) NOWCALLS_RETURN_IF_ERROR(CopyLog(std::move(log)));
  const std::string manifest = manifest_.name;
  NOWCALLS_RETURN_IF_ERROR(CopyPart(std::move(manifest_)));
  // A data file is closed once copied, which frees the room of a deleted one.
  for (Part& table : tables_) NOWCALLS_RETURN_IF_ERROR(CopyPart(std::move(table)));
  // Linked files are read for their checksums.
  for (const std::string& name : linked_) {
    NOWCALLS_RETURN_IF_ERROR(Add(ReadCopied(to_ + "/" + name, stop_)));
  }
  // CURRENT last: it makes the directory a database.
  Result<FileWriter> current = FileWriter::Create(to_ + "/CURRENT");
  if (!current.ok()) return current.status();
  NOWCALLS_RETURN_IF_ERROR(current->Append(manifest + "\n"));
  return Add(current->Finish());
}

Status LedgerCopy::Add(Result<CopiedFile> file) {
  if (file.ok()) copied_.push_back(std::move(*file));
  return file.status();
}

Status LedgerCopy::CopyLog(Log log) {
  NOWCALLS_RETURN_IF_ERROR(OpenLog(&log));
  Result<FileWriter> writer = FileWriter::Create(to_ + "/" + log.name);
  if (!writer.ok()) return writer.status();
  rocksdb::IOStatus read;
  std::vector<char> scratch(kLogPieceBytes);
  for (uint64_t left = log.bytes_max; left > 0;) {
    NOWCALLS_RETURN_IF_ERROR(CheckStop(stop_));
    rocksdb::Slice piece;
    read = log.file->Read(std::min<uint64_t>(left, scratch.size()), rocksdb::IOOptions(), &piece,
                          scratch.data(), nullptr);
    if (!read.ok() || piece.empty()) break;
    NOWCALLS_RETURN_IF_ERROR(writer->Append({piece.data(), piece.size()}));
    left -= piece.size();
  }
  NOWCALLS_RETURN_IF_ERROR(FromRocks(read, "copy the log", dir_));
  return Add(writer->Finish());
}

Status LedgerCopy::CopyPart(Part part) {
  // Others write to the target too, and a copy may take long: check the room for each file.
  NOWCALLS_RETURN_IF_ERROR(CheckRoomFor(part.bytes));
  NOWCALLS_RETURN_IF_ERROR(OpenPart(&part));
  return Add(CopyFile(*part.file, to_ + "/" + part.name, part.bytes, stop_));
}

}  // namespace nowcalls::store
