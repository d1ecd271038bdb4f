#include "store/log/log_views.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "store/disk/file_names.h"
#include "store/disk/store_error.h"
#include "store/log/log_scan.h"

namespace nowcalls::store {
namespace {

using rocksdb::FSRandomAccessFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

bool IsShown(std::string_view path) { return IsLog(path) || IsManifest(path); }

// A data file that reports failed reads. RocksDB goes on without facts such as the layout of an
// index, and then misses rows without a word.
class ReadTable : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  ReadTable(std::unique_ptr<FSRandomAccessFile> file, std::function<void(const IOStatus&)> failed)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), failed_(std::move(failed)) {}

  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& options, rocksdb::Slice* result,
                char* scratch, IODebugContext* context) const override {
    IOStatus status = target()->Read(offset, bytes, options, result, scratch, context);
    if (!status.ok()) failed_(status);
    return status;
  }

 private:
  const std::function<void(const IOStatus&)> failed_;
};

class LogView : public rocksdb::FSSequentialFile {
 public:
  // Shows `file` up to the end of its last record.
  LogView(std::string path, std::unique_ptr<FSRandomAccessFile> file)
      : path_(std::move(path)),
        file_(std::move(file)),
        scan_(file_.get(), IsLog(path_) ? LogScan::Kind::kLog : LogScan::Kind::kManifest) {}

  // Finds the end of a log at rest, in a file of `size` bytes. The last write of the `newest` log
  // may be torn.
  IOStatus FixEnd(uint64_t size, bool newest);
  // Ends the log behind its last record, whatever follows.
  IOStatus EndBehindLast();
  // Finds the end of a log that a server may be writing.
  IOStatus FollowEnd(rocksdb::FileSystem* files);
  uint64_t end() const { return end_; }
  const BatchRun& batches() const { return scan_.batches(); }

  IOStatus Read(size_t bytes, const IOOptions& options, rocksdb::Slice* result, char* scratch,
                IODebugContext* context) override;
  IOStatus Skip(uint64_t bytes) override {
    at_ += bytes;
    return IOStatus::OK();
  }
  IOStatus InvalidateCache(size_t offset, size_t length) override {
    return file_->InvalidateCache(offset, length);
  }

 private:
  IOStatus Damaged() const {
    return IOStatus::Corruption(path_, "is damaged at byte " + std::to_string(scan_.end()));
  }

  const std::string path_;
  const std::unique_ptr<FSRandomAccessFile> file_;
  LogScan scan_;
  bool grows_ = false;
  uint64_t end_ = 0;
  uint64_t at_ = 0;
};

IOStatus LogView::FixEnd(uint64_t size, bool newest) {
  IOStatus status = scan_.Advance();
  LogScan::Rest rest{};
  uint64_t content_end = 0;
  if (status.ok()) status = scan_.LookBehind(size, &rest, &content_end);
  if (!status.ok()) return status;
  end_ = scan_.end();
  // A torn write was not answered, and only the newest log can have one: before a batch is
  // answered, the logs before its own are synced too. Other damage must be refused here, since
  // RocksDB takes zeros for the end of a block and goes on behind them.
  switch (rest) {
    case LogScan::Rest::kNothing: return status;
    // RocksDB decides about an older log: the cut record is shown.
    case LogScan::Rest::kCutShort:
      if (!newest) end_ = content_end;
      return status;
    case LogScan::Rest::kTorn: return newest ? status : Damaged();
    case LogScan::Rest::kRecord:
    case LogScan::Rest::kDamaged: break;
  }
  return Damaged();
}

IOStatus LogView::EndBehindLast() {
  IOStatus status = scan_.Advance();
  end_ = scan_.end();
  return status;
}

