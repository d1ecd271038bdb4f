#include "store/disk/ledger_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/os_error.h"
#include "store/disk/file_names.h"
#include "store/disk/store_error.h"
#include "store/disk/witness_file.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;

// True: made now.
Result<bool> MakeDir(const std::string& path) {
  bool made = true;
  if (mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) {
      const Status refused = CannotMakeDirectory(path, errno);
      const Result<bool> there = IsThere(path);
      return there.ok() ? refused : there.status();
    }
    // A link to a missing target exists for mkdir, but not for stat: a volume that is not mounted.
    std::error_code error;
    if (!fs::exists(path, error) && fs::is_symlink(path, error)) {
      return Status::IoError(path + " is a symbolic link to " +
                             fs::read_symlink(path, error).string() +
                             ", which does not exist: make that directory, or mount its volume");
    }
    const bool is_directory = fs::is_directory(path, error);
    if (error) return Status::IoError("cannot look at " + path + ": " + error.message());
    if (!is_directory) return Status::IoError(path + " is not a directory");
    made = false;
  }
  // Sync the parent also if the directory exists: a killed process may have made it unsynced.
  const std::string parent = ParentOf(path);
  const int fd = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A process that may not read the parent did not make the directory.
  if (fd < 0 && errno == EACCES && !made) return false;
  const bool synced = fd >= 0 && fsync(fd) == 0;
  const Status failed = synced ? Status::Ok() : OsError("sync directory", parent);
  if (fd >= 0) close(fd);
  if (!synced) return failed;
  return made;
}

std::vector<std::string> FilesWithSuffix(const std::string& dir, std::string_view suffix) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.ends_with(suffix)) names.push_back(name);
  }
  return names;
}

// A client may have made a directory of that name, so only files count.
bool IsRegular(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

std::vector<std::string> LogNames(const std::string& dir) {
  std::vector<std::string> names = FilesWithSuffix(dir, ".log");
  std::erase_if(names, [](const std::string& name) { return !IsLog(name); });
  // Numbers have at least six digits and no further padding, so longer names are newer.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  return names;
}

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

std::string WithoutEndSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::optional<uint64_t> FreeInodes(const std::string& dir) {
  struct statvfs info {};
  if (statvfs(dir.c_str(), &info) != 0 || info.f_files == 0) return std::nullopt;
  return info.f_favail;
}

Status CannotMakeDirectory(const std::string& path, int error) {
  std::string message = "cannot make directory " + path + ": " + std::strerror(error);
  if (error == ENOENT) message += "; make " + ParentOf(path) + " first";
  if (error == ENOSPC && FreeInodes(ParentOf(path)) == uint64_t{0}) {
    message += "; the file system has no inodes left: delete files on it";
  }
  return Status::IoError(std::move(message));
}

std::string LedgerDir(const std::string& data_dir) {
  return data_dir + "/" + std::string(kLedgerName);
}

Result<bool> IsThere(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) return true;
  // Anything but "absent" is unknown: what cannot be seen must not be taken for absent.
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return OsError("look at", path);
}

bool IsDatabase(const std::string& dir) { return IsRegular(dir + "/CURRENT"); }

Result<std::vector<std::string>> MakeLedgerDir(const std::string& data_dir) {
  std::vector<std::string> made;
  const std::string dir = WithoutEndSlashes(data_dir);
  for (const std::string& path : {dir, LedgerDir(dir)}) {
    const Result<bool> now = MakeDir(path);
    if (!now.ok()) return now.status();
    if (*now) made.insert(made.begin(), path);
  }
  return made;
}

Status CheckMayBeFile(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))
    return {};
  return Status::Corruption(path + " is a named pipe, a socket or a device, and no file: " +
                            "put the file back that belongs there, or remove it");
}

