// Copies of a ledger's files: whole, of one moment, and without what belongs to its server.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "store/disk/data_dir.h"
#include "store/disk/file_copy.h"
#include "store/rocks/ledger_reader.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/elsewhere.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;

const std::atomic<bool> kNever{false};

// Copies the ledger of `store` to `data_dir`, which does not exist.
std::vector<CopiedFile> CopyOf(const CopySource& store, const std::string& data_dir) {
  fs::create_directories(data_dir + "/ledger");
  Result<std::vector<CopiedFile>> copied = store.CopyTo(data_dir + "/ledger", kNever);
  REQUIRE_MESSAGE(copied.ok(), copied.status().ToString());
  return *std::move(copied);
}

std::unique_ptr<RocksStore> OpenAccepted(const std::string& data_dir,
                                         const RocksStoreOptions& options) {
  auto opened = RocksStore::Open(data_dir, options);
  REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
  REQUIRE((*opened)->Accept().ok());
  return *std::move(opened);
}

TEST_CASE("a copy is the ledger, each file of it is told, and there are no others") {
  const TempDir dir;
  LedgerScript script(101);
  const auto store = OpenAccepted(dir.Sub("data"), TinyOptions());
  for (int round = 0; round < 4; ++round) {
    CAPTURE(round);
    const std::string to = dir.Sub("copy" + std::to_string(round));
    const std::vector<CopiedFile> files = CopyOf(*store, to);
    CHECK(DifferenceOf(DumpAt(to), script.Expected()) == "");
    size_t found = 0;
    for (const auto& entry : fs::directory_iterator(to + "/ledger")) {
      ++found;
      const std::string bytes = ReadFileToString(entry.path());
      const CopiedFile wanted{entry.path().filename(), bytes.size(), Crc32c(bytes)};
      CAPTURE(wanted.name);
      CHECK(std::count(files.begin(), files.end(), wanted) == 1);
    }
    CHECK(found == files.size());
    CommitMany(&script, 40, 50, store.get());
  }
}

TEST_CASE("a copy can be opened by a server and written to, and the original does not notice") {
  const TempDir dir;
  LedgerScript script(102);
  const auto store = OpenAccepted(dir.Sub("data"), TinyOptions());
  CommitMany(&script, 60, 60, store.get());
  CopyOf(*store, dir.Sub("copy"));
  LedgerScript branch = script;
  {
    const auto copy = OpenAccepted(dir.Sub("copy"), TinyOptions());
    CHECK(DifferenceOf(DumpOf(copy.get()), script.Expected()) == "");
    CommitMany(&branch, 60, 60, copy.get());
    CHECK(DifferenceOf(DumpOf(copy.get()), branch.Expected()) == "");
  }
  CommitMany(&script, 30, 60, store.get());
  REQUIRE(store->Close().ok());
  CHECK(DifferenceOf(DumpAt(dir.Sub("data")), script.Expected()) == "");
}

TEST_CASE(
    "a copy made while batches are committed is what one of them left, of those since it began") {
  const TempDir dir;
  LedgerScript script(103);
  const auto store = OpenAccepted(dir.Sub("data"), SyncedOptions());
  constexpr int kBatches = 600;
  std::vector<Dump> after = {script.Expected()};
  std::vector<ledger::CommitBatch> batches(kBatches);
  for (ledger::CommitBatch& batch : batches) {
    script.NextBatch(20, &batch);
    after.push_back(script.Expected());
  }
  std::atomic<size_t> committed{0};
  std::thread writer([&] {
    for (const ledger::CommitBatch& batch : batches) {
      if (!store->Commit(batch).ok()) return;
      ++committed;
    }
  });
  int copies = 0;
  for (; copies < 3 || (committed < kBatches && copies < 50); ++copies) {
    const std::string to = dir.Sub("copy" + std::to_string(copies));
    const size_t before = committed;
    CopyOf(*store, to);
    const size_t behind = committed;
    const Dump got = DumpAt(to);
    const uint64_t number = BatchNumberOf(got);
    CHECK(number >= before);
    CHECK(number <= behind + 1);
    REQUIRE(number < after.size());
    CHECK(DifferenceOf(got, after[number]) == "");
  }
  writer.join();
  CHECK(committed == kBatches);
  CHECK(copies >= 3);
}

bool HasZeros(const std::string& path) {
  const std::string bytes = ReadFileToString(path);
  return !bytes.empty() && bytes.back() == '\0';
}

bool AnyHasZeros(const std::string& data_dir) {
  const std::vector<std::string> logs = LedgerFiles(data_dir, ".log");
  return std::any_of(logs.begin(), logs.end(), HasZeros);
}

