#include "store/rocks/frozen_files.h"

#include <fcntl.h>
#include <rocksdb/env.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <utility>

#include "ledger/witness.h"
#include "store/disk/file_names.h"
#include "store/disk/ledger_files.h"
#include "store/disk/store_error.h"
#include "store/disk/witness_file.h"
#include "store/log/log_views.h"

// RocksDB deletes a log or a data file only after a change of the manifest. If all files are open
// and the manifest is the same before and after, they are one moment. They stay readable without
// names.
//
// RocksDB's secondary is not used: it passes over missing logs, and keeps rows of deleted logs that
// no data file has.

namespace nowcalls::store {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr int kRoundsMax = 100;
constexpr int kWitnessLooksMax = 10;
// So many looks, this far apart, must find the same bytes behind a file's end.
constexpr int kStillLooks = 5;
constexpr int kPauseMicros = 1000;
constexpr std::string_view kCurrentName = "CURRENT";

// No event tells of another process's writes.
void Pause() { rocksdb::Env::Default()->SleepForMicroseconds(kPauseMicros); }

}  // namespace

// An open file, or bytes once read from one.
class FrozenFiles::OpenFile : public rocksdb::FSRandomAccessFile {
 public:
  OpenFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  explicit OpenFile(std::string bytes) : bytes_(std::move(bytes)) {}
  ~OpenFile() override {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  IOStatus SizeNow(uint64_t* bytes) const {
    struct stat info {};
    if (fd_ >= 0 && fstat(fd_, &info) != 0) return IOStatus::IOError(path_, std::strerror(errno));
    *bytes = fd_ >= 0 ? static_cast<uint64_t>(info.st_size) : bytes_.size();
    return IOStatus::OK();
  }

  // Whether `path` is a name of it.
  bool Is(const std::string& path) const {
    struct stat mine {};
    struct stat named {};
    return fstat(fd_, &mine) == 0 && stat(path.c_str(), &named) == 0 &&
           mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
  }

  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& /*options*/, rocksdb::Slice* result,
                char* scratch, IODebugContext* /*context*/) const override {
    if (fd_ < 0) {
      const size_t from = std::min<uint64_t>(offset, bytes_.size());
      *result = {scratch, bytes_.copy(scratch, bytes, from)};
      return IOStatus::OK();
    }
    size_t done = 0;
    while (done < bytes) {
      const ssize_t got =
          pread(fd_, scratch + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return IOStatus::IOError(path_, std::strerror(errno));
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    *result = {scratch, done};
    return IOStatus::OK();
  }

 private:
  const std::string path_;
  const int fd_ = -1;
  const std::string bytes_;
};

// A frozen file up to its shown length.
class FrozenFiles::View : public rocksdb::FSRandomAccessFile {
 public:
  explicit View(Frozen frozen) : frozen_(std::move(frozen)) {}
  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& options, rocksdb::Slice* result,
                char* scratch, IODebugContext* context) const override {
    const uint64_t left = offset < frozen_.bytes ? frozen_.bytes - offset : 0;
    return frozen_.file->Read(offset, std::min<uint64_t>(bytes, left), options, result, scratch,
                              context);
  }

 private:
  const Frozen frozen_;
};

class FrozenFiles::SequentialView : public rocksdb::FSSequentialFile {
 public:
  explicit SequentialView(const Frozen& frozen) : view_(frozen) {}
  IOStatus Read(size_t bytes, const IOOptions& options, rocksdb::Slice* result, char* scratch,
                IODebugContext* context) override {
    IOStatus status = view_.Read(at_, bytes, options, result, scratch, context);
    if (status.ok()) at_ += result->size();
    return status;
  }
  IOStatus Skip(uint64_t bytes) override {
    at_ += bytes;
    return IOStatus::OK();
  }

