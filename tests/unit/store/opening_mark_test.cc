// What opens leave that were killed before they kept what they had recovered.
#include "store/rocks/opening_mark.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "support/process.h"
#include "support/sample.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

// A directory that looks like a ledger's to the mark.
class MarkedDir {
 public:
  using Names = std::vector<std::string>;

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
  OpeningMark Mark() const { return {rocksdb::FileSystem::Default().get(), dir_.path()}; }

  // An open makes these and is killed; a log has zeros.
  void MakeAndDie(const Names& names) const {
    OpeningMark mark = Mark();
    CHECK(BeginWith(&mark).empty());
    for (const std::string& name : names) {
      Write(name, name.ends_with(".log") ? std::string(100'000, '\0') : "made");
      REQUIRE(mark.Made(Path(name)).ok());
    }
  }
  // What the next one removes.
  Names Begin() const {
    OpeningMark mark = Mark();
    return BeginWith(&mark);
  }

 private:
  static Names BeginWith(OpeningMark* mark) {
    Names removed;
    REQUIRE(mark->Begin([] { return rocksdb::IOStatus::OK(); }, &removed).ok());
    return removed;
  }

  TempDir dir_;
};

TEST_CASE("what an open made that was killed goes at the next one, and nothing else") {
  const MarkedDir dir;
  const MarkedDir::Names made = {"000010.sst", "000011.log", "MANIFEST-000012", "OPTIONS-000013",
                                 "000014.dbtmp"};
  dir.MakeAndDie(made);
  // Whatever its number.
  for (const char* other : {"000007.sst", "000015.sst", "000016.log", "notes.txt"}) {
    dir.Write(other, "other");
  }
  CHECK(dir.Begin() == made);
  for (const std::string& name : made) CHECK_FALSE(dir.Has(name));
  for (const char* kept : {"CURRENT", "IDENTITY", "MANIFEST-000005", "000004.log", "000009.sst",
                           "000007.sst", "000015.sst", "000016.log", "notes.txt"}) {
    CAPTURE(kept);
    CHECK(dir.Has(kept));
  }
  CHECK(dir.Begin().empty());
  OpeningMark mark = dir.Mark();
  REQUIRE(mark.Remove().ok());
  CHECK_FALSE(dir.Has("opening"));
  CHECK(mark.Remove().ok());
  CHECK(mark.Made(dir.Path("000009.sst")).ok());
  CHECK_FALSE(dir.Has("opening"));
}

TEST_CASE(
    "a file of the same name that came from elsewhere stays, and so does a log with a record") {
  const MarkedDir dir;
  dir.MakeAndDie({"000010.sst", "000011.log", "000012.log", "000013.sst"});
  dir.Write("elsewhere", "data");
  fs::rename(dir.Path("elsewhere"), dir.Path("000010.sst"));
  // As `cp` writes over a file.
  dir.Write("000011.log", std::string(70'000, '\0') + "x");
  fs::remove(dir.Path("000013.sst"));
  fs::create_directory(dir.Path("000013.sst"));
  CHECK(dir.Begin() == MarkedDir::Names{"000012.log"});
  CHECK(dir.Has("000010.sst"));
  CHECK(dir.Has("000011.log"));
  CHECK(dir.Has("000013.sst"));
}

TEST_CASE("a mark of another ledger, or of before its CURRENT was replaced, is none") {
  for (int which = 0; which < 4; ++which) {
    CAPTURE(which);
    const MarkedDir dir;
    dir.MakeAndDie({"MANIFEST-000012", "000013.log"});
    if (which == 0) dir.Write("IDENTITY", "two");
    if (which == 1) dir.Write("MANIFEST-000005", "a longer manifest");
    if (which == 2) dir.Write("CURRENT", "MANIFEST-000012\n");
    if (which == 3) fs::remove(dir.Path("MANIFEST-000005"));
    CHECK(dir.Begin().empty());
    CHECK(dir.Has("000013.log"));
  }
}

TEST_CASE("of a mark that is damaged or cut off, only lines that are whole count") {
  const auto whole = [] {
    const MarkedDir dir;
    dir.MakeAndDie({"000010.sst", "000011.sst"});
    return ReadFileToString(dir.Path("opening")).size();
  }();
  for (const uint64_t at : testing::SampleOf(whole, 20)) {
    for (const bool cut : {true, false}) {
      CAPTURE(at);
      CAPTURE(cut);
      const MarkedDir dir;
      dir.MakeAndDie({"000010.sst", "000011.sst"});
      std::string mark = ReadFileToString(dir.Path("opening"));
      if (at >= mark.size()) continue;
      if (cut) {
        mark.resize(at);
      } else {
        mark[at] = static_cast<char>(mark[at] ^ 1);
      }
      dir.Write("opening", mark);
      CHECK(dir.Begin().size() < 2);
      CHECK(dir.Has("000009.sst"));
    }
  }
}

TEST_CASE("a mark leads to no other directory") {
  const MarkedDir dir;
  dir.MakeAndDie({"000010.sst"});
  fs::create_directory(dir.Path("other"));
  dir.Write("other/f", "data");
  struct stat info {};
  REQUIRE(stat(dir.Path("other/f").c_str(), &info) == 0);
  const std::string line = "other/f " + std::to_string(info.st_ino);
  dir.Write("opening", ReadFileToString(dir.Path("opening")) + line + " " +
                           std::to_string(Crc32c(line)) + "\n");
  CHECK(dir.Begin() == MarkedDir::Names{"000010.sst"});
  CHECK(dir.Has("other/f"));
}

class UnreadableMark : public rocksdb::FileSystemWrapper {
 public:
  UnreadableMark() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "UnreadableMark"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* debug) override {
    if (path.ends_with("/opening")) return rocksdb::IOStatus::IOError("a bad sector");
    return target()->NewSequentialFile(path, options, file, debug);
  }
};

TEST_CASE("a mark that cannot be read is in nobody's way, and what is none is named") {
  {
    const MarkedDir dir;
    dir.MakeAndDie({"000010.sst"});
    UnreadableMark files;
    OpeningMark mark(&files, fs::path(dir.Path("opening")).parent_path());
    MarkedDir::Names removed;
    CHECK(mark.Begin([] { return rocksdb::IOStatus::OK(); }, &removed).ok());
    CHECK(removed.empty());
    CHECK(dir.Has("000010.sst"));
  }
  const TempDir dir;
  { const auto store = OpenTiny(dir.path()); }
  fs::create_directories(dir.Sub("ledger/opening"));
  const auto refused = RocksStore::Open(dir.path(), TinyOptions());
  CHECK(refused.status().code() == StatusCode::kIoError);
  CHECK_MESSAGE(refused.status().message().find(dir.Sub("ledger/opening")) != std::string::npos,
                refused.status().message());
}

TEST_CASE("nothing is removed from a directory that is not the ledger's any more") {
  const MarkedDir dir;
  dir.MakeAndDie({"000010.sst"});
  OpeningMark mark = dir.Mark();
  MarkedDir::Names removed;
  CHECK(mark.Begin([] { return rocksdb::IOStatus::IOFenced("another"); }, &removed).IsIOFenced());
  CHECK(removed.empty());
  CHECK(dir.Has("000010.sst"));
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
    CopyLedger(dir.Sub("whole"), dir.Sub("killed"));
  }
  const std::string killed = dir.Sub("killed");
  const auto before = LedgerContents(killed);
  size_t left_by_one = 0;
  for (int kill = 0; kill < 4; ++kill) {
    fs::remove_all(dir.Sub("open"));
    fs::rename(dir.Sub("killed"), dir.Sub("open"));
    const auto store = OpenTiny(dir.Sub("open"));
    // The very files, as a kill leaves them.
    fs::copy(dir.Sub("open"), dir.Sub("killed"),
             fs::copy_options::recursive | fs::copy_options::create_hard_links);
    const auto after = LedgerContents(killed);
    CHECK(after.contains("opening"));
    if (kill == 0) left_by_one = after.size();
    CHECK(after.size() == left_by_one);
    CHECK(store->notes().size() == (kill == 0 ? 0 : left_by_one - before.size() - 1));
  }
  REQUIRE(left_by_one > before.size() + 2);
  {
    const auto store = OpenTiny(dir.Sub("killed"));  // Is refused, as it were.
    CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
  }
  CHECK((LedgerContents(killed) == before));
  const auto store = OpenTiny(dir.Sub("killed"));
  REQUIRE(store->Accept().ok());
  CHECK_FALSE(LedgerContents(killed).contains("opening"));
  CommitMany(&script, 5, 50, store.get());
  CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
}

}  // namespace
}  // namespace nowcalls::store