TEST_CASE("the zeros behind a log and the spare stay behind, beside a server and after its kill") {
  const TempDir dir;
  LedgerScript script(104);
  const auto store = OpenAccepted(dir.Sub("data"), SyncedOptions());
  for (int i = 0; i < 5000 && !AnyHasZeros(dir.Sub("data")); ++i) {
    CommitMany(&script, 1, 30, store.get());
  }
  REQUIRE(AnyHasZeros(dir.Sub("data")));
  CopyLedger(dir.Sub("data"), dir.Sub("killed"));
  testing::WriteStringToFile(dir.Sub("killed/ledger/spare_log"), "half");
  // Of the record that was being written a power cut left the first half.
  const std::string log = LedgerFiles(dir.Sub("killed"), ".log").back();
  std::string bytes = ReadFileToString(log);
  const size_t end = bytes.find_last_not_of('\0') + 1;
  bytes.insert(end, bytes.substr(0, 20));
  testing::WriteStringToFile(log, "");
  fs::remove(log);
  testing::WriteStringToFile(log, bytes);

  CopyOf(*store, dir.Sub("live"));
  {
    const auto lock = LedgerLock::Take(dir.Sub("killed"));
    REQUIRE(lock.ok());
    const auto killed = LedgerReader::Open(**lock);
    REQUIRE_MESSAGE(killed.ok(), killed.status().ToString());
    CopyOf(**killed, dir.Sub("at_rest"));
  }
  for (const std::string& copy : {dir.Sub("live"), dir.Sub("at_rest")}) {
    CAPTURE(copy);
    CHECK_FALSE(fs::exists(copy + "/ledger/spare_log"));
    CHECK_FALSE(AnyHasZeros(copy));
    CHECK_FALSE(LedgerFiles(copy, ".log").empty());
    CHECK(DifferenceOf(DumpAt(copy), script.Expected()) == "");
  }
  CHECK(ReadFileToString(LedgerFiles(dir.Sub("at_rest"), ".log").back()) == bytes.substr(0, end));
}

TEST_CASE("data files are linked within a file system and copied to another") {
  const TempDir dir;
  LedgerScript script(105);
  const auto store = OpenAccepted(dir.Sub("data"), TinyOptions());
  CommitMany(&script, 60, 60, store.get());
  CopyOf(*store, dir.Sub("copy"));
  const auto inode = [](const std::string& path) {
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    return std::pair(info.st_dev, info.st_ino);
  };
  const auto tables = LedgerFiles(dir.Sub("copy"), ".sst");
  REQUIRE_FALSE(tables.empty());
  for (const std::string& table : tables) {
    CHECK(inode(table) == inode(dir.Sub("data/ledger/" + fs::path(table).filename().string())));
  }
  for (const std::string& log : LedgerFiles(dir.Sub("copy"), ".log")) {
    CHECK(inode(log) != inode(dir.Sub("data/ledger/" + fs::path(log).filename().string())));
  }
  const Elsewhere elsewhere(dir);
  if (!elsewhere.Found()) return;
  CopyOf(*store, elsewhere.Sub("copy"));
  CHECK(DifferenceOf(DumpAt(elsewhere.Sub("copy")), script.Expected()) == "");
}

TEST_CASE("a copy that is stopped says so, and one beside a server that is not ours is refused") {
  const TempDir dir;
  LedgerScript script(106);
  const auto store = OpenAccepted(dir.Sub("data"), TinyOptions());
  CommitMany(&script, 10, 60, store.get());
  const std::atomic<bool> stop{true};
  fs::create_directories(dir.Sub("copy"));
  CHECK(store->CopyTo(dir.Sub("copy"), stop).status().code() == StatusCode::kUnavailable);
  const auto reader = LedgerReader::Open(dir.Sub("data"));
  REQUIRE(reader.ok());
  REQUIRE((*reader)->mode() == ReadMode::kBesideServer);
  fs::create_directories(dir.Sub("other"));
  const Status refused = (*reader)->CopyTo(dir.Sub("other"), kNever).status();
  CHECK(refused.code() == StatusCode::kFailedPrecondition);
  CHECK(fs::is_empty(dir.Sub("other")));
}