 private:
  View view_;
  uint64_t at_ = 0;
};

FrozenFiles::FrozenFiles(std::string dir)
    : FileSystemWrapper(rocksdb::FileSystem::Default()), dir_(std::move(dir)) {}

Result<std::shared_ptr<FrozenFiles>> FrozenFiles::Take(const std::string& dir,
                                                       const std::function<void()>& between) {
  std::shared_ptr<FrozenFiles> frozen(new FrozenFiles(dir));
  NOWCALLS_RETURN_IF_ERROR(frozen->Freeze(between));
  return frozen;
}

// A round: open what is new, read the witness, look for logs again, compare the manifest.
// A busy server may change it each time: after kRoundsMax rounds the reader gives up.
Status FrozenFiles::Freeze(const std::function<void()>& between) {
  Result<Moment> before = LookAtManifest();
  for (int round = 0; before.ok(); ++round) {
    if (round == kRoundsMax) {
      return Status::Unavailable("the server changes the ledger in " + dir_ +
                                 " faster than it can be read: ask the server instead");
    }
    CloseGone();
    Result<bool> found_log = OpenNew();
    if (!found_log.ok()) return found_log.status();
    // The witness comes after the logs, since it tells which logs are gone. It must not tell of
    // batches in a log that is not open, so logs are looked for again.
    NOWCALLS_RETURN_IF_ERROR(ReadWitness());
    if (between) between();
    found_log = OpenNew();
    if (!found_log.ok()) return found_log.status();
    Result<Moment> now = LookAtManifest();
    if (now.ok() && *now == *before && !*found_log) {
      const Result<bool> fixed = Fix();
      if (!fixed.ok()) return fixed.status();
      if (*fixed) return {};
      now = LookAtManifest();
    }
    before = std::move(now);
  }
  return before.status();
}

// Fixes the shown length of each file. False: CURRENT has changed.
Result<bool> FrozenFiles::Fix() {
  NOWCALLS_RETURN_IF_ERROR(FromRocks(FixManifest(), "read the manifest", dir_));
  NOWCALLS_RETURN_IF_ERROR(FromRocks(FixTables(), "look at the data files", dir_));
  NOWCALLS_RETURN_IF_ERROR(FromRocks(FixLogs(), "read the logs", dir_));
  // A recovering server makes a new log early and writes to it at the end. If it ended meanwhile,
  // earlier logs may end as a crash left them: CURRENT tells.
  std::string now;
  NOWCALLS_RETURN_IF_ERROR(store::ReadCurrent(target(), dir_, &now));
  return now == manifest_;
}

// Also opens the manifest.
Result<FrozenFiles::Moment> FrozenFiles::LookAtManifest() {
  std::string text;
  NOWCALLS_RETURN_IF_ERROR(ReadCurrent(&text));
  Moment moment;
  moment.manifest = text.substr(0, text.find('\n'));
  if (moment.manifest != manifest_) {
    manifest_scan_.reset();
    files_.erase(manifest_);
    manifest_ = moment.manifest;
  }
  if (!manifest_scan_.has_value() && IsManifest(manifest_)) {
    Open(manifest_);
    const auto found = files_.find(manifest_);
    const bool opened = found != files_.end() && found->second.file != nullptr;
    if (opened) manifest_scan_.emplace(found->second.file.get(), LogScan::Kind::kManifest);
  }
  // RocksDB reports a bad manifest.
  if (!manifest_scan_.has_value()) return moment;
  NOWCALLS_RETURN_IF_ERROR(FromRocks(manifest_scan_->Advance(), "read the manifest", dir_));
  moment.manifest_end = manifest_scan_->end();
  return moment;
}

void FrozenFiles::CloseGone() {
  std::erase_if(files_, [&](const auto& file) {
    struct stat info {};
    const auto& [name, frozen] = file;
    return (IsLog(name) || IsTable(name)) && stat(PathOf(name).c_str(), &info) != 0;
  });
}

// True: a log was among the new files.
Result<bool> FrozenFiles::OpenNew() {
  std::vector<std::string> names;
  const IOStatus listed = target()->GetChildren(dir_, IOOptions(), &names, nullptr);
  NOWCALLS_RETURN_IF_ERROR(FromRocks(listed, "list the files", dir_));
  bool found_log = false;
  for (const std::string& name : names) {
    if (!IsLog(name) && !IsTable(name)) continue;
    // A starting server reuses numbers of files that were never accepted.
    const auto found = files_.find(name);
    if (found != files_.end() && found->second.file != nullptr &&
        found->second.file->Is(PathOf(name))) {
      continue;
    }
    const bool opened = Open(name);
    found_log = found_log || (opened && IsLog(name));
  }
  return found_log;
}

// Replaces an open file of that name. False: gone, or cannot be opened.
bool FrozenFiles::Open(const std::string& name) {
  const std::string path = PathOf(name);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  // ENOENT: the name is gone, but an opened file stays, since the witness may not tell yet.
  // EWOULDBLOCK: a server just asks who uses the file (file_use.h).
  if (fd < 0 && (errno == ENOENT || errno == EWOULDBLOCK)) return false;
  files_.erase(name);
  Frozen frozen;
  if (fd < 0) frozen.failure = std::strerror(errno);
  if (fd >= 0) frozen.file = std::make_shared<const OpenFile>(path, fd);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return false;
  files_[name] = std::move(frozen);
  return fd >= 0;
}

Status FrozenFiles::ReadCurrent(std::string* text) {
  const std::string name(kCurrentName);
  const IOStatus read = rocksdb::ReadFileToString(target(), PathOf(name), text);
  NOWCALLS_RETURN_IF_ERROR(FromRocks(read, "read CURRENT", dir_));
  files_.insert_or_assign(name, Frozen{std::make_shared<const OpenFile>(*text), {}, text->size()});
  return {};
}

Status FrozenFiles::ReadWitness() {
  const std::string name(ledger::kWitnessName);
  for (int look = 1; look <= kWitnessLooksMax; ++look) {
    if (look > 1) Pause();
    std::string bytes;
    const IOStatus read = ReadWitnessBytes(target(), dir_, &bytes);
    files_.erase(name);
    if (IsAbsent(read)) return {};
    NOWCALLS_RETURN_IF_ERROR(FromRocks(read, "read the witness", dir_));
    const bool damaged = ledger::DecodeWitnessFile(bytes).damaged;
    const uint64_t size = bytes.size();
    files_[name] = Frozen{std::make_shared<const OpenFile>(std::move(bytes)), {}, size};
    // It may be a write under way: look again.
    if (!damaged) break;
  }
  return {};
}

// `end`: behind the last record, or behind lasting garbage that follows it.
IOStatus FrozenFiles::FindEnd(const OpenFile& file, LogScan* scan, uint64_t* end) {
  const auto size = [&](uint64_t* bytes) { return file.SizeNow(bytes); };
  uint64_t content_end = 0;
  for (int look = 0, still = 0; look < kRoundsMax; ++look) {
    const std::pair before(scan->end(), content_end);
    LogScan::Rest rest{};
    IOStatus status = FollowEnd(scan, size, &rest, &content_end);
    *end = scan->end();
    // A write under way leaves such bytes: the file ends before them. Other bytes must stand still
    // before they are shown.
    const bool of_a_write = rest == LogScan::Rest::kNothing || rest == LogScan::Rest::kCutShort;
    if (!status.ok() || of_a_write) return status;
    still = before == std::pair(scan->end(), content_end) ? still + 1 : 0;
    if (still == kStillLooks || rest == LogScan::Rest::kRecord) return size(end);
    Pause();
  }
  return IOStatus::OK();
}

IOStatus FrozenFiles::FixManifest() {
  if (!manifest_scan_.has_value()) return IOStatus::OK();
  Frozen& frozen = files_.at(manifest_);
  // A record that came since belongs to a later moment.
  const uint64_t end = manifest_scan_->end();
  IOStatus status = FindEnd(*frozen.file, &*manifest_scan_, &frozen.bytes);
  if (frozen.bytes == manifest_scan_->end()) frozen.bytes = end;
  return status;
}

// Data files of the manifest are finished by now, perhaps not when opened.
IOStatus FrozenFiles::FixTables() {
  for (auto& [name, frozen] : files_) {
    if (!IsTable(name) || frozen.file == nullptr) continue;
    IOStatus status = frozen.file->SizeNow(&frozen.bytes);
    if (!status.ok()) return status;
  }
  return IOStatus::OK();
}

// The newest log with content first: logs before it are complete.
IOStatus FrozenFiles::FixLogs() {
  std::map<uint64_t, Frozen*, std::greater<>> logs;
  for (auto& [name, frozen] : files_) {
    if (IsLog(name) && frozen.file != nullptr) logs[LogNumber(name)] = &frozen;
  }
  bool newest = true;
  for (auto& [number, frozen] : logs) {
    const OpenFile& file = *frozen->file;
    uint64_t bytes = 0;
    IOStatus status = file.SizeNow(&bytes);
    bool has_content = true;
    if (status.ok() && newest) status = HasNonZero(file, bytes, &has_content);
    frozen->bytes = has_content ? bytes : 0;
    if (status.ok() && newest && has_content) {
      LogScan scan(&file, LogScan::Kind::kLog);
      status = FindEnd(file, &scan, &frozen->bytes);
      newest = false;
    }
    if (!status.ok()) return status;
  }
  return IOStatus::OK();
}

bool FrozenFiles::IsOurDir(const std::string& dir) const {
  return dir == dir_ || dir == dir_ + "/";
}

bool FrozenFiles::IsOfKind(const std::string& path) const {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || !IsOurDir(path.substr(0, slash))) return false;
  const std::string name = path.substr(slash + 1);
  return IsLog(name) || IsTable(name) || IsManifest(name) || name == kCurrentName ||
         name == ledger::kWitnessName;
}

