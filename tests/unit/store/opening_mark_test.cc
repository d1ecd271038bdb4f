// What opens leave that were killed before they kept what they had recovered.
#include "store/opening_mark.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <string>

#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

std::map<std::string, std::string> FilesOf(const std::string& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(dir)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("LOG")) files[name] = ReadFileToString(entry.path());
  }
  return files;
}

// A directory that looks like a ledger's to the mark.
class MarkedDir {
 public:
  MarkedDir() {
    Write("CURRENT", "MANIFEST-000005\n");
    Write("MANIFEST-000005", "manifest");
    Write("IDENTITY", "one");
    Write("000004.log", "log");
    Write("000009.sst", "data");
  }

  std::string Path(const std::string& name) const { return dir_.path() + "/" + name; }
  void Write(const std::string& name, const std::string& text) const {
    WriteStringToFile(Path(name), text);
  }
  bool Has(const std::string& name) const { return fs::exists(Path(name)); }
  OpeningMark Mark() const { return {rocksdb::FileSystem::Default(), dir_.path()}; }

 private:
  TempDir dir_;
};

TEST_CASE("the numbers of files that an open makes are known by their names") {
  CHECK(MadeFileNumber("000012.sst") == 12);
  CHECK(MadeFileNumber("000012.log") == 12);
  CHECK(MadeFileNumber("000012.dbtmp") == 12);
  CHECK(MadeFileNumber("MANIFEST-000012") == 12);
  CHECK(MadeFileNumber("OPTIONS-1234567") == 1'234'567);
  CHECK(MadeFileNumber("OPTIONS-000012.dbtmp") == 12);
  for (const std::string_view name :
       {"", "12", "000012", "x12.sst", "12.sstx", "12.sst.old", "CURRENT", "LOCK", "witness",
        "opening", "spare_log", "MANIFEST-", "MANIFEST-x", "-1.sst", "99999999999999999999.sst"}) {
    CAPTURE(name);
    CHECK(MadeFileNumber(name) == 0);
  }
}

TEST_CASE("what came after the mark goes at the next open, and nothing else") {
  const MarkedDir dir;
  REQUIRE(dir.Mark().Begin().ok());
  for (const char* made : {"000010.sst", "000011.log", "MANIFEST-000012", "OPTIONS-000013",
                           "000014.dbtmp", "OPTIONS-000015.dbtmp"}) {
    dir.Write(made, "made");
  }
  for (const char* other : {"000007.sst", "000016.sst.keep", "000017", "notes.txt"}) {
    dir.Write(other, "other");
  }
  REQUIRE(dir.Mark().Begin().ok());
  CHECK(FilesOf(fs::path(dir.Path("x")).parent_path()).size() == 10);
  for (const char* kept : {"CURRENT", "IDENTITY", "MANIFEST-000005", "000004.log", "000009.sst",
                           "000007.sst", "000016.sst.keep", "000017", "notes.txt", "opening"}) {
    CAPTURE(kept);
    CHECK(dir.Has(kept));
  }
  REQUIRE(dir.Mark().Remove().ok());
  CHECK_FALSE(dir.Has("opening"));
  CHECK(dir.Mark().Remove().ok());
}

TEST_CASE("a mark of another ledger, of before its CURRENT was replaced, or damaged, is none") {
  const auto change = [](const MarkedDir& dir, int which) {
    if (which == 0) dir.Write("IDENTITY", "two");
    if (which == 1) dir.Write("MANIFEST-000005", "a longer manifest");
    if (which == 2) dir.Write("CURRENT", "MANIFEST-000012\n");
    if (which >= 3) {
      std::string mark = ReadFileToString(dir.Path("opening"));
      const auto bytes = static_cast<int>(mark.size());
      if (which - 3 < bytes) {
        mark[static_cast<size_t>(which - 3)] ^= 1;
      } else {
        mark.resize(static_cast<size_t>(which - 3 - bytes));
      }
      dir.Write("opening", mark);
    }
  };
  for (int which = 0; which < 150; ++which) {
    const MarkedDir dir;
    REQUIRE(dir.Mark().Begin().ok());
    dir.Write("MANIFEST-000012", "manifest");
    dir.Write("000013.log", "log");
    if (which >= 3 + 2 * static_cast<int>(ReadFileToString(dir.Path("opening")).size())) break;
    change(dir, which);
    CAPTURE(which);
    REQUIRE(dir.Mark().Begin().ok());
    CHECK(dir.Has("000013.log"));
    // The new one is about what is there now.
    dir.Write("000014.log", "log");
    REQUIRE(dir.Mark().Begin().ok());
    CHECK(dir.Has("000013.log"));
    CHECK_FALSE(dir.Has("000014.log"));
  }
}

TEST_CASE("a mark that cannot be told to be of the ledger is not made") {
  const MarkedDir dir;
  fs::remove(dir.Path("MANIFEST-000005"));
  REQUIRE(dir.Mark().Begin().ok());
  CHECK_FALSE(dir.Has("opening"));
}

TEST_CASE("starts that are killed one after the other leave no more than one of them") {
  const TempDir dir;
  LedgerScript script(36);
  {
    const auto store = OpenTiny(dir.Sub("whole"));
    CommitMany(&script, 30, 60, store.get());
  }
  {
    const auto store = OpenTiny(dir.Sub("whole"));
    CommitMany(&script, 30, 60, store.get());
    fs::copy(dir.Sub("whole"), dir.Sub("killed"), fs::copy_options::recursive);
  }
  const std::string ledger = dir.Sub("killed/ledger");
  const auto before = FilesOf(ledger);
  size_t left_by_one = 0;
  for (int kill = 0; kill < 4; ++kill) {
    fs::remove_all(dir.Sub("open"));
    fs::rename(dir.Sub("killed"), dir.Sub("open"));
    const auto store = OpenTiny(dir.Sub("open"));
    fs::copy(dir.Sub("open"), dir.Sub("killed"), fs::copy_options::recursive);
    const auto after = FilesOf(ledger);
    CHECK(after.contains("opening"));
    if (kill == 0) left_by_one = after.size();
    CHECK(after.size() == left_by_one);
  }
  REQUIRE(left_by_one > before.size() + 2);
  {
    const auto store = OpenTiny(dir.Sub("killed"));  // Is refused, as it were.
    CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
  }
  CHECK((FilesOf(ledger) == before));
  const auto store = OpenTiny(dir.Sub("killed"));
  REQUIRE(store->Keep().ok());
  CHECK_FALSE(FilesOf(ledger).contains("opening"));
  CommitMany(&script, 5, 50, store.get());
  CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
}

}  // namespace
}  // namespace nowcalls::store
