// Copies to a target that takes its time, or none at all, while the ledger goes on.
#include <doctest/doctest.h>
#include <rocksdb/env.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/disk/file_copy.h"
#include "store/disk/file_names.h"
#include "store/log/log_views.h"
#include "store/rocks/ledger_reader.h"
#include "support/poll_until.h"
#include "support/small_disk.h"
#include "support/temp_dir.h"
#include "unit/store/elsewhere.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::kPatienceMs;
using testing::PollUntil;
using testing::TempDir;

// Of each file its size and when it changed.
std::set<std::string> StatesOf(const std::string& data_dir) {
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(data_dir + "/ledger")) {
    std::error_code gone;
    const auto changed = entry.last_write_time(gone).time_since_epoch().count();
    files.insert(entry.path().filename().string() + " " + std::to_string(entry.file_size(gone)) +
                 " " + std::to_string(changed));
  }
  return files;
}

// Until what the store does by itself, which takes room and files, has probably ended.
void AwaitRest(const std::string& data_dir) {
  auto before = StatesOf(data_dir);
  int the_same = 0;
  REQUIRE(PollUntil(kPatienceMs, [&] {
    auto now = StatesOf(data_dir);
    the_same = now == before ? the_same + 1 : 0;
    before = std::move(now);
    return the_same == 200;
  }));
}

// A disk that gives no byte of a log when a copy of it has been begun, until it is let go; so a
// copy is held up as by a target that hangs.
class HeldCopy : public rocksdb::FileSystemWrapper {
 public:
  explicit HeldCopy(std::string to)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), to_(std::move(to)) {}
  const char* Name() const override { return "HeldCopy"; }

  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
    if (status.ok() && IsLog(path)) {
      *file = std::make_unique<HeldFile>(std::move(*file), this,
                                         to_ + "/" + fs::path(path).filename().string());
    }
    return status;
  }

  bool held() const { return held_; }
  void Hold() {
    const std::lock_guard lock(mutex_);
    let_go_ = false;
  }
  void LetGo() {
    {
      const std::lock_guard lock(mutex_);
      let_go_ = true;
    }
    changed_.notify_all();
  }

 private:
  class HeldFile : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    HeldFile(std::unique_ptr<rocksdb::FSRandomAccessFile> file, HeldCopy* held, std::string copy)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), held_(held), copy_(std::move(copy)) {}
    rocksdb::IOStatus Read(uint64_t offset, size_t bytes, const rocksdb::IOOptions& options,
                           rocksdb::Slice* result, char* scratch,
                           rocksdb::IODebugContext* context) const override {
      held_->HoldIfBegun(copy_);
      return target()->Read(offset, bytes, options, result, scratch, context);
    }

   private:
    HeldCopy* const held_;
    const std::string copy_;
  };

  void HoldIfBegun(const std::string& copy) {
    std::error_code ignored;
    if (!fs::exists(copy, ignored)) return;
    held_ = true;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return let_go_; });
  }

  const std::string to_;
  std::atomic<bool> held_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool let_go_ = false;  // Guarded by mutex_.
};

std::set<std::string> NamesOf(const std::string& data_dir, std::string_view suffix) {
  std::set<std::string> names;
  for (const std::string& path : LedgerFiles(data_dir, suffix)) {
    names.insert(fs::path(path).filename());
  }
  return names;
}

// CopyTo on a thread of its own.
class Copying {
 public:
  Copying(const RocksStore& store, const std::string& ledger_dir, HeldCopy* held)
      : held_(held), thread_([this, &store, ledger_dir] {
          copied_ = store.CopyTo(ledger_dir, never_);
          done_ = true;
        }) {}
  ~Copying() { static_cast<void>(End()); }
  Copying(const Copying&) = delete;
  Copying& operator=(const Copying&) = delete;

  bool done() const { return done_; }
  Status End() {
    held_->LetGo();
    if (thread_.joinable()) thread_.join();
    return copied_.status();
  }

 private:
  HeldCopy* const held_;
  const std::atomic<bool> never_{false};
  std::atomic<bool> done_{false};
  Result<std::vector<CopiedFile>> copied_ = Status::Unavailable("not done");
  std::thread thread_;
};

