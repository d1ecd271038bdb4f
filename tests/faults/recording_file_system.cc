#include "faults/recording_file_system.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace nowcalls::faults {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using Kind = DiskChange::Kind;

template <typename Act>
IOStatus RecordingFileSystem::Do(DiskChange change, Act act) {
  const std::lock_guard lock(mutex_);
  IOStatus status = act();
  if (!status.ok() || stopped_) return status;
  changes_.push_back(std::move(change));
  return status;
}

class RecordedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  RecordedFile(std::unique_ptr<rocksdb::FSWritableFile> file, RecordingFileSystem* files,
               std::string name, uint64_t number, uint64_t offset)
      : FSWritableFileOwnerWrapper(std::move(file)),
        files_(files),
        name_(std::move(name)),
        number_(number),
        offset_(offset) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    IOStatus status = files_->Do({Kind::kWrite, number_, offset_, {}, {}, data.ToString()},
                                 [&] { return target()->Append(data, options, context); });
    if (status.ok()) offset_ += data.size();
    return status;
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* context) override {
    return files_->Do({Kind::kWrite, number_, offset, {}, {}, data.ToString()},
                      [&] { return target()->PositionedAppend(data, offset, options, context); });
  }
  IOStatus PositionedAppend(const rocksdb::Slice& data, uint64_t offset, const IOOptions& options,
                            const rocksdb::DataVerificationInfo& /*verification*/,
                            IODebugContext* context) override {
    return PositionedAppend(data, offset, options, context);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* context) override {
    return files_->Do({Kind::kTruncate, number_, size, {}, {}, {}},
                      [&] { return target()->Truncate(size, options, context); });
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*context*/) override {
    return files_->Do({Kind::kSyncFile, number_, 0, {}, {}, {}}, [&] {
      ++files_->syncs_[name_];
      return IOStatus::OK();
    });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return Sync(options, context);
  }
  // Promises nothing after a power cut.
  IOStatus RangeSync(uint64_t /*offset*/, uint64_t /*bytes*/, const IOOptions& /*options*/,
                     IODebugContext* /*context*/) override {
    return IOStatus::OK();
  }

 private:
  RecordingFileSystem* const files_;
  const std::string name_;
  const uint64_t number_;
  uint64_t offset_;
};

class RecordedRandomRWFile : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  RecordedRandomRWFile(std::unique_ptr<rocksdb::FSRandomRWFile> file, RecordingFileSystem* files,
                       std::string name, uint64_t number)
      : FSRandomRWFileOwnerWrapper(std::move(file)),
        files_(files),
        name_(std::move(name)),
        number_(number) {}

  IOStatus Write(uint64_t offset, const rocksdb::Slice& data, const IOOptions& options,
                 IODebugContext* context) override {
    return files_->Do({Kind::kWrite, number_, offset, {}, {}, data.ToString()},
                      [&] { return target()->Write(offset, data, options, context); });
  }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*context*/) override {
    return files_->Do({Kind::kSyncFile, number_, 0, {}, {}, {}}, [&] {
      ++files_->syncs_[name_];
      return IOStatus::OK();
    });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return Sync(options, context);
  }

 private:
  RecordingFileSystem* const files_;
  const std::string name_;
  const uint64_t number_;
};

class RecordedDirectory : public rocksdb::FSDirectoryWrapper {
 public:
  RecordedDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, RecordingFileSystem* files)
      : FSDirectoryWrapper(std::move(directory)), files_(files) {}

  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*context*/) override {
    return files_->Do({}, [] { return IOStatus::OK(); });
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* context,
                               const rocksdb::DirFsyncOptions& /*why*/) override {
    return Fsync(options, context);
  }

 private:
  RecordingFileSystem* const files_;
};

RecordingFileSystem::RecordingFileSystem(std::string dir, const DiskImage& image)
    : FileSystemWrapper(rocksdb::FileSystem::Default()), dir_(std::move(dir)) {
  for (const auto& [name, bytes] : image) names_[name] = next_file_++;
}

void RecordingFileSystem::Begun(uint64_t batch) {
  Do({Kind::kBegun, 0, batch, {}, {}, {}}, [] { return IOStatus::OK(); }).PermitUncheckedError();
}

void RecordingFileSystem::Committed(uint64_t batch) {
  Do({Kind::kCommitted, 0, batch, {}, {}, {}}, [] {
    return IOStatus::OK();
  }).PermitUncheckedError();
}

void RecordingFileSystem::Acknowledged(uint64_t batch) {
  Do({Kind::kAcknowledged, 0, batch, {}, {}, {}}, [] {
    return IOStatus::OK();
  }).PermitUncheckedError();
}

std::vector<DiskChange> RecordingFileSystem::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  return std::move(changes_);
}

int RecordingFileSystem::SyncsOf(std::string_view suffix) {
  const std::lock_guard lock(mutex_);
  int syncs = 0;
  for (const auto& [name, count] : syncs_) syncs += name.ends_with(suffix) ? count : 0;
  return syncs;
}

