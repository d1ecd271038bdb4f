#include "backup/backup.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "store/disk/data_dir.h"
#include "store/disk/file_copy.h"
#include "store/disk/ledger_files.h"
#include "store/disk/ledger_lock.h"
#include "store/rocks/ledger_reader.h"

namespace nowcalls::backup {
namespace {

namespace fs = std::filesystem;

using store::LedgerReader;

constexpr mode_t kDirMode = 0700;
constexpr char kMark[] =
    "This is the ledger of a backup. A server that went on from here would give out fences again: "
    "make a ledger of the backup with nowcalls-admin restore.\n";
constexpr char kUnfinished[] =
    "A backup was begun here and is not finished. If no backup is being made, remove this "
    "directory.\n";

class StopWatcher : public VerifyWatcher {
 public:
  explicit StopWatcher(const std::atomic<bool>& stop) : stop_(stop) {}

  void ExpectTokens(uint64_t /*total*/) override {}
  Status OnToken() override { return store::CheckStop(stop_); }

 private:
  const std::atomic<bool>& stop_;
};

bool IsSameDirectory(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

// A caller of `backup` must not decide by a name whether or from what a server starts.
Status CheckTarget(const std::string& to, const std::string& data_dir) {
  // Step 1: the caller may sit on another machine, so a relative path has no meaning here.
  if (!fs::path(to).is_absolute()) {
    return Status::InvalidArgument(to +
                                   " is not an absolute path; the backup is made on the "
                                   "machine of the ledger, whose directories are meant");
  }
  // Step 2: names at which a start looks are refused everywhere, in foreign directories too.
  const std::string name = fs::path(to).filename();
  if (store::TellsOfDirectory(name)) {
    return Status::InvalidArgument(to + " would have a name by which directories are told apart (" +
                                   name + "): choose another name");
  }
  // Step 3: not where a start or another backup would meet the copy.
  NOWCALLS_RETURN_IF_ERROR(store::CheckOutside(to, store::LedgerDir(data_dir), "the ledger"));
  const std::string parent = fs::path(to).parent_path();
  if (IsSameDirectory(parent, data_dir)) {
    return Status::InvalidArgument(to + " would be in the data directory itself (" + data_dir +
                                   "): choose a directory elsewhere, if only a subdirectory of it");
  }
  return store::CheckNotWithinBackupOrLedger(to);
}

Status ExistsAlready(const std::string& to) {
  std::error_code ignored;
  if (fs::exists(UnfinishedPath(to), ignored) && !fs::exists(ManifestPath(to), ignored)) {
    return Status::InvalidArgument(to +
                                   " exists already: it is a backup that was never finished, so it "
                                   "does not count. If no backup is being made there now, remove "
                                   "it, or name a directory that does not exist");
  }
  return Status::InvalidArgument(to + " exists already: name a directory that does not");
}

// Mistakes of the caller are kInvalidArgument; a failing disk is kIoError.
Status MakeTarget(const std::string& to, const std::string& data_dir) {
  NOWCALLS_RETURN_IF_ERROR(CheckTarget(to, data_dir));
  if (mkdir(to.c_str(), kDirMode) == 0) return {};
  switch (errno) {
    case EEXIST: return ExistsAlready(to);
    case ENOENT:
      return Status::InvalidArgument(to + " cannot be made: its parent directory does not exist");
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case ENAMETOOLONG:
    case ELOOP: return Status::InvalidArgument(to + " cannot be made: " + std::strerror(errno));
    default: return store::CannotMakeDirectory(to, errno);
  }
}

Result<Manifest> FillTarget(const store::CopySource& source, const std::string& to,
                            const std::string& made_by, const CopyVerifier& verify,
                            const std::atomic<bool>& stop) {
  // Step 1: say that it is unfinished, before anything could be taken for a ledger.
  NOWCALLS_RETURN_IF_ERROR(store::ReplaceFile(UnfinishedPath(to), kUnfinished));
  const std::string ledger = store::LedgerDir(to);
  if (mkdir(ledger.c_str(), kDirMode) != 0) {
    return store::CannotMakeDirectory(ledger, errno);
  }
  // Step 2: the mark. From here on no server takes the copy for its ledger.
  NOWCALLS_RETURN_IF_ERROR(store::ReplaceFile(ledger + "/" + store::kBackupMarkName, kMark));
  Manifest manifest;
  manifest.made_by = made_by;
  // The time before the copy: batches acknowledged later may be missing.
  manifest.made_wall_ms = WallMs();
  // Step 3: copy, then verify the copy. Its counts go into the manifest.
  Result<std::vector<store::CopiedFile>> files = source.CopyTo(ledger, stop);
  if (!files.ok()) return files.status();
  manifest.files = *std::move(files);
  const Result<VerifySummary> summary = verify(to, stop);
  if (!summary.ok()) return summary.status();
  manifest.SetCounts(*summary);
  // Step 4: the manifest, last. The name of `ledger` is on disk before it, so it never outlives the
  // copy. From here on the backup counts.
  NOWCALLS_RETURN_IF_ERROR(store::SyncDir(to));
  NOWCALLS_RETURN_IF_ERROR(store::ReplaceFile(ManifestPath(to), EncodeManifest(manifest)));
  NOWCALLS_RETURN_IF_ERROR(store::SyncDir(fs::path(to).parent_path()));
  // Both files may stay if this fails or the machine stops: the manifest decides.
  std::error_code ignored;
  fs::remove(UnfinishedPath(to), ignored);
  return manifest;
}

}  // namespace

Result<VerifySummary> VerifyCopy(const std::string& data_dir, const std::atomic<bool>& stop) {
  const Result<std::unique_ptr<LedgerReader>> copy = LedgerReader::Open(data_dir);
  if (!copy.ok()) return copy.status().WithContext("the copy cannot be read");
  StopWatcher watcher(stop);
  std::string first;
  Result<VerifySummary> summary = Verify(
      copy->get(), /*problems_max=*/1,
      [&](const Problem& problem) {
        // A warning is no reason to refuse a copy: a server would serve it.
        if (problem.kind == ProblemKind::kFuture) return;
        first = std::string(ProblemName(problem.kind)) + ": " + problem.detail;
      },
      &watcher);
  if (!summary.ok() || summary->ok()) return summary;
  return Status::Corruption("the copy does not verify: " + std::to_string(summary->problems) +
                            " problems, the first is " + first +
                            "; look with `nowcalls-admin verify` at the ledger itself");
}

Result<Manifest> MakeBackup(const store::CopySource& source, const std::string& data_dir,
                            const std::string& to, const std::string& made_by,
                            const CopyVerifier& verify, const std::atomic<bool>& stop,
                            const std::function<void()>& begun) {
  // A trailing slash would hide the name that CheckTarget looks at.
  std::string dir = to;
  while (dir.size() > 1 && dir.back() == '/') dir.pop_back();
  NOWCALLS_RETURN_IF_ERROR(MakeTarget(dir, data_dir));
  if (begun) begun();
  Result<Manifest> made = FillTarget(source, dir, made_by, verify, stop);
  if (made.ok()) return made;
  // The manifest first: a removal cut off in between leaves no directory that counts.
  std::error_code error;
  fs::remove(ManifestPath(dir), error);
  fs::remove_all(dir, error);
  return Status(made.status().code(),
                "no backup was made in " + dir + ": " + made.status().message() +
                    (error ? "; what is left there could not be removed and is no backup" : ""));
}

Result<Manifest> MakeBackupAtRest(const std::string& data_dir, const std::string& to,
                                  const std::string& made_by, const CopyVerifier& verify,
                                  const std::atomic<bool>& stop) {
  NOWCALLS_RETURN_IF_ERROR(store::CheckDataDir(data_dir));
  NOWCALLS_RETURN_IF_ERROR(store::CheckLedgerPresent(store::LedgerDir(data_dir)));
  // Held until the copy is done, so no server starts on the ledger.
  const Result<std::unique_ptr<store::LedgerLock>> lock = store::LedgerLock::Take(data_dir);
  if (!lock.ok()) return lock.status();
  const Result<std::unique_ptr<LedgerReader>> store = LedgerReader::Open(**lock);
  if (!store.ok()) return store.status();
  return MakeBackup(**store, data_dir, to, made_by, verify, stop);
}

}  // namespace nowcalls::backup
