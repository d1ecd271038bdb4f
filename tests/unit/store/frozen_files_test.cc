// The files of a ledger at one moment: they stay as they were, whatever its server does then.
#include "store/rocks/frozen_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "store/disk/file_names.h"
#include "store/disk/ledger_files.h"
#include "store/log/log_scan.h"
#include "store/log/log_views.h"
#include "store/salvage/log_salvage.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

std::shared_ptr<FrozenFiles> Freeze(const TempDir& dir, const std::function<void()>& between = {}) {
  auto frozen = FrozenFiles::Take(dir.Sub("ledger"), between);
  REQUIRE_MESSAGE(frozen.ok(), frozen.status().ToString());
  return *std::move(frozen);
}

// What is shown of each file; read once from its beginning, once from anywhere.
std::map<std::string, std::string> Shown(const TempDir& dir, FrozenFiles* frozen) {
  std::map<std::string, std::string> shown;
  std::vector<std::string> names;
  REQUIRE(frozen->GetChildren(dir.Sub("ledger"), {}, &names, nullptr).ok());
  for (const std::string& name : names) {
    const std::string path = dir.Sub("ledger/" + name);
    CAPTURE(path);
    CHECK(frozen->FileExists(path, {}, nullptr).ok());
    std::string& bytes = shown[name];
    REQUIRE(rocksdb::ReadFileToString(frozen, path, &bytes).ok());
    uint64_t size = 0;
    REQUIRE(frozen->GetFileSize(path, {}, &size, nullptr).ok());
    CHECK(size == bytes.size());
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    REQUIRE(frozen->NewRandomAccessFile(path, {}, &file, nullptr).ok());
    std::vector<char> buffer(size + 100);
    rocksdb::Slice read;
    REQUIRE(file->Read(size / 2, buffer.size(), {}, &read, buffer.data(), nullptr).ok());
    CHECK((read.ToString() == bytes.substr(size / 2)));
  }
  std::vector<rocksdb::FileAttributes> attributes;
  REQUIRE(frozen->GetChildrenFileAttributes(dir.Sub("ledger"), {}, &attributes, nullptr).ok());
  CHECK(attributes.size() == names.size());
  for (const auto& file : attributes) CHECK(file.size_bytes == shown[file.name].size());
  return shown;
}

TEST_CASE("frozen files stay as they were while their server goes on, and when they are gone") {
  const TempDir dir;
  RocksStoreOptions options = TinyOptions();
  options.wal_bytes_max = 4 * kTinyBufferBytes;
  auto opened = RocksStore::Open(dir.path(), options);
  REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
  const auto store = *std::move(opened);
  LedgerScript script(131);
  CommitMany(&script, 60, 60, store.get());
  const auto frozen = Freeze(dir);
  const auto shown = Shown(dir, frozen.get());
  REQUIRE(shown.contains("CURRENT"));
  REQUIRE(shown.contains("witness"));
  const std::string& current = shown.at("CURRENT");
  const std::string manifest = current.substr(0, current.find('\n'));
  REQUIRE(shown.contains(manifest));
  CHECK(shown.size() > 5);
  for (const auto& [name, bytes] : shown) {
    const std::string path = dir.Sub("ledger/" + name);
    const std::string now = ReadFileToString(path);
    // The first is written in place, the second may be replaced; RocksDB may take files away.
    if (name == "witness" || name == "CURRENT" || !fs::exists(path)) continue;
    CAPTURE(path);
    CHECK(now.starts_with(bytes));
  }

  const auto is_gone = [&](const auto& file) {
    return IsLog(file.first) && !fs::exists(dir.Sub("ledger/" + file.first));
  };
  const auto has_changed = [&] {
    std::error_code gone;
    const uint64_t bytes = fs::file_size(dir.Sub("ledger/" + manifest), gone);
    return gone || bytes > shown.at(manifest).size();
  };
  const auto went_on = [&] {
    return std::any_of(shown.begin(), shown.end(), is_gone) && has_changed();
  };
  for (int i = 0; i < 400 && !went_on(); ++i) CommitMany(&script, 10, 60, store.get());
  CHECK(went_on());
  CHECK((Shown(dir, frozen.get()) == shown));
  REQUIRE(store->Close().ok());
  fs::remove_all(dir.Sub("ledger"));
  CHECK((Shown(dir, frozen.get()) == shown));
}

