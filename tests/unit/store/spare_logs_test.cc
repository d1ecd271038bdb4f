// Files of zeros for the logs to come: made ahead, used, removed, and never missed.
#include "store/log/spare_logs.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "store/rocks/ledger_file_system.h"
#include "store/rocks/ledger_reader.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOStatus;
using testing::kPatienceMs;
using testing::PollUntil;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

constexpr uint64_t kSpareBytes = 200'000;

// Calls `on_append` for each piece of a spare; false: it cannot be written. Counts in `synced`
// those that are full.
class SpareFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  SpareFile(std::unique_ptr<rocksdb::FSWritableFile> file, const std::function<bool()>& on_append,
            std::atomic<int>* synced)
      : FSWritableFileOwnerWrapper(std::move(file)), on_append_(on_append), synced_(synced) {}
  using rocksdb::FSWritableFileOwnerWrapper::Append;
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  rocksdb::IODebugContext* context) override {
    if (!on_append_()) return IOStatus::NoSpace("full");
    return target()->Append(data, options, context);
  }
  IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) override {
    IOStatus status = target()->Sync(options, context);
    ++*synced_;
    return status;
  }

 private:
  const std::function<bool()>& on_append_;
  std::atomic<int>* const synced_;
};

class SpareFileSystem : public rocksdb::FileSystemWrapper {
 public:
  SpareFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  const char* Name() const override { return "SpareFileSystem"; }
  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file,
                           rocksdb::IODebugContext* context) override {
    if (path.find("/spare_log") == std::string::npos) {
      return FileSystemWrapper::NewWritableFile(path, options, file, context);
    }
    ++begun;
    if (!on_new.ok()) return on_new;
    IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, context);
    if (status.ok()) *file = std::make_unique<SpareFile>(std::move(*file), on_append, &synced);
    return status;
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path,
                             const rocksdb::FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                             rocksdb::IODebugContext* context) override {
    IOStatus status = FileSystemWrapper::ReuseWritableFile(path, old_path, options, file, context);
    if (path != old_path) return status;  // It becomes a log.
    ++renewed;
    if (status.ok()) *file = std::make_unique<SpareFile>(std::move(*file), on_append, &synced);
    return status;
  }
  IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options, uint64_t* bytes,
                        rocksdb::IODebugContext* context) override {
    IOStatus status = FileSystemWrapper::GetFreeSpace(path, options, bytes, context);
    ++asked_for_room;
    *bytes = std::min(*bytes, room.load());
    return status;
  }

  IOStatus on_new;
  std::function<bool()> on_append = [] { return true; };
  std::atomic<int> begun{0};
  std::atomic<int> renewed{0};
  std::atomic<int> synced{0};
  std::atomic<int> asked_for_room{0};
  std::atomic<uint64_t> room{UINT64_MAX};
};

// Counts the spares that could not be made.
class FailureLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override { ++lines; }

  std::atomic<int> lines{0};
};

struct Spares {
  Spares() : lock(*LedgerLock::Take(dir.path())) {}
  // The spares and the logs that wait, by age.
  std::vector<std::string> Files() const {
    std::vector<std::string> paths = spares.LeftOver();
    std::sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
      return std::pair(a.size(), a) < std::pair(b.size(), b);
    });
    return paths;
  }
  std::string OneFile() const {
    const std::vector<std::string> paths = Files();
    REQUIRE(paths.size() == 1);
    return paths[0];
  }
  IOStatus Take(const std::string& name, std::unique_ptr<rocksdb::FSWritableFile>* file) {
    return spares.Take(dir.Sub("ledger/" + name), {}, file, &zeros);
  }

  const TempDir dir;
  const std::unique_ptr<LedgerLock> lock;
  const std::shared_ptr<SpareFileSystem> files = std::make_shared<SpareFileSystem>();
  uint64_t zeros = 0;  // Of the last that was taken.
  const std::shared_ptr<FailureLog> told = std::make_shared<FailureLog>();
  std::atomic<int> name_syncs{0};
  IOStatus on_sync_names;
  SpareLogs spares{files, lock.get(), kSpareBytes,
                   [this] {
                     ++name_syncs;
                     return on_sync_names;
                   },
                   told};
};

bool IsZeros(const std::string& bytes) {
  return bytes.find_first_not_of('\0') == std::string::npos;
}