bool RecordingFileSystem::HasSynced(std::string_view prefix) {
  const std::lock_guard lock(mutex_);
  return std::any_of(names_.begin(), names_.end(), [&](const auto& entry) {
    if (!entry.first.starts_with(prefix)) return false;
    const auto last =
        std::find_if(changes_.rbegin(), changes_.rend(),
                     [&](const DiskChange& change) { return change.file == entry.second; });
    return last != changes_.rend() && last->kind == Kind::kSyncFile;
  });
}

std::string RecordingFileSystem::NameOf(const std::string& path) const {
  const size_t slash = path.rfind('/');
  NOWCALLS_CHECK(slash == dir_.size() && path.starts_with(dir_));
  return path.substr(slash + 1);
}

IOStatus RecordingFileSystem::NewWritableFile(const std::string& path,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                                              IODebugContext* context) {
  const std::string name = NameOf(path);
  const std::lock_guard lock(mutex_);
  IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, context);
  if (!status.ok()) return status;
  const bool is_new = !names_.contains(name);
  if (is_new) names_[name] = next_file_++;
  const uint64_t number = names_.at(name);
  if (!stopped_) {
    changes_.push_back({is_new ? Kind::kMake : Kind::kTruncate, number, 0, name, {}, {}});
  }
  *file = std::make_unique<RecordedFile>(std::move(*file), this, name, number, 0);
  return status;
}

// Nobody does this to the ledger's files; if somebody begins to, this has to learn it.
IOStatus RecordingFileSystem::ReopenWritableFile(const std::string& path,
                                                 const rocksdb::FileOptions& /*options*/,
                                                 std::unique_ptr<rocksdb::FSWritableFile>* /*file*/,
                                                 IODebugContext* /*context*/) {
  return IOStatus::NotSupported("reopened", path);
}

IOStatus RecordingFileSystem::NewRandomRWFile(const std::string& path,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                              IODebugContext* context) {
  const std::string name = NameOf(path);
  const std::lock_guard lock(mutex_);
  IOStatus status = FileSystemWrapper::NewRandomRWFile(path, options, file, context);
  if (!status.ok()) return status;
  *file = std::make_unique<RecordedRandomRWFile>(std::move(*file), this, name, names_.at(name));
  return status;
}

// Backups link files, which are not recorded.
IOStatus RecordingFileSystem::LinkFile(const std::string& from, const std::string& /*to*/,
                                       const IOOptions& /*options*/, IODebugContext* /*context*/) {
  return IOStatus::NotSupported("linked", from);
}

IOStatus RecordingFileSystem::ReuseWritableFile(const std::string& path,
                                                const std::string& old_path,
                                                const rocksdb::FileOptions& options,
                                                std::unique_ptr<rocksdb::FSWritableFile>* file,
                                                IODebugContext* context) {
  const std::string name = NameOf(path);
  const std::string old_name = NameOf(old_path);
  const std::lock_guard lock(mutex_);
  IOStatus status = FileSystemWrapper::ReuseWritableFile(path, old_path, options, file, context);
  if (!status.ok()) return status;
  const uint64_t number = names_.at(old_name);
  names_.erase(old_name);
  names_[name] = number;
  if (!stopped_) changes_.push_back({Kind::kRename, number, 0, old_name, name, {}});
  *file = std::make_unique<RecordedFile>(std::move(*file), this, name, number, 0);
  return status;
}

IOStatus RecordingFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                           std::unique_ptr<rocksdb::FSDirectory>* directory,
                                           IODebugContext* context) {
  IOStatus status = FileSystemWrapper::NewDirectory(path, options, directory, context);
  if (!status.ok()) return status;
  *directory = std::make_unique<RecordedDirectory>(std::move(*directory), this);
  return status;
}

IOStatus RecordingFileSystem::RenameFile(const std::string& from, const std::string& to,
                                         const IOOptions& options, IODebugContext* context) {
  const std::string old_name = NameOf(from);
  const std::string name = NameOf(to);
  const std::lock_guard lock(mutex_);
  IOStatus status = FileSystemWrapper::RenameFile(from, to, options, context);
  if (!status.ok()) return status;
  // One that was there before, of a start that was cut off, has no number yet.
  if (!names_.contains(old_name)) names_[old_name] = next_file_++;
  const uint64_t number = names_.at(old_name);
  names_.erase(old_name);
  names_[name] = number;
  if (!stopped_) changes_.push_back({Kind::kRename, number, 0, old_name, name, {}});
  return status;
}

IOStatus RecordingFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                         IODebugContext* context) {
  const std::string name = NameOf(path);
  return Do({Kind::kDelete, 0, 0, name, {}, {}}, [&] {
    IOStatus status = FileSystemWrapper::DeleteFile(path, options, context);
    if (status.ok()) names_.erase(name);
    return status;
  });
}

IOStatus RecordingFileSystem::Truncate(const std::string& path, size_t /*size*/,
                                       const IOOptions& /*options*/, IODebugContext* /*context*/) {
  return IOStatus::NotSupported("truncated by its name", path);
}

}  // namespace nowcalls::faults
