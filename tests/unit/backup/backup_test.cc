// Backups and restores of ledgers on disk: what is refused, what is checked, what is left behind.
#include "backup/backup.h"

#include <doctest/doctest.h>
#include <rocksdb/db.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "backup/restore.h"
#include "base/clock.h"
#include "ledger/fence_line.h"
#include "store/disk/data_dir.h"
#include "store/disk/ledger_lock.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/backup/served_ledger.h"

namespace {

// A directory whose syncs fail once it holds a ledger; empty: none.
std::string unsyncable;

}  // namespace

extern "C" {

// What the linker makes of calls of fsync, and what is behind it.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
int __real_fsync(int fd);

int __wrap_fsync(int fd) {
  std::error_code ignored;
  const std::string path =
      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), ignored);
  if (unsyncable.empty() || path != unsyncable) return __real_fsync(fd);
  if (!std::filesystem::exists(path + "/ledger", ignored)) return __real_fsync(fd);
  errno = EIO;
  return -1;
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

}  // extern "C"

namespace nowcalls::backup {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

const std::atomic<bool> kNever{false};

ClockSample Now() {
  const auto now = SampleClocks();
  REQUIRE(now.ok());
  return *now;
}

// Name and bytes of every file below `dir`.
std::map<std::string, std::string> FilesBelow(const std::string& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file()) files[entry.path()] = ReadFileToString(entry.path());
  }
  return files;
}

// A ledger with 300 tokens that is closed, in DIR/data, and its backup in DIR/backup.
class BackedUp {
 public:
  BackedUp() {
    {
      ServedLedger served(data());
      served.Rules();
      served.Take("alice", 300);
    }
    const Result<Manifest> made = MakeBackupAtRest(data(), backup(), "test 1", VerifyCopy, kNever);
    REQUIRE_MESSAGE(made.ok(), made.status().ToString());
    manifest = *made;
  }

  std::string data() const { return dir.Sub("data"); }
  std::string backup() const { return dir.Sub("backup"); }
  Result<Restored> RestoreTo(const std::string& name) const {
    return Restore(backup(), dir.Sub(name), Now(), kNever);
  }

  TempDir dir;
  Manifest manifest;
};

TEST_CASE_FIXTURE(BackedUp, "a backup counts what the ledger holds, and restores to the same") {
  CHECK(manifest.tokens == 300);
  CHECK(manifest.now_calls == 300);
  CHECK(manifest.sessions == 1);
  CHECK(manifest.rules == 1);
  CHECK(manifest.made_by == "test 1");
  CHECK_FALSE(fs::exists(UnfinishedPath(backup())));
  const Result<Restored> restored = RestoreTo("new");
  REQUIRE_MESSAGE(restored.ok(), restored.status().ToString());
  CHECK(restored->manifest == manifest);
  CHECK_FALSE(fs::exists(dir.Sub("new/restoring")));
  const ServedLedger original(data());
  const ServedLedger copy(dir.Sub("new"));
  CHECK(testing::TokensText(*copy.core) == testing::TokensText(*original.core));
  CHECK(testing::NowCallsText(*copy.core) == testing::NowCallsText(*original.core));
}

TEST_CASE_FIXTURE(BackedUp, "no fence that the original grants after the backup comes again") {
  const FormatReader before = ReadMeta(data());
  const Result<Restored> restored = RestoreTo("new");
  REQUIRE(restored.ok());
  CHECK(restored->is_beyond_copies);
  CHECK(restored->next_fence > before.seal->next_fence);
  CHECK(restored->next_fence >= ledger::FenceLine(manifest.made_wall_ms));
  std::vector<uint64_t> of_original;
  {
    ServedLedger original(data());
    of_original = original.Take("bob", 1000);
  }
  ServedLedger copy(dir.Sub("new"));
  const std::vector<uint64_t> of_copy = copy.Take("bob", 1000);
  CHECK(of_copy.front() >= restored->next_fence);
  CHECK(of_copy.front() > of_original.back());
  CHECK(of_copy.back() < uint64_t{1} << 53);
  // The clock goes on as it was: the seal alone was written.
  const FormatReader after = ReadMeta(dir.Sub("new"));
  CHECK(after.seal->batch_number > before.seal->batch_number + 1);
}

