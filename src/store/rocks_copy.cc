// Copies of a ledger's files, while its server writes it or at rest.
//
// Beside a server RocksDB first flushes what it has in memory, then says which files make up the
// database, and how much of those that still grow. Data files never change and may be linked; logs
// and the manifest are copied. Logs are read through LogViews, so a copy has neither the zeros
// behind a log nor what a power cut left of its last record. The copied logs end later than what
// the manifest knows, so the copy is what all batches up to one left behind, as after a crash.
//
// Until each file is linked or open RocksDB deletes none; from then on it may. So neither a target
// that is slow, nor one that hangs, keeps the names of files that the ledger needs no more. An open
// file stays what it was: no log is used again while somebody has it open, and what grows is read
// up to a length.
#include <algorithm>
#include <optional>
#include <utility>

#include "store/file_copy.h"
#include "store/ledger_files.h"
#include "store/rocks_status.h"
#include "store/rocks_store_impl.h"

namespace nowcalls::store {
namespace {

using rocksdb::FileType;

constexpr size_t kLogPieceBytes = 256 * 1024;

std::string CurrentText(const std::string& manifest) { return manifest + "\n"; }

// While one lives RocksDB deletes no file.
class KeptFiles {
 public:
  // `db` may be nullptr: at rest nothing is deleted.
  explicit KeptFiles(rocksdb::DB* db) : db_(db) {
    if (db_ != nullptr) status_ = db_->DisableFileDeletions();
  }
  ~KeptFiles() {
    if (db_ != nullptr) db_->EnableFileDeletions(/*force=*/false).PermitUncheckedError();
  }
  KeptFiles(const KeptFiles&) = delete;
  KeptFiles& operator=(const KeptFiles&) = delete;

  const rocksdb::Status& status() const { return status_; }