TEST_CASE_FIXTURE(Spares, "a spare is made when it is asked for, becomes a log, and is made anew") {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  CHECK(Take("000001.log", &file).IsNotFound());
  CHECK(Files().empty());
  for (int i = 2; i < 5; ++i) {
    spares.Ask();
    spares.Ask();
    REQUIRE(PollUntil(kPatienceMs, [&] { return spares.ready(); }));
    const std::string bytes = ReadFileToString(OneFile());
    CHECK(bytes.size() == kSpareBytes);
    CHECK(IsZeros(bytes));
    const std::string name = "00000" + std::to_string(i) + ".log";
    const std::string log = dir.Sub("ledger/" + name);
    REQUIRE(Take(name, &file).ok());
    CHECK(zeros == kSpareBytes);
    CHECK(Files().empty());
    CHECK(Take(name, &file).IsNotFound());
    REQUIRE(file->Append("hello", {}, nullptr).ok());
    CHECK(ReadFileToString(log).substr(0, 6) == std::string("hello\0", 6));
    CHECK(SizeOf(log) == kSpareBytes);
  }
  CHECK(files->begun == 3);
}

TEST_CASE("a spare is filled in haste only while it is behind the log, which it is to outrun") {
  constexpr uint64_t kMiB = 1 << 20;
  CHECK(SparePause(0, 0) == SparePause(8 * kMiB, 2 * kMiB));
  CHECK(SparePause(kMiB, 2 * kMiB) < SparePause(8 * kMiB, 2 * kMiB));
  CHECK(SparePause(5 * kMiB, 2 * kMiB) == SparePause(kMiB, 2 * kMiB));
  // The last piece is there when a quarter of the log is written.
  CHECK(SparePause(8 * kMiB - 1, 2 * kMiB) < SparePause(8 * kMiB, 2 * kMiB));
}

TEST_CASE_FIXTURE(Spares, "a spare is removed when it is not needed any more, also half made") {
  spares.Ask();
  SUBCASE("made") {
    REQUIRE(PollUntil(kPatienceMs, [&] { return spares.ready(); }));
  }
  SUBCASE("begun") {
    REQUIRE(PollUntil(kPatienceMs, [&] { return !Files().empty(); }));
  }
  SUBCASE("at once") {}
  spares.Stop();
  CHECK(Files().empty());
  spares.Ask();
  CHECK_FALSE(spares.ready());
}

TEST_CASE_FIXTURE(Spares,
                  "a spare that cannot be made leaves nothing and is not tried again soon") {
  SUBCASE("no file") { files->on_new = IOStatus::IOError("no"); }
  SUBCASE("no room while it is written") {
    files->on_append = [] { return false; };
  }
  SUBCASE("hardly any room before it is begun") { files->room = 10 * kSpareBytes; }
  spares.Ask();
  // Told when the thread has ended with it.
  REQUIRE(PollUntil(kPatienceMs, [&] { return told->lines == 1; }));
  CHECK(files->asked_for_room == 1);
  CHECK((files->begun == 1 || files->room < UINT64_MAX));
  std::unique_ptr<rocksdb::FSWritableFile> file;
  CHECK(Take("000001.log", &file).IsNotFound());
  PollUntil(50, [&] {
    spares.Ask();
    return false;
  });
  CHECK_FALSE(spares.ready());
  CHECK(files->asked_for_room == 1);
  CHECK(Files().empty());
}

// A log of `written` bytes in a file with `zeros` more.
std::string MakeLog(const Spares& spares, const std::string& name, size_t written, size_t zeros) {
  std::string path = spares.dir.Sub("ledger/" + name);
  WriteStringToFile(path, std::string(written, 'x') + std::string(zeros, '\0'));
  return path;
}

TEST_CASE_FIXTURE(Spares, "a log that is needed no more becomes the next spare") {
  size_t written = 150'000;
  size_t rest = kSpareBytes - written;
  uint64_t expected = kSpareBytes;
  SUBCASE("one that had zeros left") {}
  SUBCASE("one that outgrew its spare") {
    written = 250'000;
    rest = 50'000;
    expected = 300'000;
  }
  SUBCASE("one that never was a spare") {
    written = 90'000;
    rest = 0;
  }
  const std::string log = MakeLog(*this, "000007.log", written, rest);
  const auto inode = [](const std::string& path) {
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    return status.st_ino;
  };
  const auto before = inode(log);
  REQUIRE(spares.Reuse(log, written));
  CHECK_FALSE(fs::exists(log));
  CHECK(ReadFileToString(OneFile()).substr(0, written) == std::string(written, 'x'));
  spares.Ask();
  REQUIRE(PollUntil(kPatienceMs, [&] { return spares.ready(); }));
  const std::string path = OneFile();
  CHECK(inode(path) == before);
  CHECK(SizeOf(path) == expected);
  CHECK(IsZeros(ReadFileToString(path)));
  CHECK(name_syncs == 1);
  CHECK(files->begun == 0);
  CHECK(files->renewed == 1);
  std::unique_ptr<rocksdb::FSWritableFile> file;
  REQUIRE(Take("000009.log", &file).ok());
  CHECK(zeros == expected);
}