// The first fence of a ledger that a server starts on `machine`.
uint64_t FirstFence(const std::string& data_dir, const ClockSample& machine) {
  const FormatReader meta = ReadMeta(data_dir);
  REQUIRE(meta.seal.has_value());
  REQUIRE(meta.mark.has_value());
  const uint64_t next = meta.seal->next_fence;
  return meta.mark->machine.boot_id == machine.boot_id
             ? next
             : ledger::FenceAfterBoot(next, machine.wall_ms);
}

TEST_CASE_FIXTURE(BackedUp,
                  "a second restore goes on beyond the first, whichever machine had that") {
  for (const int64_t later_ms : {10, 1000, 3'600'000}) {
    CAPTURE(later_ms);
    const std::string suffix = std::to_string(later_ms);
    ClockSample here{.boottime_ms = 1'800'000'000'000, .wall_ms = Now().wall_ms, .boot_id = {1}};
    ClockSample there = here;
    there.boot_id = {2};
    REQUIRE(Restore(backup(), dir.Sub("there" + suffix), there, kNever).ok());
    uint64_t granted = FirstFence(dir.Sub("there" + suffix), there);
    // A million grants a second, and the machine goes down again and again.
    for (int tenth = 0; tenth < 10; ++tenth) {
      granted = ledger::FenceAfterBoot(granted, there.wall_ms + later_ms * tenth / 10);
      granted += static_cast<uint64_t>(later_ms) * 100;
    }
    here.wall_ms += later_ms;
    here.boottime_ms += later_ms;
    REQUIRE(Restore(backup(), dir.Sub("here" + suffix), here, kNever).ok());
    CHECK(FirstFence(dir.Sub("here" + suffix), here) > granted);
  }
}

TEST_CASE_FIXTURE(BackedUp, "a restore before the backup was made tells that the clock is wrong") {
  const FormatReader before = ReadMeta(data());
  ClockSample now = Now();
  now.wall_ms = manifest.made_wall_ms - 1;
  const Result<Restored> restored = Restore(backup(), dir.Sub("new"), now, kNever);
  REQUIRE(restored.ok());
  CHECK(restored->age_ms == -1);
  CHECK_FALSE(restored->is_beyond_copies);
  CHECK(restored->next_fence >= before.seal->next_fence + ledger::kFencesSkippedBlindly);
}

TEST_CASE_FIXTURE(BackedUp,
                  "a restore of what a clock that was ahead made may not tell of copies") {
  ClockSample ahead = Now();
  ahead.wall_ms += int64_t{365} * 24 * 3'600'000;
  const Result<Restored> early = Restore(backup(), dir.Sub("ahead"), ahead, kNever);
  REQUIRE(early.ok());
  CHECK(early->is_beyond_copies);
  const auto made =
      MakeBackupAtRest(dir.Sub("ahead"), dir.Sub("second"), "test 1", VerifyCopy, kNever);
  REQUIRE(made.ok());
  const Result<Restored> restored = Restore(dir.Sub("second"), dir.Sub("new"), Now(), kNever);
  REQUIRE(restored.ok());
  CHECK_FALSE(restored->is_beyond_copies);
  CHECK(restored->next_fence >= early->next_fence + ledger::kFencesSkippedBlindly);
}

TEST_CASE_FIXTURE(BackedUp, "a clock that leaves no fences is told, and nothing is made") {
  ClockSample now = Now();
  now.wall_ms = INT64_MAX;
  CHECK(Restore(backup(), dir.Sub("new"), now, kNever).status().code() == StatusCode::kCorruption);
  CHECK_FALSE(fs::exists(dir.Sub("new")));
}

