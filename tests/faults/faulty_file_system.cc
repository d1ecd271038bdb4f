#include "faults/faulty_file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

namespace nowcalls::faults {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

IOStatus Unsupported(const std::string& path) {
  return IOStatus::NotSupported("nobody did this before", path);
}

// Opening a FIFO for reading waits for who opens it for writing.
void WaitAt(const std::string& gate) {
  int fd = -1;
  do {
    fd = open(gate.c_str(), O_RDONLY | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  close(fd);
}

// A line of the mark of an open is for the file that it names: RocksDB goes on without an OPTIONS
// file, and without that file's line, but without no other.
std::string AppendedTo(const std::string& path, const rocksdb::Slice& data) {
  if (!path.ends_with("/opening")) return path;
  const std::string line = data.ToString();
  return path + " " + line.substr(0, line.find(' '));
}

class FaultyWritableFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyWritableFile(std::unique_ptr<rocksdb::FSWritableFile> file, FaultyFileSystem* files,
                     std::string path)
      : FSWritableFileOwnerWrapper(std::move(file)), files_(files), path_(std::move(path)) {}

  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  IODebugContext* context) override {
    empty_ = false;
    const auto all = [&] { return target()->Append(data, options, context); };
    const auto half = [&] {
      const rocksdb::Slice first(data.data(), data.size() / 2);
      target()->Append(first, options, context).PermitUncheckedError();
    };
    return files_->Do("append", AppendedTo(path_, data), true, all, half);
  }
  IOStatus Append(const rocksdb::Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus PositionedAppend(const rocksdb::Slice& /*data*/, uint64_t /*offset*/,
                            const IOOptions& /*options*/, IODebugContext* /*context*/) override {
    return Unsupported(path_);
  }
  IOStatus PositionedAppend(const rocksdb::Slice& /*data*/, uint64_t /*offset*/,
                            const IOOptions& /*options*/,
                            const rocksdb::DataVerificationInfo& /*verification*/,
                            IODebugContext* /*context*/) override {
    return Unsupported(path_);
  }
  IOStatus Truncate(uint64_t size, const IOOptions& options, IODebugContext* context) override {
    return files_->Do("truncate", path_, true,
                      [&] { return target()->Truncate(size, options, context); });
  }
  // A file that cannot be closed in good order is closed all the same.
  IOStatus Close(const IOOptions& options, IODebugContext* context) override {
    const auto close = [&] { return target()->Close(options, context); };
    return files_->Do(empty_ ? "close empty" : "close", path_, true, close,
                      [&] { close().PermitUncheckedError(); });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    return files_->Do("sync", path_, true, [&] { return target()->Sync(options, context); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return files_->Do("fsync", path_, true, [&] { return target()->Fsync(options, context); });
  }
  IOStatus RangeSync(uint64_t offset, uint64_t bytes, const IOOptions& options,
                     IODebugContext* context) override {
    return files_->Do("range sync", path_, true,
                      [&] { return target()->RangeSync(offset, bytes, options, context); });
  }
  IOStatus Allocate(uint64_t offset, uint64_t bytes, const IOOptions& options,
                    IODebugContext* context) override {
    return files_->Do("allocate", path_, true,
                      [&] { return target()->Allocate(offset, bytes, options, context); });
  }

 private:
  FaultyFileSystem* const files_;
  const std::string path_;
  bool empty_ = true;
};

class FaultyRandomRWFile : public rocksdb::FSRandomRWFileOwnerWrapper {
 public:
  FaultyRandomRWFile(std::unique_ptr<rocksdb::FSRandomRWFile> file, FaultyFileSystem* files,
                     std::string path)
      : FSRandomRWFileOwnerWrapper(std::move(file)), files_(files), path_(std::move(path)) {}

  IOStatus Write(uint64_t offset, const rocksdb::Slice& data, const IOOptions& options,
                 IODebugContext* context) override {
    const auto all = [&] { return target()->Write(offset, data, options, context); };
    const auto half = [&] {
      const rocksdb::Slice first(data.data(), data.size() / 2);
      target()->Write(offset, first, options, context).PermitUncheckedError();
    };
    return files_->Do("write", path_, true, all, half);
  }
  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& options, rocksdb::Slice* result,
                char* scratch, IODebugContext* context) const override {
    return files_->Do("read", path_, false, [&] {
      return target()->Read(offset, bytes, options, result, scratch, context);
    });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* context) override {
    return files_->Do("sync", path_, true, [&] { return target()->Sync(options, context); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return files_->Do("fsync", path_, true, [&] { return target()->Fsync(options, context); });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* context) override {
    const auto close = [&] { return target()->Close(options, context); };
    return files_->Do("close", path_, true, close, [&] { close().PermitUncheckedError(); });
  }

 private:
  FaultyFileSystem* const files_;
  const std::string path_;
};

class FaultySequentialFile : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  FaultySequentialFile(std::unique_ptr<rocksdb::FSSequentialFile> file, FaultyFileSystem* files,
                       std::string path)
      : FSSequentialFileOwnerWrapper(std::move(file)), files_(files), path_(std::move(path)) {}

  IOStatus Read(size_t bytes, const IOOptions& options, rocksdb::Slice* result, char* scratch,
                IODebugContext* context) override {
    return files_->Do("read", path_, false,
                      [&] { return target()->Read(bytes, options, result, scratch, context); });
  }
  IOStatus PositionedRead(uint64_t /*offset*/, size_t /*bytes*/, const IOOptions& /*options*/,
                          rocksdb::Slice* /*result*/, char* /*scratch*/,
                          IODebugContext* /*context*/) override {
    return Unsupported(path_);
  }

 private:
  FaultyFileSystem* const files_;
  const std::string path_;
};

class FaultyRandomAccessFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultyRandomAccessFile(std::unique_ptr<rocksdb::FSRandomAccessFile> file, FaultyFileSystem* files,
                         std::string path)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), files_(files), path_(std::move(path)) {}

  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& options, rocksdb::Slice* result,
                char* scratch, IODebugContext* context) const override {
    return files_->Do("read", path_, false, [&] {
      return target()->Read(offset, bytes, options, result, scratch, context);
    });
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const IOOptions& options,
                     IODebugContext* context) override {
    return files_->Do("read", path_, false,
                      [&] { return target()->MultiRead(requests, count, options, context); });
  }
  IOStatus ReadAsync(rocksdb::FSReadRequest& /*request*/, const IOOptions& /*options*/,
                     std::function<void(const rocksdb::FSReadRequest&, void*)> /*done*/,
                     void* /*argument*/, void** /*handle*/, rocksdb::IOHandleDeleter* /*deleter*/,
                     IODebugContext* /*context*/) override {
    return Unsupported(path_);
  }
  IOStatus Prefetch(uint64_t offset, size_t bytes, const IOOptions& options,
                    IODebugContext* context) override {
    return files_->Do("prefetch", path_, false,
                      [&] { return target()->Prefetch(offset, bytes, options, context); });
  }

 private:
  FaultyFileSystem* const files_;
  const std::string path_;
};

class FaultyDirectory : public rocksdb::FSDirectoryWrapper {
 public:
  FaultyDirectory(std::unique_ptr<rocksdb::FSDirectory> directory, FaultyFileSystem* files)
      : FSDirectoryWrapper(std::move(directory)), files_(files) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* context) override {
    return files_->Do("sync directory", files_->LastNamed(), true,
                      [&] { return FSDirectoryWrapper::Fsync(options, context); });
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* context,
                               const rocksdb::DirFsyncOptions& why) override {
    return files_->Do("sync directory", files_->LastNamed(), true, [&] {
      return FSDirectoryWrapper::FsyncWithDirOptions(options, context, why);
    });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* context) override {
    return files_->Do("close directory", files_->LastNamed(), false,
                      [&] { return FSDirectoryWrapper::Close(options, context); });
  }