IOStatus LogView::FollowEnd(rocksdb::FileSystem* files) {
  grows_ = true;
  const auto size = [&](uint64_t* bytes) {
    return files->GetFileSize(path_, IOOptions(), bytes, nullptr);
  };
  LogScan::Rest rest{};
  uint64_t content_end = 0;
  IOStatus status = store::FollowEnd(&scan_, size, &rest, &content_end);
  if (!status.ok()) return status;
  end_ = scan_.end();
  if (rest == LogScan::Rest::kRecord) return Damaged();
  return status;
}

IOStatus LogView::Read(size_t bytes, const IOOptions& options, rocksdb::Slice* result,
                       char* scratch, IODebugContext* context) {
  *result = rocksdb::Slice(scratch, 0);
  // The writer may have gone on: look again, and show whole records only.
  if (grows_ && at_ + bytes > end_) {
    IOStatus status = scan_.Advance();
    if (!status.ok()) return status;
    end_ = scan_.end();
  }
  const uint64_t shown = at_ < end_ ? std::min<uint64_t>(bytes, end_ - at_) : 0;
  if (shown == 0) return IOStatus::OK();
  IOStatus status = file_->Read(at_, shown, options, result, scratch, context);
  if (status.ok()) at_ += result->size();
  return status;
}

}  // namespace

IOStatus LogViews::FindSegments(const std::string& dir,
                                std::map<uint64_t, LogSegment>* segments) const {
  {
    // Logs that were read count as they were then.
    const std::lock_guard lock(mutex_);
    *segments = segments_;
  }
  std::vector<std::string> names;
  IOStatus listed = target()->GetChildren(dir, IOOptions(), &names, nullptr);
  if (!listed.ok()) return listed;
  for (const std::string& name : names) {
    if (!IsLog(name) || segments->contains(LogNumber(name))) continue;
    Opened opened;
    IOStatus read = OpenLog(dir + "/" + name, rocksdb::FileOptions(), &opened);
    if (read.ok()) (*segments)[LogNumber(name)] = std::move(opened.segment);
    // A server may have deleted it since.
    if (!read.ok() && !read.IsCorruption() && !IsAbsent(read)) return read;
  }
  return IOStatus::OK();
}

IOStatus LogViews::HasContent(const std::string& path, bool* content) const {
  *content = false;
  uint64_t size = 0;
  IOStatus status = target()->GetFileSize(path, IOOptions(), &size, nullptr);
  if (!status.ok() || size == 0) return status;
  std::unique_ptr<FSRandomAccessFile> file;
  status = target()->NewRandomAccessFile(path, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) status = HasNonZero(*file, size, content);
  return status;
}

IOStatus LogViews::FailedRead() const {
  const std::lock_guard lock(mutex_);
  return failed_read_;
}

void LogViews::NoteFailedRead(const IOStatus& failed) {
  const std::lock_guard lock(mutex_);
  if (failed_read_.ok()) failed_read_ = failed;
}

IOStatus LogViews::NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                       rocksdb::IODebugContext* context) {
  if (!path.ends_with("/CURRENT")) {
    IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
    if (status.ok() && IsTable(path)) {
      *file = std::make_unique<ReadTable>(
          std::move(*file), [this](const IOStatus& failed) { NoteFailedRead(failed); });
    }
    return status;
  }
  // The first result stays. RocksDB tries CURRENT twice, and takes success at the second try for a
  // lack of direct I/O.
  const std::lock_guard lock(mutex_);
  if (current_unopened_.ok()) {
    current_unopened_ = FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
  }
  return current_unopened_;
}

IOStatus LogViews::IsNewest(const std::string& path, bool* newest) const {
  *newest = true;
  const std::string dir = path.substr(0, path.rfind('/'));
  std::vector<std::string> names;
  IOStatus status = target()->GetChildren(dir, IOOptions(), &names, nullptr);
  if (!status.ok()) return status;
  for (const std::string& name : names) {
    if (LogNumber(name) <= LogNumber(path) || hidden_.Has(LogNumber(name))) continue;
    bool content = false;
    status = HasContent(dir + "/" + name, &content);
    if (content) {
      *newest = false;
      return status;
    }
    // A server may have deleted it since.
    const bool gone = IsAbsent(status);
    if (!status.ok() && !gone) return status;
  }
  return IOStatus::OK();
}