Status CheckMayAllBeFiles(const std::string& dir) {
  for (const std::string& name : FilesWithSuffix(dir, "")) {
    NOWCALLS_RETURN_IF_ERROR(CheckMayBeFile(dir + "/" + name));
  }
  return {};
}

Status CheckLedgerPresent(const std::string& dir) {
  NOWCALLS_RETURN_IF_ERROR(CheckMayAllBeFiles(dir));
  const Result<bool> current = IsThere(dir + "/CURRENT");
  if (!current.ok()) return current.status();
  if (*current) return {};
  for (const std::string& name : FilesWithSuffix(dir, "")) {
    // RocksDB writes the first manifest before the first CURRENT, so it alone is no ledger.
    const bool is_data = name.ends_with(".sst") || name.ends_with(".log");
    if (!is_data && ManifestNumber(name) <= 1) continue;
    return StoreError::Damaged(dir + "/CURRENT is missing though there is data (" + name + ")");
  }
  // An unreadable witness is left to the open, which reports it.
  std::optional<ledger::WitnessFound> found;
  const rocksdb::IOStatus read = ReadWitness(rocksdb::FileSystem::Default().get(), dir, &found);
  if (read.ok() && found.has_value() && found->witness && found->witness->batch_number > 0) {
    return StoreError::Damaged("the ledger in " + dir + " is gone: there is no CURRENT, though " +
                               WitnessPath(dir) + " tells that batch " +
                               std::to_string(found->witness->batch_number) + " was on the disk");
  }
  return Status::NotFound("there is no ledger in " + dir);
}

std::string CurrentManifest(const std::string& dir) {
  std::string name;
  return ReadCurrent(rocksdb::FileSystem::Default().get(), dir, &name).ok() ? name : std::string();
}

// CURRENT holds the manifest's name and a newline.
StoreError ReadCurrent(rocksdb::FileSystem* files, const std::string& dir, std::string* manifest) {
  manifest->clear();
  std::string text;
  const rocksdb::IOStatus read = rocksdb::ReadFileToString(files, dir + "/CURRENT", &text);
  if (IsAbsent(read)) return {};
  if (read.ok()) *manifest = text.substr(0, text.find('\n'));
  return ErrorFromRocks(read, "read CURRENT", dir);
}

StoreError CheckLogPresent(rocksdb::FileSystem* files, const std::string& dir) {
  // RocksDB makes its first manifest before its first log; a crash may fall in between.
  constexpr std::string_view kFirstManifest = "MANIFEST-000001";
  std::string manifest;
  StoreError read = ReadCurrent(files, dir, &manifest);
  if (!read.ok() || manifest == kFirstManifest) return read;
  std::vector<std::string> names;
  const rocksdb::IOStatus listed = files->GetChildren(dir, rocksdb::IOOptions(), &names, nullptr);
  if (!listed.ok()) return ErrorFromRocks(listed, "list the files", dir);
  for (const std::string& name : names) {
    std::error_code ignored;
    if (IsLog(name) && !fs::is_directory(dir + "/" + name, ignored)) return {};
  }
  return StoreError::Damaged("the ledger in " + dir +
                             " has lost its log: there is no file *.log, not even an empty one");
}

std::string ManifestState(const std::string& dir) {
  const std::string name = CurrentManifest(dir);
  struct stat info {};
  if (name.empty() || stat((dir + "/" + name).c_str(), &info) != 0) return {};
  return name + " " + std::to_string(info.st_size);
}

std::string DamagedFileIn(const std::string& dir) {
  const std::string manifest = CurrentManifest(dir);
  std::error_code error;
  if (!IsManifest(manifest) || !fs::exists(dir + "/" + manifest, error)) {
    return dir + "/CURRENT";
  }
  // The open has read the manifest; since then it has replayed only logs.
  std::string files = dir + "/" + manifest;
  for (const std::string& name : FilesWithSuffix(dir, ".log")) files += " or " + dir + "/" + name;
  return files;
}

}  // namespace nowcalls::store