TEST_CASE_FIXTURE(Spares, "while the spare is filled from a former log another may wait") {
  std::mutex mutex;
  std::condition_variable changed;
  bool waits = false;
  bool go = false;
  files->on_append = [&] {
    std::unique_lock guard(mutex);
    waits = true;
    changed.notify_all();
    changed.wait(guard, [&] { return go; });
    return true;
  };
  REQUIRE(spares.Reuse(MakeLog(*this, "000010.log", 10, 0), 10));
  spares.Ask();
  {
    std::unique_lock guard(mutex);
    changed.wait(guard, [&] { return waits; });
  }
  CHECK(spares.Reuse(MakeLog(*this, "000011.log", 10, 0), 10));
  CHECK_FALSE(spares.Reuse(MakeLog(*this, "000012.log", 10, 0), 10));
  {
    const std::lock_guard guard(mutex);
    go = true;
  }
  changed.notify_all();
  std::unique_ptr<rocksdb::FSWritableFile> file;
  for (const char* name : {"000021.log", "000022.log"}) {
    REQUIRE(PollUntil(kPatienceMs, [&] { return Take(name, &file).ok(); }));
    CHECK(zeros == kSpareBytes);
    CHECK(IsZeros(ReadFileToString(dir.Sub("ledger/" + std::string(name)))));
    spares.Ask();
  }
  CHECK(files->renewed == 2);
}