TEST_CASE_FIXTURE(BackedUp, "a restore whose name cannot be synced leaves no ledger") {
  SUBCASE("in a directory that it made") {}
  SUBCASE("in one that was there") { fs::create_directory(dir.Sub("new")); }
  const bool was_there = fs::exists(dir.Sub("new"));
  unsyncable = dir.Sub("new");
  const Status failed = RestoreTo("new").status();
  unsyncable.clear();
  CHECK(failed.code() == StatusCode::kIoError);
  CHECK_MESSAGE(Contains(failed.message(), "sync directory " + dir.Sub("new")), failed.message());
  CHECK(fs::exists(dir.Sub("new")) == was_there);
  if (was_there) CHECK(fs::is_empty(dir.Sub("new")));
  CHECK(RestoreTo("new").ok());
}

TEST_CASE("a ledger that was never written to is backed up, and its copy skips fences too") {
  const TempDir dir;
  { const ServedLedger served(dir.Sub("data")); }
  const Result<Manifest> made =
      MakeBackupAtRest(dir.Sub("data"), dir.Sub("backup"), "test", VerifyCopy, kNever);
  REQUIRE_MESSAGE(made.ok(), made.status().ToString());
  CHECK(made->batch_number == 0);
  const Result<Restored> restored = Restore(dir.Sub("backup"), dir.Sub("new"), Now(), kNever);
  REQUIRE_MESSAGE(restored.ok(), restored.status().ToString());
  const FormatReader meta = ReadMeta(dir.Sub("new"));
  REQUIRE(meta.seal.has_value());
  REQUIRE(meta.mark.has_value());
  CHECK(meta.seal->next_fence == restored->next_fence);
  CHECK(restored->next_fence >= ledger::FenceLine(made->made_wall_ms));
  CHECK(VerifyCopy(dir.Sub("new"), kNever).ok());
}

TEST_CASE_FIXTURE(BackedUp, "a backup to where none can be made is refused, and nothing is made") {
  WriteStringToFile(dir.Sub("file"), "");
  struct Case {
    std::string to;
    std::string says;
  };
  const Case cases[] = {
      {backup(), "exists already"},
      {dir.Sub("file"), "exists already"},
      {"relative/path", "not an absolute path"},
      {dir.Sub("absent/backup"), "parent directory does not exist"},
      {dir.Sub("file/backup"), "cannot be made"},
      {data() + "/ledger/backup", "lies within the ledger"},
      {"/proc/nowcalls-backup", ""},
  };
  const auto before = FilesBelow(dir.path());
  for (const Case& c : cases) {
    CAPTURE(c.to);
    const Status refused = MakeBackupAtRest(data(), c.to, "test", VerifyCopy, kNever).status();
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK_MESSAGE(Contains(refused.message(), c.says), refused.message());
  }
  CHECK((FilesBelow(dir.path()) == before));
}

TEST_CASE_FIXTURE(BackedUp, "no backup has a name by which directories are told apart") {
  fs::create_directory(dir.Sub("other"));
  for (const char* name :
       {"backup.json", "backup.unfinished", "backup_mark", "CURRENT", "LOCK", "IDENTITY",
        "MANIFEST-000007", "ledger", "restoring", "repairing", "ledger//"}) {
    CAPTURE(name);
    for (const std::string& parent : {data(), dir.Sub("other"), dir.Sub("absent")}) {
      const std::string to = parent + "/" + name;
      const Status refused = MakeBackupAtRest(data(), to, "test", VerifyCopy, kNever).status();
      CHECK(refused.code() == StatusCode::kInvalidArgument);
      CHECK_MESSAGE(Contains(refused.message(), "choose another name"), refused.message());
    }
  }
  CHECK(fs::is_empty(dir.Sub("other")));
}

