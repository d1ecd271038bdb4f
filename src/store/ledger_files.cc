#include "store/ledger_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/os_error.h"
#include "store/log_views.h"
#include "store/rocks_status.h"
#include "store/witness_file.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLedgerName = "ledger";

// True: made now.
Result<bool> MakeDir(const std::string& path) {
  bool made = true;
  if (mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) {
      const Status refused = CannotMakeDirectory(path, errno);
      const Result<bool> there = IsThere(path);
      return there.ok() ? refused : there.status();
    }
    std::error_code error;
    if (!fs::exists(path, error) && fs::is_symlink(path, error)) {
      return Status::IoError(path + " is a symbolic link to " +
                             fs::read_symlink(path, error).string() +
                             ", which does not exist: make that directory, or mount its volume");
    }
    if (!fs::is_directory(path, error)) return Status::IoError(path + " is not a directory");
    made = false;
  }
  // Also of one that is there: it may have been made by a process that ended here.
  const std::string parent = ParentOf(path);
  const int fd = open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Who may not read the parent has not made anything in it either.
  if (fd < 0 && errno == EACCES && !made) return false;
  const bool synced = fd >= 0 && fsync(fd) == 0;
  const Status failed = synced ? Status::Ok() : OsError("sync directory", parent);
  if (fd >= 0) close(fd);
  if (!synced) return failed;
  return made;
}

std::string WithoutEndSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
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

}  // namespace

std::vector<std::string> LogNames(const std::string& dir) {
  std::vector<std::string> names = FilesWithSuffix(dir, ".log");
  std::erase_if(names, [](const std::string& name) { return !IsLog(name); });
  // Numbers have six digits at least, and are not filled up beyond.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  return names;
}

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent;
}

Status CannotMakeDirectory(const std::string& path, int error) {
  std::string message = "cannot make directory " + path + ": " + std::strerror(error);
  if (error == ENOENT) message += "; make " + ParentOf(path) + " first";
  return Status::IoError(std::move(message));
}

std::string LedgerDir(const std::string& data_dir) {
  return data_dir + "/" + std::string(kLedgerName);
}