 private:
  FaultyFileSystem* const files_;
};

}  // namespace

std::string Failure::ToString() const {
  switch (kill) {
    case KillAt::kNever: break;
    case KillAt::kBefore: return "killed before call " + std::to_string(nth);
    case KillAt::kMiddle: return "killed in the middle of call " + std::to_string(nth);
    case KillAt::kAfter: return "killed after call " + std::to_string(nth);
  }
  std::string which = std::to_string(nth);
  if (!only_call.empty()) which += " of those to " + only_call + " " + only_file;
  return std::string(disk_full ? "ENOSPC" : "EIO") + (sticky ? " from call " : " at call ") +
         which + (sticky ? " on" : "");
}

bool MayPass(const std::string& call) {
  if (call.find(" OPTIONS-") != std::string::npos) return true;
  // What was made in a directory is not certain when that could not even be opened. These calls are
  // named after what was made last.
  for (const char* names : {"open directory ", "sync directory ", "open again "}) {
    if (call.starts_with(names)) return false;
  }
  if (call.find(" spare_log") != std::string::npos) return true;
  for (const char* harmless :
       {"delete ", "truncate ", "allocate ", "close MANIFEST-", "open ", "read ", "size ", "list ",
        "look for ", "prefetch ", "close directory ", "free space "}) {
    if (call.starts_with(harmless)) return true;
  }
  if (call.starts_with("close empty ") && call.ends_with(".sst")) return true;
  return call.starts_with("close ") && call.ends_with(".log");
}