TEST_CASE_FIXTURE(BackedUp, "no backup is put beside a ledger, nor among the files of another") {
  fs::create_directory(data() + "/backups");
  fs::create_symlink(data(), dir.Sub("link"));
  fs::copy(data(), dir.Sub("other"), fs::copy_options::recursive);
  const auto refuse = [&](const std::string& to, const std::string& says) {
    CAPTURE(to);
    const Status refused = MakeBackupAtRest(data(), to, "test", VerifyCopy, kNever).status();
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK_MESSAGE(Contains(refused.message(), says), refused.message());
    CHECK_FALSE(fs::exists(to));
  };
  for (const std::string& to : {data() + "/b2", data() + "//b2/", data() + "/backups/../b2",
                                dir.Sub("link/b2"), dir.Sub("link/./b2")}) {
    refuse(to, "in the data directory itself");
  }
  refuse(dir.Sub("other/ledger/b2"), "among the files of a database");
  refuse(dir.Sub("link/ledger/b2"), "lies within the ledger");
  CHECK(MakeBackupAtRest(data(), dir.Sub("link/backups/b2"), "test", VerifyCopy, kNever).ok());
}

TEST_CASE_FIXTURE(BackedUp, "nothing is made within a backup, which must stay as it is") {
  fs::copy(backup(), dir.Sub("unfinished"), fs::copy_options::recursive);
  fs::rename(ManifestPath(dir.Sub("unfinished")), UnfinishedPath(dir.Sub("unfinished")));
  fs::copy(backup(), dir.Sub("parted"), fs::copy_options::recursive);
  fs::remove(ManifestPath(dir.Sub("parted")));
  fs::create_directory(backup() + "/deep");
  fs::create_symlink(backup(), dir.Sub("link"));
  fs::copy(backup(), dir.Sub("second"), fs::copy_options::recursive);
  const auto before = FilesBelow(dir.path());
  for (const std::string& to : {backup() + "/x", backup() + "/x//", backup() + "/deep/x",
                                dir.Sub("link/x"), dir.Sub("unfinished/x"), dir.Sub("parted/x")}) {
    CAPTURE(to);
    const Status backed_up = MakeBackupAtRest(data(), to, "test", VerifyCopy, kNever).status();
    const Status restored = Restore(dir.Sub("second"), to, Now(), kNever).status();
    const Status begun = store::LedgerLock::Take(to).status();
    for (const Status& refused : {backed_up, restored, begun}) {
      CHECK(refused.code() == StatusCode::kInvalidArgument);
      CHECK_MESSAGE(
          Contains(refused.message(),
                   " lies within a backup, which must stay as it is: choose a directory outside"),
          refused.message());
    }
  }
  CHECK(Contains(store::CheckNotWithinBackupOrLedger(data() + "/ledger/x").message(),
                 "of a database"));
  CHECK((FilesBelow(dir.path()) == before));
}

TEST_CASE_FIXTURE(BackedUp, "a file that is called like a manifest makes no backup") {
  fs::create_directory(dir.Sub("home"));
  WriteStringToFile(dir.Sub("home/backup.json"), "{}");
  CHECK(MakeBackupAtRest(data(), dir.Sub("home/b2"), "test", VerifyCopy, kNever).ok());
}

TEST_CASE_FIXTURE(BackedUp, "a name that a backup which was cut off has is told as that") {
  fs::rename(ManifestPath(backup()), UnfinishedPath(backup()));
  const Status cut_off = MakeBackupAtRest(data(), backup(), "test", VerifyCopy, kNever).status();
  CHECK(cut_off.code() == StatusCode::kInvalidArgument);
  CHECK(cut_off.message() ==
        backup() +
            " exists already: it is a backup that was never finished, so it does not count. If no "
            "backup is being made there now, remove it, or name a directory that does not exist");
  // One that ended between its manifest and the removal of the other file is whole.
  WriteStringToFile(ManifestPath(backup()), EncodeManifest(manifest));
  const Status whole = MakeBackupAtRest(data(), backup(), "test", VerifyCopy, kNever).status();
  CHECK(whole.message() == backup() + " exists already: name a directory that does not");
}