 private:
  rocksdb::DB* const db_;
  rocksdb::Status status_;
};

}  // namespace

// What a copy consists of.
struct RocksStore::Impl::CopiedPart {
  std::string name;
  uint64_t bytes = 0;
  std::optional<SourceFile> file = {};
};
struct RocksStore::Impl::CopiedLog {
  std::string name;
  uint64_t bytes_max = 0;
  std::unique_ptr<rocksdb::FSSequentialFile> file = {};
};
struct RocksStore::Impl::CopyPlan {
  bool on_ledgers_disk = false;     // The target is.
  std::vector<std::string> linked;  // Data files that are in the target by now.
  std::vector<CopiedPart> tables;   // The other ones.
  std::vector<CopiedLog> logs;
  CopiedPart manifest;
  uint64_t bytes_to_copy = 0;
};

Status RocksStore::Impl::PlanLive(CopyPlan* plan) const {
  std::vector<rocksdb::LiveFileStorageInfo> files_now;
  rocksdb::LiveFilesStorageInfoOptions always_flush;
  always_flush.wal_size_for_flush = 0;
  compactions->LetIn();  // As for Close.
  const rocksdb::Status listed = db->GetLiveFilesStorageInfo(always_flush, &files_now);
  NOWCALLS_RETURN_IF_ERROR(FromRocks(listed, "list the files", dir));
  for (const rocksdb::LiveFileStorageInfo& file : files_now) {
    const std::string& name = file.relative_filename;
    switch (file.file_type) {
      case FileType::kTableFile: plan->tables.push_back({name, file.size}); break;
      case FileType::kDescriptorFile: plan->manifest = {name, file.size}; break;
      case FileType::kWalFile:
        plan->logs.push_back({name, file.trim_to_size ? file.size : UINT64_MAX});
        break;
      default: break;
    }
  }
  return {};
}

Status RocksStore::Impl::PlanAtRest(CopyPlan* plan) const {
  std::vector<rocksdb::LiveFileMetaData> tables;
  db->GetLiveFilesMetaData(&tables);
  for (const rocksdb::LiveFileMetaData& table : tables) {
    plan->tables.push_back({table.relative_filename, table.size});
  }
  plan->manifest.name = CurrentManifest(dir);
  const Result<uint64_t> manifest_bytes = FileBytes(dir + "/" + plan->manifest.name);
  if (!manifest_bytes.ok()) return manifest_bytes.status();
  plan->manifest.bytes = *manifest_bytes;
  for (const std::string& name : LogNames(dir)) plan->logs.push_back({name, UINT64_MAX});
  return {};
}

Status RocksStore::Impl::OpenLog(CopiedLog* log) const {
  if (log->file != nullptr) return {};
  const rocksdb::IOStatus opened = env->GetFileSystem()->NewSequentialFile(
      dir + "/" + log->name, rocksdb::FileOptions(), &log->file, nullptr);
  return FromRocks(opened, "read the log", dir);
}

Status RocksStore::Impl::OpenPart(CopiedPart* part) const {
  if (part->file.has_value()) return {};
  Result<SourceFile> opened = SourceFile::Open(dir + "/" + part->name);
  if (!opened.ok()) return opened.status();
  part->file.emplace(*std::move(opened));
  return {};
}

void RocksStore::Impl::LinkTables(const std::string& to, CopyPlan* plan) const {
  std::erase_if(plan->tables, [&](const CopiedPart& table) {
    const bool linked = LinkFile(dir + "/" + table.name, to + "/" + table.name);
    if (linked) plan->linked.push_back(table.name);
    return linked;
  });
}

Status RocksStore::Impl::Sum(CopyPlan* plan) const {
  plan->bytes_to_copy = plan->manifest.bytes;
  for (const CopiedPart& table : plan->tables) plan->bytes_to_copy += table.bytes;
  for (const CopiedLog& log : plan->logs) {
    const Result<uint64_t> bytes = FileBytes(dir + "/" + log.name);
    if (!bytes.ok()) return bytes.status();
    plan->bytes_to_copy += std::min(*bytes, log.bytes_max);
  }
  return {};
}

// Only this is done while nothing is deleted: no longer than the ledger's own disk takes.
Status RocksStore::Impl::TakeFiles(const std::string& to, CopyPlan* plan) const {
  const KeptFiles all(for_read ? nullptr : db.get());
  NOWCALLS_RETURN_IF_ERROR(FromRocks(all.status(), "keep the files", dir));
  NOWCALLS_RETURN_IF_ERROR(for_read ? PlanAtRest(plan) : PlanLive(plan));
  // A ledger without a log has lost it, but RocksDB does not list one that holds nothing.
  if (plan->logs.empty()) {
    const std::vector<std::string> names = LogNames(dir);
    if (names.empty()) return Status::Corruption("the ledger in " + dir + " has no log");
    plan->logs.push_back({names.back(), 0});
  }
  // Any look at another file system may hang with it.
  if (plan->on_ledgers_disk) LinkTables(to, plan);
  NOWCALLS_RETURN_IF_ERROR(Sum(plan));
  // At rest nothing is deleted, and files are opened one by one.
  if (for_read) return {};
  NOWCALLS_RETURN_IF_ERROR(CheckFileLimit(plan->tables.size() + plan->logs.size() + 1));
  for (CopiedPart& table : plan->tables) NOWCALLS_RETURN_IF_ERROR(OpenPart(&table));
  for (CopiedLog& log : plan->logs) NOWCALLS_RETURN_IF_ERROR(OpenLog(&log));
  return OpenPart(&plan->manifest);
}

Result<CopiedFile> RocksStore::Impl::CopyLog(CopiedLog log, const std::string& to,
                                             const std::atomic<bool>& stop) const {
  NOWCALLS_RETURN_IF_ERROR(OpenLog(&log));
  Result<FileWriter> writer = FileWriter::Create(to + "/" + log.name);
  if (!writer.ok()) return writer.status();
  rocksdb::IOStatus read;
  std::vector<char> scratch(kLogPieceBytes);
  for (uint64_t left = log.bytes_max; left > 0;) {
    NOWCALLS_RETURN_IF_ERROR(CheckStop(stop));
    rocksdb::Slice piece;
    read = log.file->Read(std::min<uint64_t>(left, scratch.size()), rocksdb::IOOptions(), &piece,
                          scratch.data(), nullptr);
    if (!read.ok() || piece.empty()) break;
    NOWCALLS_RETURN_IF_ERROR(writer->Append({piece.data(), piece.size()}));
    left -= piece.size();
  }
  NOWCALLS_RETURN_IF_ERROR(FromRocks(read, "copy the log", dir));
  return writer->Finish();
}

Result<CopiedFile> RocksStore::Impl::CopyPart(CopiedPart part, const std::string& to,
                                              const std::atomic<bool>& stop) const {
  // Others write there too, and a copy may take long.
  NOWCALLS_RETURN_IF_ERROR(CheckRoomFor(part.bytes, to));
  NOWCALLS_RETURN_IF_ERROR(OpenPart(&part));
  return CopyFile(*part.file, to + "/" + part.name, part.bytes, stop);
}

Status RocksStore::Impl::CheckRoomFor(uint64_t bytes, const std::string& to) const {
  const uint64_t for_server = !for_read && OnOneFileSystem(dir, to) ? options.copy_leaves_bytes : 0;
  return CheckRoom(to, bytes, std::max(kRoomLeftBytes, for_server));
}

Status RocksStore::Impl::CopyParts(CopyPlan plan, const std::string& to,
                                   const std::atomic<bool>& stop,
                                   std::vector<CopiedFile>* copied) const {
  const auto add = [&](Result<CopiedFile> file) {
    if (file.ok()) copied->push_back(std::move(*file));
    return file.status();
  };
  for (CopiedLog& log : plan.logs) {
    NOWCALLS_RETURN_IF_ERROR(add(CopyLog(std::move(log), to, stop)));
  }
  const std::string manifest = plan.manifest.name;
  NOWCALLS_RETURN_IF_ERROR(add(CopyPart(std::move(plan.manifest), to, stop)));
  // Each is closed when it is copied, and takes no room any more if its name is gone.
  for (CopiedPart& table : plan.tables) {
    NOWCALLS_RETURN_IF_ERROR(add(CopyPart(std::move(table), to, stop)));
  }
  for (const std::string& name : plan.linked) {
    NOWCALLS_RETURN_IF_ERROR(add(ReadCopied(to + "/" + name, stop)));
  }
  // Last, since it is what makes the directory a database.
  Result<FileWriter> current = FileWriter::Create(to + "/CURRENT");
  if (!current.ok()) return current.status();
  NOWCALLS_RETURN_IF_ERROR(current->Append(CurrentText(manifest)));
  return add(current->Finish());
}

Result<std::vector<CopiedFile>> RocksStore::CopyTo(const std::string& to,
                                                   const std::atomic<bool>& stop) const {
  if (impl_->db == nullptr) return Status::FailedPrecondition("the ledger is closed");
  if (impl_->for_read && impl_->read_mode != ReadMode::kAtRest) {
    return Status::FailedPrecondition("the ledger in " + impl_->dir +
                                      " is open in a server: ask that for the backup");
  }
  Impl::CopyPlan plan;
  plan.on_ledgers_disk = OnOneFileSystem(impl_->dir, to);
  NOWCALLS_RETURN_IF_ERROR(impl_->TakeFiles(to, &plan));
  NOWCALLS_RETURN_IF_ERROR(impl_->CheckRoomFor(plan.bytes_to_copy, to));
  std::vector<CopiedFile> copied;
  NOWCALLS_RETURN_IF_ERROR(impl_->CopyParts(std::move(plan), to, stop, &copied));
  NOWCALLS_RETURN_IF_ERROR(SyncDir(to));
  return copied;
}

}  // namespace nowcalls::store