namespace {

// A directory of the same name is somebody else's.
bool IsFile(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool HasBackupFile(const std::string& data_dir) {
  return IsFile(data_dir + "/" + kBackupManifestName) ||
         IsFile(data_dir + "/" + kBackupUnfinishedName);
}

}  // namespace

bool IsBackupWithoutManifest(const std::string& data_dir) {
  return !IsFile(data_dir + "/" + kBackupManifestName) &&
         (IsFile(data_dir + "/" + kBackupUnfinishedName) ||
          IsFile(LedgerDir(data_dir) + "/" + kBackupMarkName));
}

bool TellsOfDirectory(std::string_view name) {
  // Those that a data directory, a backup and a ledger are known by, and LOCK, by which the
  // directory of a port file is taken for a database. All others mean something only in a ledger.
  constexpr std::string_view kNames[] = {
      kLedgerName,     kRestoringName, kRepairingName, kBackupManifestName, kBackupUnfinishedName,
      kBackupMarkName, "CURRENT",      "LOCK",         "IDENTITY"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         name.starts_with("MANIFEST-");
}

Result<bool> IsThere(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return OsError("look at", path);
}

Status CheckNoBackup(const std::string& data_dir) {
  if (!IsFile(data_dir + "/" + kBackupManifestName) &&
      IsFile(data_dir + "/" + kBackupUnfinishedName)) {
    return Status::InvalidArgument(data_dir +
                                   " is a backup that was never finished, so it does "
                                   "not count: remove it, and use another one");
  }
  if (HasBackupFile(data_dir)) {
    return Status::InvalidArgument(data_dir +
                                   " is a backup, which must stay as it is: make a ledger of it "
                                   "with `nowcalls-admin restore`, in a directory of its own");
  }
  if (!IsBackupWithoutManifest(data_dir)) return {};
  return Status::InvalidArgument(
      data_dir + " is of a backup (" + LedgerDir(data_dir) + "/" + kBackupMarkName +
      "), without its " + kBackupManifestName +
      ", so it would give out fences again: restore the backup itself. If there is no other copy, "
      "`nowcalls-admin repair` makes a ledger of this one");
}

Status CheckNoneBegun(const std::string& data_dir) {
  for (const bool restore : {true, false}) {
    const std::string work = data_dir + "/" + (restore ? kRestoringName : kRepairingName);
    std::error_code error;
    if (!fs::is_directory(work, error)) continue;
    // One that was ended while it removed its work has made the ledger.
    if (CheckLedgerPresent(LedgerDir(data_dir)).code() != StatusCode::kNotFound) continue;
    const std::string command = restore ? "restore" : "repair";
    return Status::InvalidArgument("a " + command + " to " + data_dir + " did not end: there is " +
                                   work + " and no ledger, and a new one would be empty. If no " +
                                   command + " is running, remove " + (restore ? work : data_dir) +
                                   " and run `nowcalls-admin " + command + "` again");
  }
  return {};
}

// Where a copy was made into a directory that was there, or the parent of a data directory is
// named.
Status CheckNoneBelow(const std::string& data_dir) {
  constexpr int kLooksMax = 10'000;
  const std::string ledger = LedgerDir(data_dir);
  if (CheckLedgerPresent(ledger).code() != StatusCode::kNotFound) return {};
  std::error_code error;
  int looks = 0;
  for (const std::string& dir : {ledger, data_dir}) {
    for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
      const std::string found = it->path();
      if (++looks > kLooksMax) return {};
      if (!IsDatabase(LedgerDir(found))) continue;
      std::string what_to_do = CheckNoBackup(found).message();
      if (what_to_do.empty()) {
        what_to_do =
            "bring its files to " + ledger + " or name " + found + " as the data directory";
      } else if (!IsBackupWithoutManifest(found)) {
        what_to_do = "it is a backup: run `nowcalls-admin restore --from " + found +
                     " --data-dir NEW`, and name NEW as the data directory";
      }
      return Status::InvalidArgument("there is no ledger in " + ledger + ", but one in " +
                                     LedgerDir(found) + ", and a new one would be empty: if that " +
                                     "is the one, " + what_to_do +
                                     "; if not, choose another directory");
    }
    error.clear();
  }
  return {};
}

bool IsDatabase(const std::string& dir) { return IsFile(dir + "/CURRENT"); }

Status CheckNotWithinBackupOrLedger(const std::string& path) {
  std::error_code error;
  fs::path inner = fs::absolute(WithoutEndSlashes(path), error);
  if (!error) inner = fs::weakly_canonical(inner, error);
  if (error) return {};
  for (fs::path dir = inner.parent_path(); dir.has_relative_path(); dir = dir.parent_path()) {
    if (IsDatabase(dir)) {
      return Status::InvalidArgument(path + " would be among the files of a database, " +
                                     dir.string() + ": choose a directory elsewhere");
    }
    // Somebody else may call a file backup.json.
    if (!fs::is_directory(LedgerDir(dir), error) || CheckNoBackup(dir).ok()) continue;
    return CheckOutside(path, dir, "a backup, which must stay as it is");
  }
  return {};
}

Status CheckDataDir(const std::string& data_dir) {
  if (data_dir.empty()) return Status::InvalidArgument("the data directory has no name");
  if (!IsDatabase(data_dir)) return {};
  std::error_code error;
  const std::string dir = WithoutEndSlashes(data_dir);
  const fs::path absolute = WithoutEndSlashes(fs::absolute(dir, error).lexically_normal());
  const std::string why = dir + " holds a database itself, so it is no data directory";
  if (absolute.filename() == kLedgerName) {
    return Status::InvalidArgument(
        why + " but the ledger of one: " + absolute.parent_path().string() + " is probably meant");
  }
  return Status::InvalidArgument(why + ": name the directory whose '" + std::string(kLedgerName) +
                                 "' is the ledger, or an empty one for a new ledger");
}

Status CheckOutside(const std::string& path, const std::string& dir, const std::string& name) {
  std::error_code error;
  const fs::path outer = fs::canonical(dir, error);
  if (error) return {};
  fs::path inner = fs::absolute(WithoutEndSlashes(path), error);
  if (!error) inner = fs::weakly_canonical(inner, error);
  const fs::path relative = inner.lexically_relative(outer);
  if (error || relative.empty() || *relative.begin() == "..") return {};
  return Status::InvalidArgument(path + " lies within " + name +
                                 ": choose a directory outside of " + outer.string());
}

Status CheckMayServe(const std::string& data_dir) {
  NOWCALLS_RETURN_IF_ERROR(CheckNoBackup(data_dir));
  NOWCALLS_RETURN_IF_ERROR(CheckNoneBegun(data_dir));
  NOWCALLS_RETURN_IF_ERROR(CheckNoneBelow(data_dir));
  return CheckDataDir(data_dir);
}

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
    // The first manifest is written before the first CURRENT.
    const bool is_data = name.ends_with(".sst") || name.ends_with(".log");
    if (!is_data && ManifestNumber(name) <= 1) continue;
    return Status::Corruption(dir + "/CURRENT is missing though there is data (" + name + ")" +
                              kDamagedAdvice);
  }
  // One that cannot be read is the open's to tell of.
  std::optional<ledger::WitnessFound> found;
  const rocksdb::IOStatus read = ReadWitness(rocksdb::FileSystem::Default().get(), dir, &found);
  if (read.ok() && found.has_value() && found->witness && found->witness->batch_number > 0) {
    return Status::Corruption("the ledger in " + dir + " is gone: there is no CURRENT, though " +
                              WitnessPath(dir) + " tells that batch " +
                              std::to_string(found->witness->batch_number) + " was on the disk" +
                              kDamagedAdvice);
  }
  return Status::NotFound("there is no ledger in " + dir);
}

