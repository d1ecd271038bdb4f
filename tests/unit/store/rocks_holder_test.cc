// A ledger that another process holds: refused to a second server, readable for a tool, whether the
// holder works, is stopped, or is gone.
//
// fcntl locks belong to processes, so the other one here is a real child: this test binary again,
// running only the case "helper: ...".
#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "store/disk/ledger_files.h"
#include "store/disk/ledger_read_lock.h"
#include "store/rocks/ledger_reader.h"
#include "store/salvage/salvage.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/sample.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::kPatienceMs;
using testing::PollUntil;
using testing::Process;
using testing::TempDir;

constexpr uint64_t kSeed = 77;
constexpr int kRecords = 20;
constexpr int kFirstBatches = 50;

// What the child tells: how it got on with opening, and the last batch it committed.
struct Progress {
  std::string opened;
  uint64_t batch = 0;
};

void WriteProgress(const std::string& path, const Progress& progress) {
  const std::string next = path + ".next";
  std::ofstream(next) << progress.batch << "\n" << progress.opened << "\n";
  fs::rename(next, path);
}

Progress ReadProgress(const std::string& path) {
  Progress progress;
  std::ifstream file(path);
  file >> progress.batch;
  file.ignore();
  std::getline(file, progress.opened);
  return progress;
}

TEST_CASE("helper: hold a ledger and commit to it" * doctest::skip()) {
  const char* const holder_dir = getenv("HOLDER_DIR");
  REQUIRE(holder_dir != nullptr);
  const std::string dir = holder_dir;
  const std::string progress_path = dir + "/progress";
  const bool keep_committing = getenv("HOLDER_GOES_ON") != nullptr;
  RocksStoreOptions options = TinyOptions();
  if (getenv("HOLDER_SYNCS") != nullptr) options.durability = Durability::kSync;
  auto opened = RocksStore::Open(dir + "/data", options);
  if (!opened.ok()) {
    WriteProgress(progress_path, {opened.status().ToString(), 0});
    return;
  }
  LedgerScript script(kSeed);
  for (int i = 0; keep_committing || i < kFirstBatches; ++i) {
    CommitMany(&script, 1, kRecords, opened->get());
    WriteProgress(progress_path, {"ok", script.batch_number()});
  }
  for (;;) pause();
}

class Holder {
 public:
  explicit Holder(const std::string& dir, bool goes_on = false,
                  Durability durability = Durability::kNone)
      : progress_path_(dir + "/progress"), process_(OptionsFor(dir, goes_on, durability)) {}

  Process& process() { return process_; }
  std::string pid() const { return std::to_string(process_.pid()); }

  // Waits for batch `number` and returns what the child has committed then.
  uint64_t WaitForBatch(uint64_t number) const {
    REQUIRE(PollUntil(kPatienceMs, [&] { return Last().batch >= number; }));
    return Last().batch;
  }
  // Waits for the child to fail to open, and returns why.
  std::string WaitForRefusal() {
    REQUIRE(process_.Wait().has_value());
    return Last().opened;
  }
  Progress Last() const { return ReadProgress(progress_path_); }

 private:
  static Process::Options OptionsFor(const std::string& dir, bool goes_on, Durability durability) {
    Process::Options options;
    options.argv = {fs::read_symlink("/proc/self/exe"), "--no-skip",
                    "--test-case=helper: hold a ledger*"};
    options.environment["HOLDER_DIR"] = dir;
    if (goes_on) options.environment["HOLDER_GOES_ON"] = "1";
    if (durability == Durability::kSync) options.environment["HOLDER_SYNCS"] = "1";
    options.stderr_path = dir + "/stderr";
    return options;
  }

  std::string progress_path_;
  Process process_;
};

// The ledger of the child's script after `batches` batches.
Dump StateAfter(uint64_t batches) {
  LedgerScript script(kSeed);
  ledger::CommitBatch batch;
  while (script.batch_number() < batches) script.NextBatch(kRecords, &batch);
  return script.Expected();
}

std::unique_ptr<LedgerReader> OpenReader(const std::string& data_dir) {
  auto opened = LedgerReader::Open(data_dir);
  REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
  return *std::move(opened);
}

int64_t HolderPid(const std::string& data_dir) {
  const Result<LedgerHolder> holder = FindLedgerHolder(data_dir);
  REQUIRE_MESSAGE(holder.ok(), holder.status().ToString());
  return holder->pid;
}

