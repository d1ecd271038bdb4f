// The files of a ledger at one moment: they stay as they were, whatever its server does then.
#include "store/frozen_files.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "store/ledger_files.h"
#include "store/log_views.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

std::shared_ptr<FrozenFiles> Freeze(const TempDir& dir) {
  auto frozen = FrozenFiles::Take(dir.Sub("ledger"));
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
  CommitMany(&script, 40, 60, store.get());
  const auto frozen = Freeze(dir);
  const auto shown = Shown(dir, frozen.get());
  const std::string manifest = CurrentManifest(dir.Sub("ledger"));
  REQUIRE(shown.contains("CURRENT"));
  REQUIRE(shown.contains("witness"));
  REQUIRE(shown.contains(manifest));
  CHECK(shown.size() > 5);
  for (const auto& [name, bytes] : shown) {
    CHECK_MESSAGE(ReadFileToString(dir.Sub("ledger/" + name)).starts_with(bytes), name);
  }

  const auto is_gone = [&](const auto& file) {
    return IsLog(file.first) && !fs::exists(dir.Sub("ledger/" + file.first));
  };
  for (int i = 0; i < 400 && std::none_of(shown.begin(), shown.end(), is_gone); ++i) {
    CommitMany(&script, 10, 60, store.get());
  }
  CHECK(std::any_of(shown.begin(), shown.end(), is_gone));
  CHECK(SizeOf(dir.Sub("ledger/" + manifest)) > shown.at(manifest).size());
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
    CHECK(frozen->GetFileSize(path, {}, &size, nullptr).IsNotFound() == !other);
    CHECK(rocksdb::ReadFileToString(frozen.get(), path, &read).IsNotFound() == !other);
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    CHECK(frozen->NewRandomAccessFile(path, {}, &file, nullptr).IsNotFound() == !other);
    CHECK(read == (other ? text : ""));
  }
}

// Makes what a server has written so far into the ledger of another directory.
void CopyLedger(const TempDir& from, const TempDir& to) {
  fs::copy(from.Sub("ledger"), to.Sub("ledger"), fs::copy_options::recursive);
}

TEST_CASE("of the newest log what is half written is not shown, of older ones all is") {
  const TempDir dir;
  {
    const auto store = OpenTiny(dir.path());
    LedgerScript script(132);
    CommitMany(&script, 20, 20, store.get());
    const TempDir copy;
    CopyLedger(dir, copy);
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

TEST_CASE("damage before the end of a log or of the manifest stays in sight") {
  const TempDir dir;
  const auto store = OpenTiny(dir.path());
  LedgerScript script(133);
  CommitMany(&script, 20, 20, store.get());
  const std::string log = LedgerFiles(dir.path(), ".log").back();
  const std::string manifest = dir.Sub("ledger/" + CurrentManifest(dir.Sub("ledger")));
  for (const std::string& path : {log, manifest}) {
    CAPTURE(path);
    const TempDir copy;
    CopyLedger(dir, copy);
    const std::string name = fs::path(path).filename();
    const std::string damaged = copy.Sub("ledger/" + name);
    FlipByte(damaged, 60, 0x40);
    CHECK((Shown(copy, Freeze(copy).get()).at(name) == ReadFileToString(damaged)));
  }
}

TEST_CASE("a file that cannot be opened is named; one that is a directory is none") {
  const TempDir dir;
  const auto store = OpenTiny(dir.path());
  fs::create_directory(dir.Sub("ledger/999990.log"));
  CHECK_FALSE(Shown(dir, Freeze(dir).get()).contains("999990.log"));
  // A loop, since root may open every file.
  fs::create_symlink("999991.sst", dir.Sub("ledger/999991.sst"));
  const auto frozen = FrozenFiles::Take(dir.Sub("ledger"));
  CHECK(frozen.status().code() == StatusCode::kIoError);
  CHECK(frozen.status().message().find("999991.sst") != std::string::npos);
  CHECK(FrozenFiles::Take(dir.Sub("absent")).status().code() != StatusCode::kOk);
}

}  // namespace
}  // namespace nowcalls::store