// Makes a ledger in `data_dir`, and a copy of it in `to` that is held up while the ledger goes on.
void CheckHeldCopy(const std::string& data_dir, const std::string& to) {
  constexpr size_t kFewLogs = 120;
  constexpr uint64_t kManyFiles = 600;  // About half of the numbers are of logs.
  constexpr int kRecords = 60;
  constexpr uint64_t kSeed = 201;
  const auto held = std::make_shared<HeldCopy>(to + "/ledger");
  const auto env = rocksdb::NewCompositeEnv(held);
  RocksStoreOptions options = TinyOptions();
  options.wal_bytes_max = 4 * kTinyBufferBytes;
  options.env = env.get();
  auto opened = RocksStore::Open(data_dir, options);
  REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
  RocksStore& store = **opened;
  LedgerScript script(kSeed);
  CommitMany(&script, 60, kRecords, &store);
  std::optional<Copying> copying;
  // A log in which nothing is when it is copied is not read.
  for (int round = 0; round < 100 && !held->held(); ++round) {
    copying.reset();
    held->Hold();
    fs::remove_all(to);
    fs::create_directories(to + "/ledger");
    copying.emplace(store, to + "/ledger", held.get());
    while (!held->held() && !copying->done()) CommitMany(&script, 1, kRecords, &store);
  }
  REQUIRE(held->held());
  const std::set<std::string> tables = NamesOf(data_dir, ".sst");
  const uint64_t first = LogNumber(LedgerFiles(data_dir, ".log").front());
  for (uint64_t rolled = 0; rolled < kManyFiles;) {
    CommitMany(&script, 20, kRecords, &store);
    rolled = LogNumber(LedgerFiles(data_dir, ".log").back()) - first;
  }
  const auto deletes = [&] {
    const std::set<std::string> now = NamesOf(data_dir, ".sst");
    return NamesOf(data_dir, ".log").size() <= kFewLogs &&
           !std::includes(now.begin(), now.end(), tables.begin(), tables.end());
  };
  // As long as that goes on; each log takes some syncs.
  for (size_t before = 0, left = SIZE_MAX; !PollUntil(kPatienceMs, deletes);) {
    before = std::exchange(left, NamesOf(data_dir, ".log").size());
    if (left >= before) break;
  }
  CAPTURE(NamesOf(data_dir, ".log").size());
  CHECK(deletes());
  const Status copied = copying->End();
  REQUIRE_MESSAGE(copied.ok(), copied.ToString());
  const Dump got = DumpAt(to);
  LedgerScript again(kSeed);
  ledger::CommitBatch batch;
  for (uint64_t i = 0; i < BatchNumberOf(got); ++i) again.NextBatch(kRecords, &batch);
  CHECK(BatchNumberOf(got) > 60);
  CHECK(DifferenceOf(got, again.Expected()) == "");
  REQUIRE(store.Close().ok());
}

TEST_CASE("a copy to another disk that hangs keeps no log and no data file from being deleted") {
  const TempDir dir;
  const Elsewhere other(dir);
  if (!other.Found()) return;
  CheckHeldCopy(dir.Sub("data"), other.Sub("copy"));
}

TEST_CASE("nor does a copy that hangs on the disk of the ledger, where data files are linked") {
  const TempDir dir;
  CheckHeldCopy(dir.Sub("data"), dir.Sub("copy"));
}