FaultyFileSystem::FaultyFileSystem(const std::shared_ptr<rocksdb::FileSystem>& target,
                                   const Failure& failure,
                                   std::function<void(const std::string&)> on_failure)
    : FileSystemWrapper(target), failure_(failure), on_failure_(std::move(on_failure)) {}

void FaultyFileSystem::SetLastNamed(const std::string& path) {
  const std::lock_guard lock(mutex_);
  last_named_ = path;
}

std::string FaultyFileSystem::LastNamed() {
  const std::lock_guard lock(mutex_);
  return last_named_;
}

void FaultyFileSystem::Die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

bool FaultyFileSystem::Counts(const std::string& name, const std::string& file,
                              bool takes_space) const {
  if ((failure_.disk_full || failure_.writes_only) && !takes_space) return false;
  if (!failure_.only_call.empty() &&
      (name != failure_.only_call || file.find(failure_.only_file) == std::string::npos)) {
    return false;
  }
  return failure_.gate.empty() || ::access(failure_.gate.c_str(), F_OK) == 0;
}

IOStatus FaultyFileSystem::Check(const char* name, const std::string& path, bool takes_space,
                                 bool* dies) {
  const std::string file = path.substr(path.rfind('/') + 1);
  if (!Counts(name, file, takes_space)) return IOStatus::OK();
  const uint64_t call = ++calls_;
  if (failure_.nth == 0 || call < failure_.nth) return IOStatus::OK();
  if (call > failure_.nth && !failure_.sticky) return IOStatus::OK();
  // No other call fails, and may end the process, before the first one was told.
  if (call == failure_.nth) {
    if (!failure_.gate.empty()) WaitAt(failure_.gate);
    on_failure_(std::string(name) + " " + file);
    told_ = true;
    told_.notify_all();
  }
  told_.wait(false);
  if (failure_.kill == KillAt::kBefore) Die();
  *dies = failure_.kill != KillAt::kNever;
  if (failure_.kill == KillAt::kAfter) return IOStatus::OK();
  if (!failure_.disk_full)
    return IOStatus::IOError("While " + std::string(name) + ": " + path, "Input/output error");
  IOStatus full =
      IOStatus::NoSpace("While " + std::string(name) + ": " + path, "No space left on device");
  full.SetRetryable(true);
  return full;
}

IOStatus FaultyFileSystem::NewSequentialFile(const std::string& path,
                                             const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                             IODebugContext* context) {
  IOStatus status = Do("open", path, false, [&] {
    return FileSystemWrapper::NewSequentialFile(path, options, file, context);
  });
  if (!status.ok()) return status;
  *file = std::make_unique<FaultySequentialFile>(std::move(*file), this, path);
  return status;
}

IOStatus FaultyFileSystem::NewRandomAccessFile(const std::string& path,
                                               const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                               IODebugContext* context) {
  IOStatus status = Do("open", path, false, [&] {
    return FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
  });
  if (!status.ok()) return status;
  *file = std::make_unique<FaultyRandomAccessFile>(std::move(*file), this, path);
  return status;
}

IOStatus FaultyFileSystem::NewWritableFile(const std::string& path,
                                           const rocksdb::FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                                           IODebugContext* context) {
  SetLastNamed(path);
  IOStatus status = Do("make", path, true, [&] {
    return FileSystemWrapper::NewWritableFile(path, options, file, context);
  });
  if (!status.ok()) return status;
  *file = std::make_unique<FaultyWritableFile>(std::move(*file), this, path);
  return status;
}

IOStatus FaultyFileSystem::ReuseWritableFile(const std::string& path, const std::string& old_path,
                                             const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                                             IODebugContext* context) {
  SetLastNamed(path);
  IOStatus status = Do("reuse", old_path, true, [&] {
    return FileSystemWrapper::ReuseWritableFile(path, old_path, options, file, context);
  });
  if (!status.ok()) return status;
  *file = std::make_unique<FaultyWritableFile>(std::move(*file), this, path);
  return status;
}

IOStatus FaultyFileSystem::ReopenWritableFile(const std::string& path,
                                              const rocksdb::FileOptions& /*options*/,
                                              std::unique_ptr<rocksdb::FSWritableFile>* /*file*/,
                                              IODebugContext* /*context*/) {
  return Unsupported(path);
}