TEST_CASE("a second server is refused with the pid of the first, and opens when that is gone") {
  const TempDir dir;
  Holder holder(dir.path());
  holder.WaitForBatch(kFirstBatches);
  CHECK(HolderPid(dir.Sub("data")) == holder.process().pid());
  const Status status = RocksStore::Open(dir.Sub("data"), TinyOptions()).status();
  CHECK(status.code() == StatusCode::kAlreadyExists);
  CHECK(status.message().find("open in process " + holder.pid()) != std::string::npos);
  holder.process().Signal(SIGKILL);
  REQUIRE(holder.process().Wait().has_value());
  CHECK(HolderPid(dir.Sub("data")) == 0);
  const auto store = OpenTiny(dir.Sub("data"));
  CHECK(DifferenceOf(DumpOf(store.get()), StateAfter(kFirstBatches)) == "");
}

TEST_CASE("looking for the holder of one's own ledger does not give up its lock") {
  const TempDir dir;
  const auto store = OpenTiny(dir.Sub("data"));
  CHECK(HolderPid(dir.Sub("data")) == getpid());
  CHECK(RocksStore::Open(dir.Sub("data"), TinyOptions()).status().code() ==
        StatusCode::kAlreadyExists);
  CHECK(OpenReader(dir.Sub("data"))->mode() == ReadMode::kBesideServer);
  Holder other(dir.path());
  CHECK(other.WaitForRefusal().find("open in process " + std::to_string(getpid())) !=
        std::string::npos);
}

TEST_CASE("a lock is held before the ledger is made, through its opening, and until its close") {
  const TempDir dir;
  const std::string data_dir = dir.Sub("data");
  auto lock = LedgerLock::Take(data_dir);
  REQUIRE_MESSAGE(lock.ok(), lock.status().ToString());
  CHECK(HolderPid(data_dir) == getpid());
  CHECK_FALSE(fs::exists(data_dir + "/ledger/CURRENT"));
  CHECK(LedgerLock::Take(data_dir).status().code() == StatusCode::kAlreadyExists);
  const std::string refusal = "open in process " + std::to_string(getpid());
  CHECK(Holder(dir.path()).WaitForRefusal().find(refusal) != std::string::npos);
  auto store = RocksStore::Open(*std::move(lock), TinyOptions());
  REQUIRE_MESSAGE(store.ok(), store.status().ToString());
  CHECK(Holder(dir.path()).WaitForRefusal().find(refusal) != std::string::npos);
  REQUIRE((*store)->Close().ok());
  CHECK(HolderPid(data_dir) == 0);
  Holder(dir.path()).WaitForBatch(1);
}

TEST_CASE("a lock under which no ledger was made leaves nothing behind") {
  const TempDir dir;
  CHECK(LedgerLock::Take(dir.Sub("data")).ok());
  CHECK(fs::is_empty(dir.path()));
  // What was there before stays.
  fs::create_directory(dir.Sub("data"));
  CHECK(LedgerLock::Take(dir.Sub("data")).ok());
  CHECK(fs::is_empty(dir.Sub("data")));
  OpenTiny(dir.Sub("data")).reset();
  CHECK(LedgerLock::Take(dir.Sub("data")).ok());
  CHECK(fs::exists(dir.Sub("data/ledger/CURRENT")));
}

std::unique_ptr<LedgerReadLock> TakeToRead(const std::string& data_dir) {
  auto lock = LedgerReadLock::Take(data_dir);
  REQUIRE_MESSAGE(lock.ok(), lock.status().ToString());
  return *std::move(lock);
}

TEST_CASE("a ledger that is being salvaged is refused to servers to the end, and not changed") {
  const TempDir dir;
  OpenTiny(dir.Sub("data")).reset();
  const auto before = SnapshotOf(dir.Sub("data"));
  auto lock = TakeToRead(dir.Sub("data"));
  const std::string refusal = "being salvaged by process " + std::to_string(getpid());
  CHECK(Holder(dir.path()).WaitForRefusal().find(refusal) != std::string::npos);
  CHECK(LedgerReadLock::Take(dir.Sub("data")).status().code() == StatusCode::kAlreadyExists);
  CHECK(LedgerLock::Take(dir.Sub("data")).status().code() == StatusCode::kAlreadyExists);
  // Its children end, and files of the ledger are opened and closed.
  SalvageReport report;
  const auto salvaged = OpenSalvaged(dir.Sub("data"), dir.Sub("scratch"), &report);
  REQUIRE_MESSAGE(salvaged.ok(), salvaged.status().ToString());
  CHECK(report.lost.empty());
  CHECK(HolderPid(dir.Sub("data")) == getpid());
  CHECK(Holder(dir.path()).WaitForRefusal().find(refusal) != std::string::npos);
  CHECK(lock->CheckNobodyCame().ok());
  CHECK(SnapshotOf(dir.Sub("data")) == before);
  lock.reset();
  CHECK(HolderPid(dir.Sub("data")) == 0);
  Holder(dir.path()).WaitForBatch(1);
}

