// Backups and restores of ledgers on disk: what is refused, what is checked, what is left behind.
#include "backup/backup.h"

#include <doctest/doctest.h>
#include <rocksdb/db.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backup/restore.h"
#include "base/clock.h"
#include "store/ledger_files.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/backup/served_ledger.h"

namespace nowcalls::backup {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

const std::atomic<bool> kNever{false};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

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
    const Result<Manifest> made = MakeBackupAtRest(data(), backup(), "test 1", kNever);
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
  CHECK(restored->next_fence >= before.seal->next_fence + kFencesSkipped);
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

TEST_CASE("fences go on the further the older a backup is, beyond what earlier copies granted") {
  constexpr int64_t kDayMs = 86'400'000;
  CHECK(FencesToSkip(0) >= kFencesSkipped);
  CHECK(FencesToSkip(-kDayMs) == FencesToSkip(0));
  for (const int64_t age_ms : {int64_t{0}, int64_t{1}, kDayMs, 365 * kDayMs}) {
    CAPTURE(age_ms);
    // A copy that was restored at that age and granted a million a second for an hour since.
    const uint64_t granted = FencesToSkip(age_ms) + uint64_t{1'000'000} * 3600;
    CHECK(FencesToSkip(age_ms + 3'600'000) > granted);
  }
  CHECK(FencesToSkip(20 * 365 * kDayMs) < uint64_t{1} << 53);
  CHECK(FencesToSkip(INT64_MAX) < uint64_t{1} << 62);
}

TEST_CASE("a ledger that was never written to is backed up, and its copy skips fences too") {
  const TempDir dir;
  { const ServedLedger served(dir.Sub("data")); }
  const Result<Manifest> made =
      MakeBackupAtRest(dir.Sub("data"), dir.Sub("backup"), "test", kNever);
  REQUIRE_MESSAGE(made.ok(), made.status().ToString());
  CHECK(made->batch_number == 0);
  const Result<Restored> restored = Restore(dir.Sub("backup"), dir.Sub("new"), Now(), kNever);
  REQUIRE_MESSAGE(restored.ok(), restored.status().ToString());
  const FormatReader meta = ReadMeta(dir.Sub("new"));
  REQUIRE(meta.seal.has_value());
  REQUIRE(meta.mark.has_value());
  CHECK(meta.seal->next_fence == restored->next_fence);
  CHECK(restored->next_fence > kFencesSkipped);
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
    const Status refused = MakeBackupAtRest(data(), c.to, "test", kNever).status();
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK_MESSAGE(Contains(refused.message(), c.says), refused.message());
  }
  CHECK((FilesBelow(dir.path()) == before));
}

TEST_CASE_FIXTURE(BackedUp, "a ledger that a server has, or that is absent, is not backed up") {
  const ServedLedger served(data());
  const Status held = MakeBackupAtRest(data(), dir.Sub("b2"), "test", kNever).status();
  CHECK(held.code() == StatusCode::kAlreadyExists);
  CHECK(Contains(held.message(), std::to_string(getpid())));
  const Status absent = MakeBackupAtRest(dir.Sub("absent"), dir.Sub("b2"), "test", kNever).status();
  CHECK(absent.code() == StatusCode::kNotFound);
  const Status of_backup = MakeBackupAtRest(backup(), dir.Sub("b2"), "test", kNever).status();
  CHECK(of_backup.code() == StatusCode::kInvalidArgument);
  CHECK_FALSE(fs::exists(dir.Sub("b2")));
  CHECK_FALSE(fs::exists(dir.Sub("absent")));
}

TEST_CASE_FIXTURE(BackedUp, "a backup that is stopped leaves nothing") {
  const std::atomic<bool> stop{true};
  const Status stopped = MakeBackupAtRest(data(), dir.Sub("b2"), "test", stop).status();
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
  const Status bad = MakeBackupAtRest(data(), dir.Sub("b2"), "test", kNever).status();
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

TEST_CASE_FIXTURE(BackedUp, "a restore overwrites nothing") {
  fs::create_directory(dir.Sub("used"));
  WriteStringToFile(dir.Sub("used/notes"), "mine");
  fs::create_directory(dir.Sub("cut"));
  fs::create_directory(dir.Sub("cut/restoring"));
  WriteStringToFile(dir.Sub("file"), "mine");
  const auto before = FilesBelow(dir.path());
  for (const char* name : {"data", "used", "cut", "file", "absent/new"}) {
    CAPTURE(name);
    CHECK(RestoreTo(name).status().code() == StatusCode::kInvalidArgument);
  }
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