TEST_CASE_FIXTURE(BackedUp, "a ledger that a server has, or that is absent, is not backed up") {
  const ServedLedger served(data());
  const Status held = MakeBackupAtRest(data(), dir.Sub("b2"), "test", VerifyCopy, kNever).status();
  CHECK(held.code() == StatusCode::kAlreadyExists);
  CHECK(Contains(held.message(), std::to_string(getpid())));
  const Status absent =
      MakeBackupAtRest(dir.Sub("absent"), dir.Sub("b2"), "test", VerifyCopy, kNever).status();
  CHECK(absent.code() == StatusCode::kNotFound);
  const Status of_backup =
      MakeBackupAtRest(backup(), dir.Sub("b2"), "test", VerifyCopy, kNever).status();
  CHECK(of_backup.code() == StatusCode::kInvalidArgument);
  CHECK_FALSE(fs::exists(dir.Sub("b2")));
  CHECK_FALSE(fs::exists(dir.Sub("absent")));
}

TEST_CASE_FIXTURE(BackedUp, "a backup that is stopped leaves nothing") {
  const std::atomic<bool> stop{true};
  const Status stopped = MakeBackupAtRest(data(), dir.Sub("b2"), "test", VerifyCopy, stop).status();
  CHECK(stopped.code() == StatusCode::kUnavailable);
  CHECK_FALSE(fs::exists(dir.Sub("b2")));
}

// Opens the ledger with RocksDB alone and deletes the first row of a family.
void DeleteARow(const std::string& data_dir, const std::string& family) {
  const std::string ledger = data_dir + "/ledger";
  std::vector<std::string> names;
  REQUIRE(rocksdb::DB::ListColumnFamilies({}, ledger, &names).ok());
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const auto& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* opened = nullptr;
  REQUIRE(rocksdb::DB::Open({}, ledger, families, &handles, &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    if (handle->GetName() == family) {
      std::string first;
      {
        const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator({}, handle));
        it->SeekToFirst();
        REQUIRE(it->Valid());
        first = it->key().ToString();
      }
      REQUIRE(db->Delete({}, handle, first).ok());
    }
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles) db->DestroyColumnFamilyHandle(handle);
}

TEST_CASE_FIXTURE(BackedUp, "a ledger that does not verify has no backup, and is told as bad") {
  DeleteARow(data(), "sessions");
  const Status bad = MakeBackupAtRest(data(), dir.Sub("b2"), "test", VerifyCopy, kNever).status();
  CHECK(bad.code() == StatusCode::kCorruption);
  CHECK_MESSAGE(Contains(bad.message(), "does not verify: 300 problems"), bad.message());
  CHECK(Contains(bad.message(), "token_session"));
  CHECK_FALSE(fs::exists(dir.Sub("b2")));
}

TEST_CASE_FIXTURE(BackedUp, "a backup with a changed, shortened or missing file is not restored") {
  for (const store::CopiedFile& file : manifest.files) {
    const std::string path = backup() + "/ledger/" + file.name;
    const std::string bytes = ReadFileToString(path);
    const auto refuse = [&](const std::string& what) {
      CAPTURE(what);
      const Status refused = RestoreTo("new").status();
      CHECK(refused.code() == StatusCode::kCorruption);
      CHECK_MESSAGE(Contains(refused.message(), path), refused.message());
      CHECK_FALSE(fs::exists(dir.Sub("new")));
    };
    // Data files are shared with the original, which must stay as it is.
    fs::remove(path);
    refuse("missing");
    if (!bytes.empty()) {
      WriteStringToFile(path, bytes.substr(0, bytes.size() - 1));
      refuse("short");
      std::string flipped = bytes;
      flipped[bytes.size() / 2] = static_cast<char>(flipped[bytes.size() / 2] ^ 1);
      fs::remove(path);
      WriteStringToFile(path, flipped);
      refuse("flipped");
    }
    WriteStringToFile(path, bytes + "x");
    refuse("longer");
    fs::remove(path);
    WriteStringToFile(path, bytes);
  }
  CHECK(RestoreTo("new").ok());
}

