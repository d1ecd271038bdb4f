// Copies of a ledger's files, while its server writes it or at rest.
//
// Beside a server RocksDB first flushes what it has in memory, then says which files make up the
// database, and how much of those that still grow. Data files never change and may be linked; logs
// and the manifest are copied. Logs are read through LogViews, so a copy has neither the zeros
// behind a log nor what a power cut left of its last record. The copied logs end later than what
// the manifest knows, so the copy is what all batches up to one left behind, as after a crash.
#include <algorithm>
#include <filesystem>
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
struct RocksStore::Impl::CopyPlan {
  struct Part {
    std::string name;
    uint64_t bytes = 0;
  };
  std::vector<Part> tables;
  std::vector<Part> logs;  // `bytes` at most.
  Part manifest;
};

Status RocksStore::Impl::PlanLive(CopyPlan* plan) const {
  std::vector<rocksdb::LiveFileStorageInfo> files_now;
  rocksdb::LiveFilesStorageInfoOptions always_flush;
  always_flush.wal_size_for_flush = 0;
  const rocksdb::Status listed = db->GetLiveFilesStorageInfo(always_flush, &files_now);
  NOWCALLS_RETURN_IF_ERROR(FromRocks(listed, "list the files", dir));
  for (const rocksdb::LiveFileStorageInfo& file : files_now) {
    const CopyPlan::Part part{file.relative_filename, file.size};
    switch (file.file_type) {
      case FileType::kTableFile: plan->tables.push_back(part); break;
      case FileType::kDescriptorFile: plan->manifest = part; break;
      case FileType::kWalFile:
        plan->logs.push_back({part.name, file.trim_to_size ? part.bytes : UINT64_MAX});
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

Result<CopiedFile> RocksStore::Impl::CopyLog(const std::string& name, uint64_t bytes_max,
                                             const std::string& to,
                                             const std::atomic<bool>& stop) const {
  Result<FileWriter> writer = FileWriter::Create(to + "/" + name);
  if (!writer.ok()) return writer.status();
  std::unique_ptr<rocksdb::FSSequentialFile> log;
  rocksdb::IOStatus read = env->GetFileSystem()->NewSequentialFile(
      dir + "/" + name, rocksdb::FileOptions(), &log, nullptr);
  std::vector<char> scratch(kLogPieceBytes);
  for (uint64_t left = bytes_max; read.ok() && left > 0;) {
    NOWCALLS_RETURN_IF_ERROR(CheckStop(stop));
    rocksdb::Slice piece;
    read = log->Read(std::min<uint64_t>(left, scratch.size()), rocksdb::IOOptions(), &piece,
                     scratch.data(), nullptr);
    if (!read.ok() || piece.empty()) break;
    NOWCALLS_RETURN_IF_ERROR(writer->Append({piece.data(), piece.size()}));
    left -= piece.size();
  }
  NOWCALLS_RETURN_IF_ERROR(FromRocks(read, "copy the log", dir));
  return writer->Finish();
}

Status RocksStore::Impl::CopyParts(const CopyPlan& plan, const std::string& to,
                                   const std::atomic<bool>& stop,
                                   std::vector<CopiedFile>* copied) const {
  const auto add = [&](Result<CopiedFile> file) {
    if (file.ok()) copied->push_back(std::move(*file));
    return file.status();
  };
  for (const CopyPlan::Part& table : plan.tables) {
    NOWCALLS_RETURN_IF_ERROR(
        add(LinkOrCopyFile(dir + "/" + table.name, to + "/" + table.name, stop)));
  }
  for (const CopyPlan::Part& log : plan.logs) {
    NOWCALLS_RETURN_IF_ERROR(add(CopyLog(log.name, log.bytes, to, stop)));
  }
  // A ledger without a log has lost it, but RocksDB does not list one that holds nothing.
  if (plan.logs.empty()) {
    const std::vector<std::string> names = LogNames(dir);
    if (names.empty()) return Status::Corruption("the ledger in " + dir + " has no log");
    NOWCALLS_RETURN_IF_ERROR(add(CopyLog(names.back(), 0, to, stop)));
  }
  NOWCALLS_RETURN_IF_ERROR(add(CopyFile(dir + "/" + plan.manifest.name,
                                        to + "/" + plan.manifest.name, plan.manifest.bytes, stop)));
  // Last, since it is what makes the directory a database.
  Result<FileWriter> current = FileWriter::Create(to + "/CURRENT");
  if (!current.ok()) return current.status();
  NOWCALLS_RETURN_IF_ERROR(current->Append(CurrentText(plan.manifest.name)));
  return add(current->Finish());
}

Result<std::vector<CopiedFile>> RocksStore::CopyTo(const std::string& to,
                                                   const std::atomic<bool>& stop) const {
  if (impl_->db == nullptr) return Status::FailedPrecondition("the ledger is closed");
  if (impl_->for_read && impl_->read_mode != ReadMode::kAtRest) {
    return Status::FailedPrecondition("the ledger in " + impl_->dir +
                                      " is open in a server: ask that for the backup");
  }
  const KeptFiles kept(impl_->for_read ? nullptr : impl_->db.get());
  NOWCALLS_RETURN_IF_ERROR(FromRocks(kept.status(), "keep the files", impl_->dir));
  Impl::CopyPlan plan;
  NOWCALLS_RETURN_IF_ERROR(impl_->for_read ? impl_->PlanAtRest(&plan) : impl_->PlanLive(&plan));
  uint64_t bytes = plan.manifest.bytes;
  for (const Impl::CopyPlan::Part& log : plan.logs) {
    const Result<uint64_t> size = FileBytes(impl_->dir + "/" + log.name);
    if (size.ok()) bytes += std::min(*size, log.bytes);
  }
  if (!plan.tables.empty() && !CanLink(impl_->dir + "/" + plan.tables.front().name, to)) {
    for (const Impl::CopyPlan::Part& table : plan.tables) bytes += table.bytes;
  }
  NOWCALLS_RETURN_IF_ERROR(CheckRoom(to, bytes));
  std::vector<CopiedFile> copied;
  NOWCALLS_RETURN_IF_ERROR(impl_->CopyParts(plan, to, stop, &copied));
  NOWCALLS_RETURN_IF_ERROR(SyncDir(to));
  return copied;
}

}  // namespace nowcalls::store
