// What an open does to a ledger before it is proved: nothing that is not undone.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "store/rocks/ledger_reader.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::PollUntil;
using testing::ReadFileToString;
using testing::TempDir;

size_t CountOf(const std::map<std::string, std::string>& files, std::string_view part) {
  return static_cast<size_t>(std::count_if(files.begin(), files.end(), [&](const auto& file) {
    return file.first.find(part) != std::string::npos;
  }));
}

std::string ManifestOf(const std::string& data_dir) {
  const std::string current = ReadFileToString(data_dir + "/ledger/CURRENT");
  return data_dir + "/ledger/" + current.substr(0, current.size() - 1);
}

// A ledger of several data files and a log that is not empty, as after a crash.
void MakeCrashed(const std::string& data_dir, LedgerScript* script) {
  for (int run = 0; run < 2; ++run) {
    const auto store = OpenTiny(data_dir);
    CommitMany(script, 30, 60, store.get());
  }
}

void CopyTree(const std::string& from, const std::string& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

TEST_CASE("a ledger that was opened and not kept is as it was") {
  const TempDir dir;
  LedgerScript script(31);
  MakeCrashed(dir.path(), &script);
  const auto before = LedgerContents(dir.path());
  REQUIRE(CountOf(before, ".sst") > 1);
  for (int start = 0; start < 3; ++start) {
    const auto store = OpenTiny(dir.path());
    CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
  }
  CHECK((LedgerContents(dir.path()) == before));
}

TEST_CASE("a ledger that was kept has one manifest, which CURRENT names, and no old log") {
  const TempDir dir;
  LedgerScript script(32);
  MakeCrashed(dir.path(), &script);
  const auto before = LedgerContents(dir.path());
  {
    const auto store = OpenTiny(dir.path());
    CHECK(CountOf(LedgerContents(dir.path()), "MANIFEST") == 2);
    REQUIRE(store->Accept().ok());
    CHECK(store->Accept().ok());
  }
  const auto after = LedgerContents(dir.path());
  CHECK(CountOf(after, "MANIFEST") == 1);
  CHECK(CountOf(after, ".log") == 1);
  CHECK(CountOf(after, ".dbtmp") == 0);
  CHECK(after.at("CURRENT") != before.at("CURRENT"));
  CHECK(fs::exists(ManifestOf(dir.path())));
  CHECK(DifferenceOf(DumpOf(OpenTiny(dir.path()).get()), script.Expected()) == "");
}

TEST_CASE("a commit keeps what was opened, and so does a close") {
  for (const bool commits : {true, false}) {
    const TempDir dir;
    LedgerScript script(33);
    MakeCrashed(dir.path(), &script);
    const auto before = LedgerContents(dir.path());
    const auto store = OpenTiny(dir.path());
    if (commits) {
      CommitMany(&script, 1, 20, store.get());
    } else {
      CHECK(store->Close().ok());
    }
    CHECK(LedgerContents(dir.path()).at("CURRENT") != before.at("CURRENT"));
    CHECK(CountOf(LedgerContents(dir.path()), "MANIFEST") == 1);
  }
}

TEST_CASE("what a process leaves that is killed before it kept is the ledger, and is tidied up") {
  const TempDir dir;
  LedgerScript script(34);
  MakeCrashed(dir.Sub("whole"), &script);
  for (int kill = 0; kill < 3; ++kill) {
    const auto store = OpenTiny(dir.Sub("whole"));
    CopyTree(dir.Sub("whole"), dir.Sub("killed"));
    fs::remove_all(dir.Sub("next"));
    fs::rename(dir.Sub("killed"), dir.Sub("next"));
  }
  CopyTree(dir.Sub("next"), dir.Sub("whole"));
  auto reader = LedgerReader::Open(dir.Sub("whole"));
  REQUIRE(reader.ok());
  CHECK(DifferenceOf(DumpOf(reader->get()), script.Expected()) == "");
  const auto store = OpenTiny(dir.Sub("whole"));
  CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
  REQUIRE(store->Accept().ok());
  CHECK(CountOf(LedgerContents(dir.Sub("whole")), "MANIFEST") == 1);
  CommitMany(&script, 5, 50, store.get());
  CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
}

TEST_CASE("an open with a manifest that lost its end takes nothing, and the ledger can be mended") {
  const TempDir dir;
  LedgerScript script(35);
  MakeCrashed(dir.Sub("whole"), &script);
  // With it no such open gets as far as to take anything.
  fs::remove(dir.Sub("whole/ledger/witness"));
  const std::vector<uint64_t> records = PayloadOffsets(ManifestOf(dir.Sub("whole")));
  REQUIRE(records.size() > 6);
  const std::string whole = ReadFileToString(ManifestOf(dir.Sub("whole")));
  size_t opened = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    CAPTURE(i);
    CopyTree(dir.Sub("whole"), dir.Sub("bad"));
    fs::resize_file(ManifestOf(dir.Sub("bad")), records[i]);
    const auto before = LedgerContents(dir.Sub("bad"));
    for (int start = 0; start < 2; ++start) {
      opened += RocksStore::Open(dir.Sub("bad"), TinyOptions()).ok() ? 1 : 0;
    }
    REQUIRE((LedgerContents(dir.Sub("bad")) == before));
    testing::WriteStringToFile(ManifestOf(dir.Sub("bad")), whole);
    const auto store = OpenTiny(dir.Sub("bad"));
    CHECK(DifferenceOf(DumpOf(store.get()), script.Expected()) == "");
  }
  CHECK(opened > 0);
}