// Two mounts of one file system have the same device number, and no file has names in both.
TEST_CASE("data files that cannot have a second name need room for a copy") {
  const TempDir dir;
  testing::SmallDisk disk(dir.Sub("disk"));
  if (!disk.Mount("200m")) return;
  for (const char* name : {"disk/backups", "mount"}) fs::create_directory(dir.Sub(name));
  const std::string mounted = dir.Sub("mount");
  REQUIRE(mount(dir.Sub("disk/backups").c_str(), mounted.c_str(), nullptr, MS_BIND, nullptr) == 0);
  LedgerScript script(202);
  const auto store = OpenTiny(dir.Sub("disk/data"));
  REQUIRE(store->Accept().ok());
  CommitMany(&script, 10, 60, store.get());
  // Twenty megabytes of data files; what RocksDB allocates ahead is less than half of that.
  for (int i = 0; i < 40; ++i) {
    ledger::CommitBatch batch;
    script.NextBatch(60, &batch);
    batch.Clear();
    batch.RuleSet({.name_space = "wide", .flow = FlowId{i + 1}, .json = std::string(500'000, 'x')});
    batch.Sealed({.batch_number = script.batch_number()});
    REQUIRE(store->Commit(batch).ok());
  }
  const std::atomic<bool> never{false};
  const auto copy_to = [&](const std::string& to) {
    REQUIRE(fs::create_directory(to));
    return store->CopyTo(to, never).status();
  };
  CHECK(copy_to(mounted + "/roomy").ok());
  AwaitRest(dir.Sub("disk/data"));
  // For the logs and the manifest, and not for the data files.
  disk.FillUpTo(kRoomLeftBytes + 10 * 1024 * 1024);
  const Status refused = copy_to(mounted + "/tight");
  CHECK(refused.code() == StatusCode::kIoError);
  CHECK_MESSAGE(refused.message().find("has no room: ") != std::string::npos, refused.message());
  const Status linked = copy_to(dir.Sub("disk/backups/linked"));
  CHECK_MESSAGE(linked.ok(), linked.message());
  CHECK(umount2(mounted.c_str(), MNT_DETACH) == 0);
}

TEST_CASE("a copy on the disk of the ledger leaves what the server wants to be free, no other") {
  const TempDir dir;
  testing::SmallDisk disk(dir.Sub("disk"));
  const Elsewhere other(dir);
  if (!other.Found() || !disk.Mount("300m")) return;
  RocksStoreOptions options = TinyOptions();
  options.copy_leaves_bytes = kRoomLeftBytes + 64 * 1024 * 1024;
  auto opened = RocksStore::Open(dir.Sub("disk/data"), options);
  REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
  LedgerScript script(203);
  CommitMany(&script, 10, 60, opened->get());
  const std::atomic<bool> never{false};
  const auto copy_to = [&](const std::string& to) {
    REQUIRE(fs::create_directory(to));
    return (*opened)->CopyTo(to, never).status();
  };
  CHECK(copy_to(dir.Sub("disk/roomy")).ok());
  AwaitRest(dir.Sub("disk/data"));
  disk.FillUpTo(options.copy_leaves_bytes - 1);
  const Status refused = copy_to(dir.Sub("disk/tight"));
  CHECK(refused.code() == StatusCode::kIoError);
  const std::string says = std::to_string(options.copy_leaves_bytes) + " must be left";
  CHECK_MESSAGE(refused.message().find(says) != std::string::npos, refused.message());
  CHECK(copy_to(other.Sub("copy")).ok());
}

TEST_CASE("a copy for which too few files may be open is refused, and links need none") {
  const TempDir dir;
  const Elsewhere other(dir);
  if (!other.Found()) return;
  LedgerScript script(204);
  const auto store = OpenTiny(dir.Sub("data"));
  CommitMany(&script, 60, 60, store.get());
  for (const char* name : {"first", "linked"}) fs::create_directory(dir.Sub(name));
  const std::atomic<bool> never{false};
  // What there is to flush is flushed, and its files are open.
  REQUIRE(store->CopyTo(dir.Sub("first"), never).ok());
  AwaitRest(dir.Sub("data"));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const auto open_now = static_cast<rlim_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
  // What is left for others, and some for logs and the manifest.
  const rlimit few{open_now + 64 + 5, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  const std::string target = other.Sub("copy");
  fs::create_directory(target);
  const Status refused = store->CopyTo(target, never).status();
  const Status linked = store->CopyTo(dir.Sub("linked"), never).status();
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(refused.code() == StatusCode::kIoError);
  CHECK_MESSAGE(refused.message().find("LimitNOFILE") != std::string::npos, refused.message());
  CHECK_MESSAGE(linked.ok(), linked.message());
}

}  // namespace
}  // namespace nowcalls::store