TEST_CASE("files of a ledger that came later are not shown, and others are as they are") {
  const TempDir dir;
  const auto store = OpenTiny(dir.path());
  const auto frozen = Freeze(dir);
  const std::string text = "later";
  for (const char* name : {"999990.log", "999991.sst", "MANIFEST-999992", "other"}) {
    CAPTURE(name);
    const std::string path = dir.Sub("ledger/" + std::string(name));
    WriteStringToFile(path, text);
    const bool other = path.ends_with("other");
    std::string read;
    uint64_t size = 0;
    CHECK(frozen->FileExists(path, {}, nullptr).IsNotFound() == !other);
    CHECK(frozen->GetFileSize(path, {}, &size, nullptr).IsPathNotFound() == !other);
    CHECK(rocksdb::ReadFileToString(frozen.get(), path, &read).IsPathNotFound() == !other);
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    CHECK(frozen->NewRandomAccessFile(path, {}, &file, nullptr).IsPathNotFound() == !other);
    CHECK(read == (other ? text : ""));
  }
  for (const char* slash : {"", "/"}) {
    std::vector<std::string> names;
    REQUIRE(frozen->GetChildren(dir.Sub("ledger") + slash, {}, &names, nullptr).ok());
    CHECK(std::count(names.begin(), names.end(), "CURRENT") == 1);
    for (const std::string& name : names) CHECK_FALSE(name.starts_with("99999"));
  }
}