std::string CurrentManifest(const std::string& dir) {
  const Result<std::string> name = CurrentManifest(rocksdb::FileSystem::Default().get(), dir);
  return name.ok() ? *name : std::string();
}

// The text of CURRENT is that name and a newline.
Result<std::string> CurrentManifest(rocksdb::FileSystem* files, const std::string& dir) {
  std::string text;
  const rocksdb::IOStatus read = rocksdb::ReadFileToString(files, dir + "/CURRENT", &text);
  if (IsAbsent(read)) return std::string();
  if (!read.ok()) return FromRocks(read, "read CURRENT", dir);
  return text.substr(0, text.find('\n'));
}

Status CheckLogPresent(rocksdb::FileSystem* files, const std::string& dir) {
  // RocksDB makes its first manifest before its first log, and a crash may fall between the two.
  constexpr std::string_view kFirstManifest = "MANIFEST-000001";
  const Result<std::string> manifest = CurrentManifest(files, dir);
  if (!manifest.ok()) return manifest.status();
  if (*manifest == kFirstManifest) return {};
  std::vector<std::string> names;
  const rocksdb::IOStatus listed = files->GetChildren(dir, rocksdb::IOOptions(), &names, nullptr);
  if (!listed.ok()) return FromRocks(listed, "list the files", dir);
  for (const std::string& name : names) {
    std::error_code ignored;
    if (IsLog(name) && !fs::is_directory(dir + "/" + name, ignored)) return {};
  }
  return Status::Corruption("the ledger in " + dir +
                            " has lost its log: there is no file *.log, not even an empty one" +
                            kDamagedAdvice);
}

uint64_t ManifestNumber(std::string_view path) {
  constexpr std::string_view kPrefix = "MANIFEST-";
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(kPrefix)) return 0;
  name.remove_prefix(kPrefix.size());
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : 0;
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
  // The manifest was read when the open began; only the logs have been replayed since.
  std::string files = dir + "/" + manifest;
  for (const std::string& name : FilesWithSuffix(dir, ".log")) files += " or " + dir + "/" + name;
  return files;
}

}  // namespace nowcalls::store