// PathNotFound: not of the moment.
IOStatus FrozenFiles::Find(const std::string& path, const Frozen** frozen) const {
  const auto found = files_.find(path.substr(path.rfind('/') + 1));
  if (found == files_.end()) return IOStatus::PathNotFound(path);
  *frozen = &found->second;
  if ((*frozen)->file == nullptr) return IOStatus::IOError(path, (*frozen)->failure);
  return IOStatus::OK();
}

IOStatus FrozenFiles::NewSequentialFile(const std::string& path, const FileOptions& options,
                                        std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                        IODebugContext* context) {
  if (!IsOfKind(path)) return FileSystemWrapper::NewSequentialFile(path, options, file, context);
  const Frozen* frozen = nullptr;
  IOStatus status = Find(path, &frozen);
  if (status.ok()) *file = std::make_unique<SequentialView>(*frozen);
  return status;
}

IOStatus FrozenFiles::NewRandomAccessFile(const std::string& path, const FileOptions& options,
                                          std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                          IODebugContext* context) {
  if (!IsOfKind(path)) return FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
  const Frozen* frozen = nullptr;
  IOStatus status = Find(path, &frozen);
  if (status.ok()) *file = std::make_unique<View>(*frozen);
  return status;
}

IOStatus FrozenFiles::FileExists(const std::string& path, const IOOptions& options,
                                 IODebugContext* context) {
  if (!IsOfKind(path)) return FileSystemWrapper::FileExists(path, options, context);
  const Frozen* frozen = nullptr;
  IOStatus status = Find(path, &frozen);
  if (status.IsPathNotFound()) status = IOStatus::NotFound(path);
  return status;
}