TEST_CASE_FIXTURE(Spares, "a log that somebody reads is not written over") {
  const std::string log = MakeLog(*this, "000007.log", 1'000, 0);
  const int reader = open(log.c_str(), O_RDONLY | O_CLOEXEC);
  REQUIRE(reader >= 0);
  CHECK(spares.Reuse(log, 1'000));
  CHECK_FALSE(fs::exists(log));
  spares.Ask();
  REQUIRE(PollUntil(kPatienceMs, [&] { return spares.ready(); }));
  CHECK(IsZeros(ReadFileToString(OneFile())));
  CHECK(files->begun == 1);
  CHECK(files->renewed == 0);
  std::string bytes(2'000, '\0');
  CHECK(read(reader, bytes.data(), bytes.size()) == 1'000);
  CHECK(bytes.substr(0, 1'000) == std::string(1'000, 'x'));
  close(reader);
}

TEST_CASE_FIXTURE(Spares, "a log that is not wanted stays for who deletes it") {
  std::string log = MakeLog(*this, "000007.log", 1'000, 0);
  SUBCASE("another waits") { REQUIRE(spares.Reuse(MakeLog(*this, "000010.log", 10, 0), 10)); }
  SUBCASE("the database is being closed") { spares.BeginStop(); }
  SUBCASE("it is gone") { log = dir.Sub("ledger/000008.log"); }
  CHECK_FALSE(spares.Reuse(log, 1'000));
  CHECK(fs::exists(dir.Sub("ledger/000007.log")));
  spares.Stop();
  CHECK(Files().empty());
}

TEST_CASE_FIXTURE(Spares, "a log that is far longer than a spare is not used again") {
  const std::string log = MakeLog(*this, "000007.log", 2 * kSpareBytes + 1, 0);
  CHECK_FALSE(spares.Reuse(log, 2 * kSpareBytes + 1));
  CHECK(fs::exists(log));
}

TEST_CASE_FIXTURE(Spares, "a log that waits to be a spare goes when the disk has little room") {
  REQUIRE(spares.Reuse(MakeLog(*this, "000010.log", 10, 0), 10));
  files->room = 10 * kSpareBytes;
  CHECK_FALSE(spares.Reuse(MakeLog(*this, "000020.log", 10, 0), 10));
  CHECK(Files().size() == 1);
  spares.Ask();
  CHECK(PollUntil(kPatienceMs, [&] { return Files().empty(); }));
  CHECK_FALSE(spares.ready());
}

TEST_CASE_FIXTURE(Spares, "a log whose name may come back is not written over") {
  REQUIRE(spares.Reuse(MakeLog(*this, "000007.log", 1'000, 0), 1'000));
  on_sync_names = IOStatus::IOError("no");
  spares.Ask();
  REQUIRE(PollUntil(kPatienceMs, [&] { return name_syncs == 1; }));
  spares.Stop();
  CHECK_FALSE(spares.ready());
  CHECK(Files().empty());
}

TEST_CASE_FIXTURE(Spares, "a spare that somebody deleted is not missed") {
  spares.Ask();
  REQUIRE(PollUntil(kPatienceMs, [&] { return spares.ready(); }));
  fs::remove(OneFile());
  std::unique_ptr<rocksdb::FSWritableFile> file;
  CHECK(Take("000001.log", &file).IsNotFound());
  CHECK_FALSE(fs::exists(dir.Sub("ledger/000001.log")));
}

TEST_CASE_FIXTURE(Spares, "a ledger that takes the place of ours gets no spare and keeps its own") {
  std::mutex mutex;
  std::condition_variable changed;
  bool waits = false;
  bool go = false;
  bool fails = false;
  SUBCASE("it is made to the end") {}
  SUBCASE("it fails") { fails = true; }
  files->on_append = [&] {
    std::unique_lock guard(mutex);
    waits = true;
    changed.notify_all();
    changed.wait(guard, [&] { return go; });
    return !fails;
  };
  spares.Ask();
  {
    std::unique_lock guard(mutex);
    changed.wait(guard, [&] { return waits; });
  }
  fs::rename(dir.Sub("ledger"), dir.Sub("ledger.old"));
  fs::create_directory(dir.Sub("ledger"));
  WriteStringToFile(dir.Sub("ledger/LOCK"), "");
  WriteStringToFile(dir.Sub("ledger/spare_log"), "another's");
  const auto before = SnapshotOf(dir.path());
  {
    const std::lock_guard guard(mutex);
    go = true;
  }
  changed.notify_all();
  if (!fails) PollUntil(kPatienceMs, [&] { return spares.ready(); });
  spares.Stop();
  CHECK((SnapshotOf(dir.path()) == before));
  if (!fails) CHECK(SizeOf(dir.Sub("ledger.old/spare_log")) == kSpareBytes);
}

bool HasSpares(const std::string& data_dir) {
  const std::vector<std::string> paths = LedgerFiles(data_dir, "");
  return std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    return path.find("/spare_log") != std::string::npos;
  });
}

bool HasLogOfZeros(const std::string& data_dir) {
  const std::vector<std::string> logs = LedgerFiles(data_dir, ".log");
  return std::any_of(logs.begin(), logs.end(), [](const std::string& log) {
    return SizeOf(log) == kTinyBufferBytes && ReadFileToString(log).back() == '\0';
  });
}

// Commits until a log is written into a spare.
void CommitIntoSpare(const std::string& data_dir, LedgerScript* script, Store* store) {
  for (int i = 0; i < 5000 && !HasLogOfZeros(data_dir); ++i) CommitMany(script, 1, 30, store);
  REQUIRE(HasLogOfZeros(data_dir));
}

TEST_CASE("a store writes its logs into spares, and a closed one leaves neither these nor zeros") {
  const TempDir dir;
  LedgerScript script(91);
  for (int run = 0; run < 2; ++run) {
    const auto store = RocksStore::Open(dir.path(), SyncedOptions());
    REQUIRE(store.ok());
    CommitIntoSpare(dir.path(), &script, store->get());
    CHECK(DifferenceOf(DumpOf(LedgerReader::Open(dir.path())->get()), script.Expected()) == "");
    const std::string log = LedgerFiles(dir.path(), ".log").back();
    struct stat made {};
    struct stat other {};
    REQUIRE(stat(log.c_str(), &made) == 0);
    REQUIRE(stat(dir.Sub("ledger/CURRENT").c_str(), &other) == 0);
    CHECK(made.st_mode == other.st_mode);
    REQUIRE((*store)->Close().ok());
    CHECK_FALSE(HasSpares(dir.path()));
    for (const std::string& path : LedgerFiles(dir.path(), ".log")) CHECK(SizeOf(path) == 0);
  }
  CHECK(DifferenceOf(DumpOf(OpenTiny(dir.path()).get()), script.Expected()) == "");
}

TEST_CASE("the logs of a store take turns in the same files, whoever reads beside it") {
  const TempDir dir;
  LedgerScript script(94);
  const auto store = RocksStore::Open(dir.path(), SyncedOptions());
  REQUIRE(store.ok());
  std::map<ino_t, std::set<std::string>> names;
  int shared = 0;
  for (int i = 0; i < 5000 && shared < 5; ++i) {
    CommitMany(&script, 1, 30, store->get());
    for (const std::string& log : LedgerFiles(dir.path(), ".log")) {
      struct stat status {};
      if (stat(log.c_str(), &status) == 0) names[status.st_ino].insert(log);
    }
    shared = 0;
    for (const auto& [inode, of_it] : names) shared += of_it.size() > 1 ? 1 : 0;
    if (i % 50 != 0) continue;
    const auto reader = LedgerReader::Open(dir.path());
    REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
    CHECK(DifferenceOf(DumpOf(reader->get()), script.Expected()) == "");
  }
  CHECK(shared == 5);
  REQUIRE((*store)->Close().ok());
  CHECK_FALSE(HasSpares(dir.path()));
  CHECK(DifferenceOf(DumpOf(OpenTiny(dir.path()).get()), script.Expected()) == "");
}

TEST_CASE("what a kill leaves of a store with spares is the ledger, and the spare goes") {
  const TempDir dir;
  LedgerScript script(92);
  const auto store = RocksStore::Open(dir.Sub("whole"), SyncedOptions());
  REQUIRE(store.ok());
  CommitIntoSpare(dir.Sub("whole"), &script, store->get());
  CopyLedger(dir.Sub("whole"), dir.Sub("killed"));
  const std::string left_over = dir.Sub("killed/ledger/spare_log");
  WriteStringToFile(left_over, "half");
  WriteStringToFile(left_over + ".3", "used");
  {
    const auto refused = RocksStore::Open(dir.Sub("killed"), SyncedOptions());
    REQUIRE(refused.ok());
    CHECK(DifferenceOf(DumpOf(refused->get()), script.Expected()) == "");
  }
  CHECK(ReadFileToString(left_over) == "half");
  CHECK(ReadFileToString(left_over + ".3") == "used");
  const auto next = RocksStore::Open(dir.Sub("killed"), SyncedOptions());
  REQUIRE(next.ok());
  REQUIRE((*next)->Accept().ok());
  CHECK_FALSE(fs::exists(left_over));
  CHECK_FALSE(fs::exists(left_over + ".3"));
  CommitIntoSpare(dir.Sub("killed"), &script, next->get());
  CHECK(DifferenceOf(DumpOf(next->get()), script.Expected()) == "");
}

TEST_CASE("a store without spares goes on: they fail, or nobody waits for the disk") {
  const TempDir dir;
  const auto files = std::make_shared<SpareFileSystem>();
  files->on_append = [] { return false; };
  const auto env = rocksdb::NewCompositeEnv(files);
  RocksStoreOptions options = SyncedOptions();
  options.env = env.get();
  bool asks = true;
  SUBCASE("they fail") {}
  SUBCASE("interval") {
    options.durability = Durability::kInterval;
    asks = false;
  }
  SUBCASE("none") {
    options.durability = Durability::kNone;
    asks = false;
  }
  LedgerScript script(93);
  const auto store = RocksStore::Open(dir.path(), options);
  REQUIRE(store.ok());
  const std::string first = LedgerFiles(dir.path(), ".log").back();
  for (int i = 0; i < 5000 && LedgerFiles(dir.path(), ".log").back() == first; ++i) {
    CommitMany(&script, 1, 30, store->get());
  }
  CHECK(LedgerFiles(dir.path(), ".log").back() != first);
  if (asks) PollUntil(kPatienceMs, [&] { return files->begun + files->renewed > 0; });
  CHECK(files->begun + files->renewed == (asks ? 1 : 0));
  CHECK_FALSE(HasLogOfZeros(dir.path()));
  CHECK(DifferenceOf(DumpOf(store->get()), script.Expected()) == "");
  CHECK((*store)->Close().ok());
  CHECK_FALSE(HasSpares(dir.path()));
}

}  // namespace
}  // namespace nowcalls::store