IOStatus LogViews::OpenLog(const std::string& path, const rocksdb::FileOptions& options,
                           Opened* opened) const {
  std::unique_ptr<FSRandomAccessFile> file;
  IOStatus status = target()->NewRandomAccessFile(path, options, &file, nullptr);
  if (!status.ok()) return status;
  auto view = std::make_unique<LogView>(path, std::move(file));
  // Hidden: nothing is shown. Tail hidden: ends behind its last record.
  // Newest under a writer: the end moves on. Else: the end is fixed, and damage refused.
  const uint64_t number = LogNumber(path);
  const bool hidden = number != 0 && hidden_.Has(number);
  const bool ends_here = number != 0 && number == hidden_.tail_of;
  bool newest = true;
  if (number != 0 && !hidden && !ends_here) status = IsNewest(path, &newest);
  if (!status.ok()) return status;
  if (hidden) {
    // Nothing is shown.
  } else if (ends_here) {
    status = view->EndBehindLast();
  } else if (newest && state_ == State::kBeingWritten) {
    status = view->FollowEnd(target());
  } else {
    uint64_t size = 0;
    status = target()->GetFileSize(path, IOOptions(), &size, nullptr);
    if (status.ok()) status = view->FixEnd(size, newest);
  }
  if (!status.ok()) return status;
  opened->segment = {path, view->end(), view->batches()};
  opened->file = std::move(view);
  return status;
}

void LogViews::SetState(State state) {
  state_ = state;
  EndReading();
}

void LogViews::EndReading() {
  const std::lock_guard lock(mutex_);
  sized_.clear();
}

// As opened by GetFileSize; null file if not.
LogViews::Opened LogViews::TakeSized(const std::string& path) {
  const std::lock_guard lock(mutex_);
  auto sized = sized_.extract(path);
  return sized.empty() ? Opened{} : std::move(sized.mapped());
}

IOStatus LogViews::NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                     std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                     IODebugContext* context) {
  if (!IsShown(path)) return FileSystemWrapper::NewSequentialFile(path, options, file, context);
  Opened opened = TakeSized(path);
  IOStatus status;
  if (opened.file == nullptr) status = OpenLog(path, options, &opened);
  if (!status.ok()) return status;
  *file = std::move(opened.file);
  if (!IsLog(path)) return status;
  const std::lock_guard lock(mutex_);
  segments_[LogNumber(path)] = std::move(opened.segment);
  return status;
}

// RocksDB asks for the size before it reads a log, and both look at every record. So a log at rest
// stays open from one to the other.
IOStatus LogViews::GetFileSize(const std::string& path, const IOOptions& options, uint64_t* bytes,
                               IODebugContext* context) {
  if (!IsShown(path)) return FileSystemWrapper::GetFileSize(path, options, bytes, context);
  Opened opened;
  IOStatus status = OpenLog(path, rocksdb::FileOptions(), &opened);
  if (!status.ok()) return status;
  *bytes = opened.segment.end;
  const std::lock_guard lock(mutex_);
  if (IsLog(path) && state_ == State::kAtRest) sized_[path] = std::move(opened);
  return status;
}

IOStatus LogViews::GetChildrenFileAttributes(const std::string& dir, const IOOptions& options,
                                             std::vector<rocksdb::FileAttributes>* attributes,
                                             IODebugContext* context) {
  IOStatus status = FileSystemWrapper::GetChildrenFileAttributes(dir, options, attributes, context);
  if (!status.ok()) return status;
  for (rocksdb::FileAttributes& file : *attributes) {
    if (!IsShown(file.name)) continue;
    status = GetFileSize(dir + "/" + file.name, options, &file.size_bytes, context);
    if (!status.ok()) return status;
  }
  return status;
}

}  // namespace nowcalls::store