TEST_CASE_FIXTURE(BackedUp, "a manifest that counts other than its files hold is refused") {
  Manifest other = manifest;
  other.tokens += 1;
  WriteStringToFile(ManifestPath(backup()), EncodeManifest(other));
  const Status refused = RestoreTo("new").status();
  CHECK(refused.code() == StatusCode::kCorruption);
  CHECK(Contains(refused.message(), "its manifest tells of"));
  CHECK_FALSE(fs::exists(dir.Sub("new")));
}

TEST_CASE_FIXTURE(BackedUp, "an unfinished backup is not restored, whatever its files are") {
  fs::rename(ManifestPath(backup()), UnfinishedPath(backup()));
  const Status refused = RestoreTo("new").status();
  CHECK(refused.code() == StatusCode::kNotFound);
  CHECK(Contains(refused.message(), "never finished"));
  CHECK_FALSE(fs::exists(dir.Sub("new")));
}

TEST_CASE_FIXTURE(BackedUp,
                  "a backup without its manifest is refused, and a restored ledger serves") {
  fs::copy(backup(), dir.Sub("partial"), fs::copy_options::recursive);
  fs::remove(ManifestPath(dir.Sub("partial")));
  const Status refused = store::RocksStore::Open(dir.Sub("partial"), {}).status();
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK_MESSAGE(Contains(refused.message(), "without its backup.json"), refused.message());
  const Status again =
      MakeBackupAtRest(dir.Sub("partial"), dir.Sub("b2"), "test", VerifyCopy, kNever).status();
  CHECK(again.code() == StatusCode::kInvalidArgument);
  // Its files are a whole ledger.
  CHECK(VerifyCopy(dir.Sub("partial"), kNever).ok());
  REQUIRE(RestoreTo("new").ok());
  CHECK_FALSE(fs::exists(dir.Sub("new/ledger/backup_mark")));
}

TEST_CASE_FIXTURE(BackedUp,
                  "a backup of an earlier version, whose ledger has no mark, is restored") {
  REQUIRE(fs::remove(backup() + "/ledger/backup_mark"));
  const Result<Restored> restored = RestoreTo("new");
  REQUIRE_MESSAGE(restored.ok(), restored.status().ToString());
  CHECK(restored->manifest == manifest);
}

TEST_CASE_FIXTURE(BackedUp, "a restore overwrites nothing") {
  fs::create_directory(dir.Sub("used"));
  WriteStringToFile(dir.Sub("used/notes"), "mine");
  fs::create_directory(dir.Sub("cut"));
  fs::create_directory(dir.Sub("cut/restoring"));
  WriteStringToFile(dir.Sub("file"), "mine");
  const auto before = FilesBelow(dir.path());
  for (const char* name : {"data", "used", "cut", "file"}) {
    CAPTURE(name);
    CHECK(RestoreTo(name).status().code() == StatusCode::kInvalidArgument);
  }
  const Status absent = RestoreTo("absent/new").status();
  CHECK(absent.code() == StatusCode::kIoError);
  CHECK(absent.message() == "cannot make directory " + dir.Sub("absent/new") +
                                ": No such file or directory; make " + dir.Sub("absent") +
                                " first");
  CHECK(Contains(RestoreTo("cut").status().message(), "remove that first"));
  const Status within = RestoreTo("backup/new").status();
  CHECK(within.code() == StatusCode::kInvalidArgument);
  CHECK(Contains(within.message(), "lies within the backup"));
  CHECK((FilesBelow(dir.path()) == before));
  fs::create_directory(dir.Sub("empty"));
  CHECK(RestoreTo("empty").ok());
}

}  // namespace
}  // namespace nowcalls::backup