IOStatus FrozenFiles::GetFileSize(const std::string& path, const IOOptions& options,
                                  uint64_t* bytes, IODebugContext* context) {
  if (!IsOfKind(path)) return FileSystemWrapper::GetFileSize(path, options, bytes, context);
  const Frozen* frozen = nullptr;
  IOStatus status = Find(path, &frozen);
  if (status.ok()) *bytes = frozen->bytes;
  return status;
}

IOStatus FrozenFiles::GetChildren(const std::string& dir, const IOOptions& options,
                                  std::vector<std::string>* names, IODebugContext* context) {
  if (!IsOurDir(dir)) return FileSystemWrapper::GetChildren(dir, options, names, context);
  names->clear();
  for (const auto& [name, frozen] : files_) names->push_back(name);
  return IOStatus::OK();
}

IOStatus FrozenFiles::GetChildrenFileAttributes(const std::string& dir, const IOOptions& options,
                                                std::vector<rocksdb::FileAttributes>* attributes,
                                                IODebugContext* context) {
  if (!IsOurDir(dir)) {
    return FileSystemWrapper::GetChildrenFileAttributes(dir, options, attributes, context);
  }
  attributes->clear();
  for (const auto& [name, frozen] : files_) attributes->push_back({name, frozen.bytes});
  return IOStatus::OK();
}

}  // namespace nowcalls::store
