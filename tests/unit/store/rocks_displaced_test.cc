// A ledger whose directory is replaced while it is open: nothing is done to the one that is there
// now, and nothing more is acknowledged.
#include <doctest/doctest.h>
#include <rocksdb/file_system.h>

#include <filesystem>
#include <functional>

#include "store/rocks/ledger_file_system.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;
using testing::WriteStringToFile;

bool SaysDisplaced(const Status& status) {
  return status.code() == StatusCode::kAlreadyExists &&
         status.message().find("is no longer the one that this server opened") != std::string::npos;
}

TEST_CASE("a store whose ledger was replaced takes no batch and leaves the other one alone") {
  const TempDir dir;
  LedgerScript script(41);
  REQUIRE(OpenTiny(dir.path())->Close().ok());
  fs::copy(dir.Sub("ledger"), dir.Sub("backup"));
  const auto store = OpenTiny(dir.path());
  CommitMany(&script, 20, 60, store.get());
  CHECK(store->CheckPlace().ok());
  fs::rename(dir.Sub("ledger"), dir.Sub("ledger.old"));
  fs::rename(dir.Sub("backup"), dir.Sub("ledger"));
  const auto before = SnapshotOf(dir.path());
  SUBCASE("found by a commit") {
    ledger::CommitBatch batch;
    script.NextBatch(20, &batch);
    CHECK(SaysDisplaced(store->Commit(batch)));
  }
  SUBCASE("found by a look") { CHECK(SaysDisplaced(store->CheckPlace())); }
  SUBCASE("found by the close") { CHECK(SaysDisplaced(store->Close())); }
  CHECK(store->Close().ok());
  CHECK((SnapshotOf(dir.path()) == before));
}

TEST_CASE("a store whose directory or LOCK file is gone takes no batch") {
  for (const char* gone : {"ledger", "ledger/LOCK"}) {
    CAPTURE(gone);
    const TempDir dir;
    LedgerScript script(42);
    const auto store = OpenTiny(dir.path());
    CommitMany(&script, 2, 20, store.get());
    fs::remove_all(dir.Sub(gone));
    ledger::CommitBatch batch;
    script.NextBatch(20, &batch);
    CHECK(SaysDisplaced(store->Commit(batch)));
    CHECK_FALSE(fs::exists(dir.Sub(gone)));
  }
}

TEST_CASE("a log that was cut and has grown again is found, and nothing of it is lost") {
  const TempDir dir;
  LedgerScript script(43);
  {
    const auto store = OpenTiny(dir.path());
    CommitMany(&script, 5, 20, store.get());
    const std::string log = LedgerFiles(dir.path(), ".log").back();
    SUBCASE("before the first look") { fs::resize_file(log, 0); }
    SUBCASE("behind its beginning") {
      CHECK(store->CheckPlace().ok());
      CHECK(store->CheckPlace().ok());
      fs::resize_file(log, 10);
    }
    CommitMany(&script, 5, 20, store.get());
    const Status harmed = store->CheckPlace();
    CAPTURE(harmed.message());
    CHECK(harmed.message().find(log + " was cut, and has zeros in place of batches") !=
          std::string::npos);
  }
  CHECK(DifferenceOf(DumpAt(dir.path()), script.Expected()).empty());
}

TEST_CASE("a lock does not remove the LOCK file of a ledger that took the place of its own") {
  const TempDir dir;
  {
    const auto lock = LedgerLock::Take(dir.Sub("data"));
    REQUIRE(lock.ok());
    CHECK((*lock)->CheckStillOurs().ok());
    fs::rename(dir.Sub("data"), dir.Sub("data.old"));
    fs::create_directories(dir.Sub("data/ledger"));
    WriteStringToFile(dir.Sub("data/ledger/LOCK"), "");
    CHECK(SaysDisplaced((*lock)->CheckStillOurs()));
  }
  CHECK(fs::exists(dir.Sub("data/ledger/LOCK")));
}

TEST_CASE("RocksDB can make, rename and delete files only where the lock is") {
  const TempDir dir;
  const auto lock = LedgerLock::Take(dir.path());
  REQUIRE(lock.ok());
  LedgerFileSystem files(rocksdb::FileSystem::Default(), lock->get());
  const std::string path = dir.Sub("ledger/000007.sst");
  const auto make = [&] {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    return files.NewWritableFile(path, {}, &file, nullptr);
  };
  CHECK(make().ok());
  CHECK(files.RenameFile(path, path + ".new", {}, nullptr).ok());
  CHECK(make().ok());
  CHECK(files.DeleteFile(path, {}, nullptr).ok());
  CHECK(make().ok());
  fs::rename(dir.Sub("ledger"), dir.Sub("ledger.old"));
  fs::copy(dir.Sub("ledger.old"), dir.Sub("ledger"));
  const auto before = SnapshotOf(dir.path());
  for (const rocksdb::IOStatus& status : {make(), files.RenameFile(path, path + "2", {}, nullptr),
                                          files.DeleteFile(path, {}, nullptr)}) {
    CHECK(status.IsIOFenced());
    CHECK(status.ToString().find("is no longer the one") != std::string::npos);
  }
  CHECK((SnapshotOf(dir.path()) == before));
}

}  // namespace
}  // namespace nowcalls::store
