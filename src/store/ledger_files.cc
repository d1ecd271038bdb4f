#include "store/ledger_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <vector>

#include "store/rocks_store.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;

class FileDescriptor {
 public:
  FileDescriptor(const std::string& path, int flags) : fd_(open(path.c_str(), flags | O_CLOEXEC)) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status OsError(const std::string& doing, const std::string& path) {
  return Status::IoError("cannot " + doing + " " + path + ": " + std::strerror(errno));
}

Status MakeDir(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0) {
    if (errno != EEXIST) return OsError("make directory", path);
    std::error_code error;
    if (!fs::is_directory(path, error)) return Status::IoError(path + " is not a directory");
    return {};
  }
  std::string parent = fs::path(path).parent_path();
  if (parent.empty()) parent = ".";
  const FileDescriptor fd(parent, O_RDONLY | O_DIRECTORY);
  if (fd.get() < 0 || fsync(fd.get()) != 0) return OsError("sync directory", parent);
  return {};
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

// The text of CURRENT without its newline: the name of the manifest.
std::string ReadCurrent(const std::string& dir) {
  std::ifstream file(dir + "/CURRENT", std::ios::binary);
  std::string name;
  std::getline(file, name);
  return name;
}

struct OpenLedgers {
  std::mutex mutex;
  std::set<std::pair<dev_t, ino_t>> dirs;
};

// Never destroyed, since stores may be closed while the process exits.
OpenLedgers& LedgersOfThisProcess() {
  static OpenLedgers& ledgers = *new OpenLedgers;
  return ledgers;
}

}  // namespace

std::string LedgerDir(const std::string& data_dir) { return data_dir + "/ledger"; }

Status MakeLedgerDir(const std::string& data_dir) {
  if (data_dir.empty()) return Status::InvalidArgument("the data directory has no name");
  std::string trimmed = data_dir;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  NOWCALLS_RETURN_IF_ERROR(MakeDir(trimmed));
  return MakeDir(LedgerDir(trimmed));
}

Status CheckLedgerPresent(const std::string& dir) {
  struct stat info {};
  if (stat((dir + "/CURRENT").c_str(), &info) == 0) return {};
  if (errno != ENOENT && errno != ENOTDIR) return OsError("look at", dir + "/CURRENT");
  for (const std::string_view suffix : {".sst", ".log"}) {
    const std::vector<std::string> names = FilesWithSuffix(dir, suffix);
    if (names.empty()) continue;
    return Status::Corruption(dir + "/CURRENT is missing though there is data (" + names[0] +
                              "): restore the ledger from a backup");
  }
  return Status::NotFound("there is no ledger in " + dir);
}

std::string ManifestState(const std::string& dir) {
  const std::string name = ReadCurrent(dir);
  struct stat info {};
  if (name.empty() || stat((dir + "/" + name).c_str(), &info) != 0) return {};
  return name + " " + std::to_string(info.st_size);
}

std::string DamagedFileIn(const std::string& dir) {
  const std::string manifest = ReadCurrent(dir);
  std::error_code error;
  if (!manifest.starts_with("MANIFEST-") || !fs::exists(dir + "/" + manifest, error)) {
    return dir + "/CURRENT";
  }
  // The manifest was read when the open began; only the logs have been replayed since.
  std::string files = dir + "/" + manifest;
  for (const std::string& name : FilesWithSuffix(dir, ".log")) files += " or " + dir + "/" + name;
  return files;
}

Result<LedgerMark> LedgerMark::Take(const std::string& dir) {
  struct stat info {};
  if (stat(dir.c_str(), &info) != 0) return OsError("look at", dir);
  const FileId file(info.st_dev, info.st_ino);
  OpenLedgers& ledgers = LedgersOfThisProcess();
  const std::lock_guard lock(ledgers.mutex);
  if (!ledgers.dirs.insert(file).second) {
    return Status::AlreadyExists("this process (pid " + std::to_string(getpid()) +
                                 ") already has the ledger in " + dir + " open");
  }
  return LedgerMark(file);
}

LedgerMark::~LedgerMark() {
  if (file_ == FileId{}) return;
  OpenLedgers& ledgers = LedgersOfThisProcess();
  const std::lock_guard lock(ledgers.mutex);
  ledgers.dirs.erase(file_);
}

Result<LedgerHolder> FindLedgerHolder(const std::string& data_dir) {
  const std::string dir = LedgerDir(data_dir);
  struct stat info {};
  if (stat(dir.c_str(), &info) != 0) {
    if (errno == ENOENT) return LedgerHolder{};
    return OsError("look at", dir);
  }
  OpenLedgers& ledgers = LedgersOfThisProcess();
  // Held to the end, so that no other thread can take the lock between the look and the close.
  const std::lock_guard lock(ledgers.mutex);
  if (ledgers.dirs.contains({info.st_dev, info.st_ino})) return LedgerHolder{getpid()};
  const std::string path = dir + "/LOCK";
  const FileDescriptor fd(path, O_RDONLY);
  if (fd.get() < 0) {
    if (errno == ENOENT) return LedgerHolder{};
    return OsError("open", path);
  }
  struct flock probe {};
  probe.l_type = F_WRLCK;
  probe.l_whence = SEEK_SET;
  if (fcntl(fd.get(), F_GETLK, &probe) != 0) return OsError("probe the lock", path);
  if (probe.l_type == F_UNLCK) return LedgerHolder{};
  return LedgerHolder{probe.l_pid > 0 ? probe.l_pid : -1};
}

}  // namespace nowcalls::store