TEST_CASE("of the newest log what is half written is not shown, of older ones all is") {
  const TempDir dir;
  {
    const auto store = OpenTiny(dir.path());
    LedgerScript script(132);
    CommitMany(&script, 20, 20, store.get());
    const TempDir copy;
    CopyLedger(dir.path(), copy.path());
    const std::string path = LedgerFiles(copy.path(), ".log").back();
    const std::string whole = ReadFileToString(path);
    REQUIRE(whole.size() > 1000);
    const std::string name = fs::path(path).filename();
    for (const size_t cut : {size_t{1}, size_t{100}, size_t{500}}) {
      CAPTURE(cut);
      WriteStringToFile(path, whole.substr(0, whole.size() - cut));
      const std::string shown = Shown(copy, Freeze(copy).get()).at(name);
      CHECK(shown.size() < whole.size() - cut);
      CHECK(whole.starts_with(shown));
      // A newer one that holds nothing, as a spare, changes nothing.
      const std::string newer = copy.Sub("ledger/999990.log");
      WriteStringToFile(newer, std::string(70'000, '\0'));
      auto both = Shown(copy, Freeze(copy).get());
      CHECK((both.at(name) == shown));
      CHECK(both.at("999990.log").empty());
      WriteStringToFile(newer, whole);
      both = Shown(copy, Freeze(copy).get());
      CHECK((both.at(name) == whole.substr(0, whole.size() - cut)));
      CHECK((both.at("999990.log") == whole));
      fs::remove(newer);
    }
  }
}

// A ledger that nobody writes, and the names of its newest log and of its manifest.
struct Still {
  Still() {
    const auto store = OpenTiny(dir.path());
    LedgerScript script(133);
    CommitMany(&script, 20, 20, store.get());
    log = fs::path(LedgerFiles(dir.path(), ".log").back()).filename();
    manifest = CurrentManifest(dir.Sub("ledger"));
  }
  std::string PathOf(const std::string& name) const { return dir.Sub("ledger/" + name); }

  const TempDir dir;
  std::string log;
  std::string manifest;
};

TEST_CASE("damage of a log or of the manifest stays in sight, wherever it is") {
  const Still still;
  for (const std::string& name : {still.log, still.manifest}) {
    const std::string whole = ReadFileToString(still.PathOf(name));
    for (const size_t at : {size_t{60}, whole.size() - 1}) {
      CAPTURE(name);
      CAPTURE(at);
      FlipByte(still.PathOf(name), at, 0x40);
      const std::string damaged = ReadFileToString(still.PathOf(name));
      CHECK((Shown(still.dir, Freeze(still.dir).get()).at(name) == damaged));
      WriteStringToFile(still.PathOf(name), whole);
    }
  }
}

TEST_CASE("sectors that a crash of the machine took stay in sight") {
  const Still still;
  const std::string path = still.PathOf(still.log);
  const std::string whole = ReadFileToString(path);
  // Of the last record only what a sector or two hold.
  const size_t zeros = (whole.size() / 512 - 1) * 512;
  std::string torn = whole;
  std::fill_n(torn.begin() + static_cast<ptrdiff_t>(zeros), 512, '\0');
  WriteStringToFile(path, torn);
  CHECK((Shown(still.dir, Freeze(still.dir).get()).at(still.log) == torn));
}

// The manifest with one more record, which says nothing new.
void AppendRecord(const std::string& manifest) {
  const std::string bytes = ReadFileToString(manifest);
  std::string record;
  AppendLogRecord(std::string("\x04\x00", 2), &record);
  const bool fits = bytes.size() % LogScan::kBlockBytes + 100 < LogScan::kBlockBytes;
  REQUIRE(fits);
  WriteStringToFile(manifest, bytes + record);
}

TEST_CASE("a data file that was being written at the first look is whole at the last") {
  const Still still;
  const std::string table = still.PathOf("888888.sst");
  const std::string whole(10'000, 'x');
  WriteStringToFile(table, whole.substr(0, 100));
  int looks = 0;
  const auto frozen = Freeze(still.dir, [&] {
    if (++looks > 1) return;
    WriteStringToFile(table, whole);
    AppendRecord(still.PathOf(still.manifest));
  });
  CHECK(looks == 2);
  const auto shown = Shown(still.dir, frozen.get());
  CHECK((shown.at("888888.sst") == whole));
  CHECK((shown.at(still.manifest) == ReadFileToString(still.PathOf(still.manifest))));
}

TEST_CASE("a file that becomes another, or goes, between two looks is not the one that was") {
  const Still still;
  const auto replace = [&](const std::string& name, const std::string& bytes) {
    WriteStringToFile(still.PathOf("next"), bytes);
    fs::rename(still.PathOf("next"), still.PathOf(name));
  };
  WriteStringToFile(still.PathOf("888888.sst"), "one");
  WriteStringToFile(still.PathOf("888889.sst"), "goes");
  int looks = 0;
  const auto frozen = Freeze(still.dir, [&] {
    if (++looks > 1) return;
    replace("888888.sst", "another");
    replace(still.log, "");
    fs::remove(still.PathOf("888889.sst"));
  });
  CHECK(looks == 2);
  const auto shown = Shown(still.dir, frozen.get());
  CHECK(shown.at("888888.sst") == "another");
  CHECK(shown.at(still.log).empty());
  CHECK_FALSE(shown.contains("888889.sst"));
}

TEST_CASE("a log that goes when it is open and the witness has been read is kept") {
  const Still still;
  const std::string log = ReadFileToString(still.PathOf(still.log));
  const auto frozen = Freeze(still.dir, [&] {
    fs::remove(still.PathOf(still.log));
    // As if it went between the list of the names and the look at them.
    fs::create_symlink("nowhere", still.PathOf(still.log));
  });
  CHECK((Shown(still.dir, frozen.get()).at(still.log) == log));
}

TEST_CASE("a log that comes between two looks is looked at, and so is a new manifest") {
  const Still still;
  const std::string log = ReadFileToString(still.PathOf(still.log));
  int looks = 0;
  const auto frozen = Freeze(still.dir, [&] {
    ++looks;
    if (looks == 1) WriteStringToFile(still.PathOf("888888.log"), log);
    if (looks != 2) return;
    fs::copy(still.PathOf(still.manifest), still.PathOf("MANIFEST-888889"));
    fs::remove(still.PathOf(still.manifest));
    WriteStringToFile(still.PathOf("CURRENT"), "MANIFEST-888889\n");
  });
  CHECK(looks == 3);
  const auto shown = Shown(still.dir, frozen.get());
  CHECK((shown.at("888888.log") == log));
  CHECK((shown.at(still.log) == log));
  CHECK(shown.contains("MANIFEST-888889"));
  CHECK_FALSE(shown.contains(still.manifest));
}

TEST_CASE("a ledger that changes at every look is left alone in the end") {
  const Still still;
  int looks = 0;
  const auto frozen = FrozenFiles::Take(still.dir.Sub("ledger"), [&] {
    ++looks;
    AppendRecord(still.PathOf(still.manifest));
  });
  CHECK(frozen.status().code() == StatusCode::kUnavailable);
  CHECK(looks >= 100);
}

TEST_CASE("a file that cannot be opened is a failure for who wants it; a directory is none") {
  const Still still;
  fs::create_directory(still.PathOf("999990.log"));
  // A loop, since root may open every file.
  const std::string path = still.PathOf("999991.sst");
  fs::create_symlink("999991.sst", path);
  const auto frozen = Freeze(still.dir);
  std::vector<std::string> names;
  REQUIRE(frozen->GetChildren(still.dir.Sub("ledger"), {}, &names, nullptr).ok());
  CHECK(std::count(names.begin(), names.end(), "999990.log") == 0);
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  const auto opened = frozen->NewRandomAccessFile(path, {}, &file, nullptr);
  CHECK(opened.IsIOError());
  CHECK(opened.ToString().find(path) != std::string::npos);
  CHECK(FrozenFiles::Take(still.dir.Sub("absent")).status().code() == StatusCode::kCorruption);
}

}  // namespace
}  // namespace nowcalls::store