// Looks from another process whether the ledger is locked, whenever a file is deleted.
class LockWatch : public rocksdb::FileSystemWrapper {
 public:
  explicit LockWatch(std::string lock_path)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), lock_path_(std::move(lock_path)) {}
  const char* Name() const override { return "LockWatch"; }
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* context) override {
    const pid_t child = fork();
    if (child == 0) {
      struct flock probe {};
      probe.l_type = F_WRLCK;
      const int fd = open(lock_path_.c_str(), O_RDWR);
      const bool held = fd >= 0 && fcntl(fd, F_GETLK, &probe) == 0 && probe.l_type != F_UNLCK;
      _exit(held ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) unlocked.push_back(path);
    return FileSystemWrapper::DeleteFile(path, options, context);
  }
  std::vector<std::string> unlocked;

 private:
  const std::string lock_path_;
};

TEST_CASE("what an open made is removed while the ledger is still locked") {
  const TempDir dir;
  LedgerScript script(36);
  MakeCrashed(dir.path(), &script);
  const auto watch = std::make_shared<LockWatch>(dir.Sub("ledger/LOCK"));
  const auto env = rocksdb::NewCompositeEnv(watch);
  RocksStoreOptions options = TinyOptions();
  options.env = env.get();
  { REQUIRE(RocksStore::Open(dir.path(), options).ok()); }
  for (const std::string& path : watch->unlocked) MESSAGE("deleted without the lock: " << path);
  CHECK(watch->unlocked.empty());
}

// By then CURRENT names the new manifest, and a compaction that the open began may still make data
// files.
TEST_CASE("an open that cannot write its witness leaves all that CURRENT names") {
  const TempDir dir;
  LedgerScript script(37);
  const std::string killed = dir.Sub("killed");
  fs::create_directory(killed);
  for (int run = 0; run < 3; ++run) {
    const auto store = OpenTiny(killed);
    CommitMany(&script, 30, 60, store.get());
  }
  const auto env = rocksdb::NewCompositeEnv(std::make_shared<NoWitness>());
  RocksStoreOptions options = TinyOptions();
  options.env = env.get();
  int compacted = 0;
  for (int round = 0; round < 4; ++round) {
    const std::string data_dir = dir.Sub("round" + std::to_string(round));
    CopyTree(killed, data_dir);
    {
      const auto store = RocksStore::Open(data_dir, options);
      REQUIRE(store.ok());
      CHECK((*store)->Accept().code() == StatusCode::kIoError);
      const auto tables = LedgerFiles(data_dir, ".sst");
      compacted += PollUntil(300, [&] { return LedgerFiles(data_dir, ".sst") != tables; });
    }
    const auto reader = LedgerReader::Open(data_dir);
    REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
    CHECK(DifferenceOf(DumpOf(reader->get()), script.Expected()) == "");
  }
  MESSAGE(compacted << " compactions behind the failure");
}

// A disk on which a new witness cannot be begun, and one that is there is empty then.
class NoNextWitness : public rocksdb::FileSystemWrapper {
 public:
  NoNextWitness() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "NoNextWitness"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, context);
    if (!path.ends_with("/witness.new")) return status;
    file->reset();
    return rocksdb::IOStatus::IOError(path);
  }
};

// A start that proves the ledger, and ends when it is to keep it, for `disk` refuses that.
void StartCutOff(const std::string& data_dir, RocksStoreOptions options,
                 const std::shared_ptr<rocksdb::FileSystem>& disk) {
  const auto env = rocksdb::NewCompositeEnv(disk);
  options.env = env.get();
  const auto store = RocksStore::Open(data_dir, options);
  REQUIRE_MESSAGE(store.ok(), store.status().ToString());
  CHECK((*store)->Accept().code() == StatusCode::kIoError);
}

// What it has read it has written, so a power cut may take the end of the logs that it was read
// from, which a process that is killed in a commit leaves in memory.
TEST_CASE("a start that is cut off before its witness has its name leaves a ledger that is whole") {
  for (const Durability durability : {Durability::kSync, Durability::kNone}) {
    CAPTURE(static_cast<int>(durability));
    const TempDir dir;
    LedgerScript script(38);
    MakeCrashed(dir.path(), &script);
    RocksStoreOptions options = TinyOptions();
    options.durability = durability;
    const std::string killed = dir.Sub("killed");
    {
      const auto store = RocksStore::Open(dir.path(), options);
      REQUIRE(store.ok());
      CommitMany(&script, 3, 10, store->get());
      CopyLedger(dir.path(), killed);
      CommitMany(&script, 1, 10, store->get());
      // Nothing told the witness of the last batch.
      for (const std::string& log : LedgerFiles(dir.path(), ".log")) {
        fs::copy_file(log, killed + "/ledger/" + fs::path(log).filename().string(),
                      fs::copy_options::overwrite_existing);
      }
    }
    const std::string log = LedgerFiles(killed, ".log").back();
    StartCutOff(killed, options, std::make_shared<NoWitness>());
    fs::resize_file(log, PayloadOffsets(log).back());
    StartCutOff(killed, options, std::make_shared<NoNextWitness>());
    const auto reader = LedgerReader::Open(killed);
    REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
    CHECK(DifferenceOf(DumpOf(reader->get()), script.Expected()) == "");
    const auto store = RocksStore::Open(killed, options);
    REQUIRE_MESSAGE(store.ok(), store.status().ToString());
    REQUIRE((*store)->Accept().ok());
    CHECK(DifferenceOf(DumpOf(store->get()), script.Expected()) == "");
  }
}

}  // namespace
}  // namespace nowcalls::store