IOStatus FaultyFileSystem::NewRandomRWFile(const std::string& path,
                                           const rocksdb::FileOptions& options,
                                           std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                           IODebugContext* context) {
  IOStatus status = Do("open again", path, false, [&] {
    return FileSystemWrapper::NewRandomRWFile(path, options, file, context);
  });
  if (!status.ok()) return status;
  *file = std::make_unique<FaultyRandomRWFile>(std::move(*file), this, path);
  return status;
}

IOStatus FaultyFileSystem::NewMemoryMappedFileBuffer(
    const std::string& path, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* /*file*/) {
  return Unsupported(path);
}

IOStatus FaultyFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                        std::unique_ptr<rocksdb::FSDirectory>* directory,
                                        IODebugContext* context) {
  IOStatus status = Do("open directory", LastNamed(), false, [&] {
    return FileSystemWrapper::NewDirectory(path, options, directory, context);
  });
  if (!status.ok()) return status;
  *directory = std::make_unique<FaultyDirectory>(std::move(*directory), this);
  return status;
}

IOStatus FaultyFileSystem::FileExists(const std::string& path, const IOOptions& options,
                                      IODebugContext* context) {
  return Do("look for", path, false,
            [&] { return FileSystemWrapper::FileExists(path, options, context); });
}

IOStatus FaultyFileSystem::GetChildren(const std::string& path, const IOOptions& options,
                                       std::vector<std::string>* names, IODebugContext* context) {
  return Do("list", path, false,
            [&] { return FileSystemWrapper::GetChildren(path, options, names, context); });
}

IOStatus FaultyFileSystem::GetFileSize(const std::string& path, const IOOptions& options,
                                       uint64_t* bytes, IODebugContext* context) {
  return Do("size", path, false,
            [&] { return FileSystemWrapper::GetFileSize(path, options, bytes, context); });
}

IOStatus FaultyFileSystem::GetChildrenFileAttributes(const std::string& path,
                                                     const IOOptions& options,
                                                     std::vector<rocksdb::FileAttributes>* files,
                                                     IODebugContext* context) {
  return Do("list", path, false, [&] {
    return FileSystemWrapper::GetChildrenFileAttributes(path, options, files, context);
  });
}

IOStatus FaultyFileSystem::GetFreeSpace(const std::string& path, const IOOptions& options,
                                        uint64_t* bytes, IODebugContext* context) {
  return Do("free space", path, false,
            [&] { return FileSystemWrapper::GetFreeSpace(path, options, bytes, context); });
}

IOStatus FaultyFileSystem::CreateDir(const std::string& path, const IOOptions& options,
                                     IODebugContext* context) {
  return Do("make directory", path, true,
            [&] { return FileSystemWrapper::CreateDir(path, options, context); });
}

IOStatus FaultyFileSystem::CreateDirIfMissing(const std::string& path, const IOOptions& options,
                                              IODebugContext* context) {
  // It is always there already, so a full disk does not refuse it.
  return Do("make directory", path, false,
            [&] { return FileSystemWrapper::CreateDirIfMissing(path, options, context); });
}

IOStatus FaultyFileSystem::DeleteDir(const std::string& path, const IOOptions& /*options*/,
                                     IODebugContext* /*context*/) {
  return Unsupported(path);
}

IOStatus FaultyFileSystem::LockFile(const std::string& path, const IOOptions& options,
                                    rocksdb::FileLock** lock, IODebugContext* context) {
  return Do("lock", path, false,
            [&] { return FileSystemWrapper::LockFile(path, options, lock, context); });
}

IOStatus FaultyFileSystem::LinkFile(const std::string& from, const std::string& /*to*/,
                                    const IOOptions& /*options*/, IODebugContext* /*context*/) {
  return Unsupported(from);
}

IOStatus FaultyFileSystem::Truncate(const std::string& path, size_t /*size*/,
                                    const IOOptions& /*options*/, IODebugContext* /*context*/) {
  return Unsupported(path);
}

IOStatus FaultyFileSystem::RenameFile(const std::string& from, const std::string& to,
                                      const IOOptions& options, IODebugContext* context) {
  SetLastNamed(to);
  return Do("rename", to, true,
            [&] { return FileSystemWrapper::RenameFile(from, to, options, context); });
}

IOStatus FaultyFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                      IODebugContext* context) {
  return Do("delete", path, false,
            [&] { return FileSystemWrapper::DeleteFile(path, options, context); });
}

}  // namespace nowcalls::faults