TEST_CASE("a ledger that a server has is not read for its salvage") {
  const TempDir dir;
  Holder holder(dir.path());
  holder.WaitForBatch(1);
  const Status refused = LedgerReadLock::Take(dir.Sub("data")).status();
  CHECK(refused.code() == StatusCode::kAlreadyExists);
  CHECK(refused.message().find("open in process " + holder.pid()) != std::string::npos);
  holder.process().Signal(SIGKILL);
  REQUIRE(holder.process().Wait().has_value());
  TakeToRead(dir.Sub("data"));
}

TEST_CASE("where there is no LOCK none is made, and a server that came is found out afterwards") {
  const TempDir dir;
  OpenTiny(dir.Sub("data")).reset();
  REQUIRE(fs::remove(dir.Sub("data/ledger/LOCK")));
  const auto lock = TakeToRead(dir.Sub("data"));
  CHECK(lock->CheckNobodyCame().ok());
  CHECK_FALSE(fs::exists(dir.Sub("data/ledger/LOCK")));
  {
    Holder holder(dir.path());
    holder.WaitForBatch(1);
    CHECK(lock->CheckNobodyCame().code() == StatusCode::kIoError);
  }
  CHECK(lock->CheckNobodyCame().code() == StatusCode::kIoError);
}

TEST_CASE("a ledger whose LOCK is replaced while it is read is no longer the one") {
  const TempDir dir;
  OpenTiny(dir.Sub("data")).reset();
  const auto lock = TakeToRead(dir.Sub("data"));
  fs::rename(dir.Sub("data/ledger"), dir.Sub("data/aside"));
  CHECK(lock->CheckNobodyCame().code() == StatusCode::kIoError);
  Holder(dir.path()).WaitForBatch(1);
  CHECK(lock->CheckNobodyCame().code() == StatusCode::kIoError);
}

TEST_CASE("nobody holds a ledger that is absent or closed") {
  const TempDir dir;
  CHECK(HolderPid(dir.Sub("data")) == 0);
  OpenTiny(dir.Sub("data")).reset();
  CHECK(HolderPid(dir.Sub("data")) == 0);
}

TEST_CASE("a reader beside a server sees every batch that was acknowledged before it opened") {
  const TempDir dir;
  Holder holder(dir.path());
  const uint64_t batches = holder.WaitForBatch(kFirstBatches);
  const auto reader = OpenReader(dir.Sub("data"));
  CHECK(reader->mode() == ReadMode::kBesideServer);
  CHECK(DifferenceOf(DumpOf(reader.get()), StateAfter(batches)) == "");
}

void CheckBusy(Durability durability) {
  const TempDir dir;
  Holder holder(dir.path(), true, durability);
  LedgerScript script(kSeed);
  ledger::CommitBatch batch;
  int seen = 0;
  const int rounds = testing::Whole() ? 100 : 30;
  for (int round = 0; round < rounds; ++round) {
    const uint64_t acknowledged = holder.WaitForBatch(script.batch_number() + 3);
    const auto opened = LedgerReader::Open(dir.Sub("data"));
    if (opened.status().code() == StatusCode::kUnavailable) continue;
    REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
    const Dump dump = DumpOf(opened->get());
    const uint64_t shown = BatchNumberOf(dump);
    CHECK(shown >= acknowledged);
    while (script.batch_number() < shown) script.NextBatch(kRecords, &batch);
    REQUIRE(DifferenceOf(dump, script.Expected()) == "");
    ++seen;
  }
  CHECK(seen > rounds * 8 / 10);
}

TEST_CASE("a reader beside a busy server sees one moment of it, all families alike") {
  CheckBusy(Durability::kNone);
}

TEST_CASE("so does one beside a server that writes its logs over zeros") {
  CheckBusy(Durability::kSync);
}

// What readers are told of the ledger as `damage` left it, beside a server that has it open.
Status DamagedBesideServer(const std::function<void(const std::string& data_dir)>& damage) {
  const TempDir dir;
  RocksStoreOptions options = TinyOptions();
  options.durability = Durability::kSync;
  const auto store = RocksStore::Open(dir.path(), options);
  REQUIRE_MESSAGE(store.ok(), store.status().ToString());
  LedgerScript script(kSeed);
  CommitMany(&script, 40, kRecords, store->get());
  CHECK(LedgerReader::Open(dir.path()).ok());
  damage(dir.path());
  return LedgerReader::Open(dir.path()).status();
}

