#include "store/disk/data_dir.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "store/disk/ledger_files.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;

// A client may have made a directory of that name, so only files count.
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
  // Known by these: a data directory, a backup, a ledger. By LOCK the directory of a port file is
  // taken for a database. Other names mean something only within a ledger.
  constexpr std::string_view kNames[] = {
      kLedgerName,     kRestoringName, kRepairingName, kBackupManifestName, kBackupUnfinishedName,
      kBackupMarkName, "CURRENT",      "LOCK",         "IDENTITY"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         name.starts_with("MANIFEST-");
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
    // A restore killed while it removed its work directory has made its ledger.
    if (CheckLedgerPresent(LedgerDir(data_dir)).code() != StatusCode::kNotFound) continue;
    const std::string command = restore ? "restore" : "repair";
    return Status::InvalidArgument("a " + command + " to " + data_dir + " did not end: there is " +
                                   work + " and no ledger, and a new one would be empty. If no " +
                                   command + " is running, remove " + (restore ? work : data_dir) +
                                   " and run `nowcalls-admin " + command + "` again");
  }
  return {};
}

// Such a directory comes from `cp -r` to a directory that existed, or from naming its parent.
Status CheckNoneBelow(const std::string& data_dir) {
  constexpr int kLooksMax = 10'000;
  const std::string ledger = LedgerDir(data_dir);
  if (CheckLedgerPresent(ledger).code() != StatusCode::kNotFound) return {};
  std::error_code error;
  int looks = 0;
  for (const std::string& dir : {ledger, data_dir}) {
    for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
      const std::string found = it->path();
      // A directory full of other things is not searched to its end: no refusal then.
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

Status CheckNotWithinBackupOrLedger(const std::string& path) {
  std::error_code error;
  fs::path inner = fs::absolute(WithoutEndSlashes(path), error);
  if (!error) inner = fs::weakly_canonical(inner, error);
  // A path that cannot be resolved is left to the call that makes it.
  if (error) return {};
  for (fs::path dir = inner.parent_path(); dir.has_relative_path(); dir = dir.parent_path()) {
    if (IsDatabase(dir)) {
      return Status::InvalidArgument(path + " would be among the files of a database, " +
                                     dir.string() + ": choose a directory elsewhere");
    }
    // Another program may name a file backup.json: a ledger must lie beside it.
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
  // Symbolic links and ".." are resolved first, or a link could lead inside.
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

}  // namespace nowcalls::store