TEST_CASE(
    "a directory that is a backup, finished or not, is opened for reading and not for writing") {
  const TempDir dir;
  LedgerScript script(107);
  {
    const auto store = OpenAccepted(dir.path(), TinyOptions());
    CommitMany(&script, 3, 20, store.get());
  }
  const std::map<const char*, const char*> backups = {
      {kBackupManifestName, "nowcalls-admin restore"}, {kBackupUnfinishedName, "never finished"}};
  for (const auto& backup : backups) {
    const char* const name = backup.first;
    const char* const says = backup.second;
    CAPTURE(says);
    testing::WriteStringToFile(dir.Sub(name), "{}");
    const Status refused = RocksStore::Open(dir.path(), TinyOptions()).status();
    CHECK(refused.code() == StatusCode::kInvalidArgument);
    CHECK(refused.message().find(says) != std::string::npos);
    CHECK(DifferenceOf(DumpAt(dir.path()), script.Expected()) == "");
    fs::remove(dir.Sub(name));
  }
  // One that was copied without either.
  testing::WriteStringToFile(dir.Sub("ledger/" + std::string(kBackupMarkName)), "");
  const Status refused = RocksStore::Open(dir.path(), TinyOptions()).status();
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK(refused.message().find("nowcalls-admin repair") != std::string::npos);
  const auto read = LedgerReader::Open(dir.path());
  REQUIRE_MESSAGE(read.ok(), read.status().ToString());
  CHECK(DifferenceOf(DumpOf(read->get()), script.Expected()) == "");
  CHECK((*read)->notes() == std::vector<std::string>{refused.message()});
}

TEST_CASE("a directory of a name that tells of a backup or a database does not tell of one") {
  const TempDir dir;
  OpenAccepted(dir.path(), TinyOptions());
  const std::string mark = "ledger/" + std::string(kBackupMarkName);
  for (const std::string& name :
       {std::string(kBackupManifestName), std::string(kBackupUnfinishedName), mark,
        std::string("CURRENT")}) {
    CAPTURE(name);
    fs::create_directory(dir.Sub(name));
    CHECK(LedgerLock::Take(dir.path()).ok());
    fs::remove(dir.Sub(name));
  }
}

TEST_CASE("no ledger is made where a restore did not end, and one that is there is opened") {
  const TempDir dir;
  const std::string data_dir = dir.Sub("data");
  fs::create_directories(data_dir + "/restoring/ledger");
  for (const bool has_ledger_dir : {false, true}) {
    CAPTURE(has_ledger_dir);
    if (has_ledger_dir) fs::create_directory(data_dir + "/ledger");
    for (const Status& refused : {LedgerLock::Take(data_dir).status(),
                                  RocksStore::Open(data_dir, TinyOptions()).status()}) {
      CHECK(refused.code() == StatusCode::kInvalidArgument);
      CHECK(refused.message().find("remove " + data_dir + "/restoring and run") !=
            std::string::npos);
    }
    CHECK(fs::exists(data_dir + "/ledger") == has_ledger_dir);
  }
  fs::remove_all(data_dir);
  OpenAccepted(data_dir, TinyOptions());
  // Killed between the last two steps of a restore.
  fs::create_directory(data_dir + "/restoring");
  CHECK(RocksStore::Open(data_dir, TinyOptions()).ok());
}

TEST_CASE("no ledger is made where a repair did not end, nor is half a one taken for it") {
  const TempDir dir;
  const std::string partial = dir.Sub("new.partial");
  OpenAccepted(dir.Sub("half"), TinyOptions());
  fs::create_directory(partial);
  fs::rename(dir.Sub("half"), partial + "/repairing");
  const Status refused = RocksStore::Open(partial, TinyOptions()).status();
  CHECK(refused.code() == StatusCode::kInvalidArgument);
  CHECK(refused.message().find("a repair to " + partial + " did not end") != std::string::npos);
  CHECK(refused.message().find("remove " + partial + " and run `nowcalls-admin repair` again") !=
        std::string::npos);
  CHECK_FALSE(fs::exists(partial + "/ledger"));
}

TEST_CASE("a copied file has the checksum of its bytes, and one that is too short is refused") {
  const TempDir dir;
  const std::string bytes(700'000, 'x');
  testing::WriteStringToFile(dir.Sub("from"), bytes);
  const auto copied = CopyFile(dir.Sub("from"), dir.Sub("to"), 600'000, kNever);
  REQUIRE(copied.ok());
  CHECK(*copied == CopiedFile{"to", 600'000, Crc32c(bytes.substr(0, 600'000))});
  CHECK(ReadFileToString(dir.Sub("to")) == bytes.substr(0, 600'000));
  CHECK(CopyFile(dir.Sub("from"), dir.Sub("to"), 1, kNever).status().code() ==
        StatusCode::kAlreadyExists);
  CHECK(CopyFile(dir.Sub("from"), dir.Sub("longer"), 700'001, kNever).status().code() ==
        StatusCode::kIoError);
  CHECK(CheckRoom(dir.path(), UINT64_MAX / 2).code() == StatusCode::kIoError);
  CHECK(CheckRoom(dir.path(), 1).ok());
}

}  // namespace
}  // namespace nowcalls::store