TEST_CASE("damage in the log is not passed over because the server goes on behind it") {
  for (const Durability durability : {Durability::kSync, Durability::kNone}) {
    CAPTURE(static_cast<int>(durability));
    const TempDir dir;
    RocksStoreOptions options;  // A large buffer: the log stays the newest.
    options.durability = durability;
    const auto store = RocksStore::Open(dir.path(), options);
    REQUIRE_MESSAGE(store.ok(), store.status().ToString());
    LedgerScript script(kSeed);
    CommitMany(&script, 40, kRecords, store->get());
    const std::string log = LedgerFiles(dir.path(), ".log").back();
    FlipByte(log, PayloadOffsets(log).back(), 0x40);
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      for (int i = 0; i < 5'000 && !stop; ++i) CommitMany(&script, 1, 1, store->get());
    });
    const auto reader = LedgerReader::Open(dir.path());
    stop = true;
    writer.join();
    CHECK(LedgerFiles(dir.path(), ".log").back() == log);
    if (durability == Durability::kSync) {
      CHECK(reader.status().code() == StatusCode::kCorruption);
      CHECK(reader.status().message().find(log) != std::string::npos);
    } else {
      REQUIRE_MESSAGE(reader.ok(), reader.status().ToString());
      REQUIRE((*reader)->notes().size() == 1);
      CHECK((*reader)->notes()[0].find("ends with batch 39") != std::string::npos);
    }
  }
}

TEST_CASE("damage is told beside a server as it is at rest") {
  const auto remove = [](const std::string& suffix) {
    return DamagedBesideServer([&](const std::string& data_dir) {
      REQUIRE_FALSE(LedgerFiles(data_dir, suffix).empty());
      for (const std::string& path : LedgerFiles(data_dir, suffix)) fs::remove(path);
    });
  };
  for (const char* suffix : {".log", ".sst"}) {
    CAPTURE(suffix);
    const Status refused = remove(suffix);
    CHECK(refused.code() == StatusCode::kCorruption);
    CHECK(refused.message().find(suffix) != std::string::npos);
  }
  const Status manifest = DamagedBesideServer([](const std::string& data_dir) {
    fs::remove(data_dir + "/ledger/" + CurrentManifest(data_dir + "/ledger"));
  });
  CHECK(manifest.code() == StatusCode::kCorruption);
  CHECK(manifest.message().find("MANIFEST-") != std::string::npos);
  std::string log;
  const Status last = DamagedBesideServer([&](const std::string& data_dir) {
    log = LedgerFiles(data_dir, ".log").back();
    FlipByte(log, PayloadOffsets(log).back(), 0x40);
  });
  CHECK(last.code() == StatusCode::kCorruption);
  CHECK(last.message().find(log) != std::string::npos);
}

TEST_CASE("a ledger whose server is stopped can be read, and its directory stays untouched") {
  const TempDir dir;
  Holder holder(dir.path());
  const uint64_t batches = holder.WaitForBatch(kFirstBatches);
  holder.process().Signal(SIGSTOP);
  const auto before = SnapshotOf(dir.Sub("data"));
  CHECK(HolderPid(dir.Sub("data")) == holder.process().pid());
  auto reader = OpenReader(dir.Sub("data"));
  CHECK(reader->mode() == ReadMode::kBesideServer);
  CHECK(DifferenceOf(DumpOf(reader.get()), StateAfter(batches)) == "");
  CHECK(SnapshotOf(dir.Sub("data")) == before);
}

TEST_CASE("reading a ledger that nobody holds leaves its directory untouched, log and all") {
  const TempDir dir;
  {
    Holder holder(dir.path());
    holder.WaitForBatch(kFirstBatches);
    holder.process().Signal(SIGKILL);
    REQUIRE(holder.process().Wait().has_value());
  }
  const auto before = SnapshotOf(dir.Sub("data"));
  for (int round = 0; round < 2; ++round) {
    auto reader = OpenReader(dir.Sub("data"));
    CHECK(reader->mode() == ReadMode::kAtRest);
    CHECK(DifferenceOf(DumpOf(reader.get()), StateAfter(kFirstBatches)) == "");
  }
  CHECK(SnapshotOf(dir.Sub("data")) == before);
}

}  // namespace
}  // namespace nowcalls::store
