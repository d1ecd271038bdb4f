// A store on a disk of which any call fails: it says so, takes nothing more, and loses nothing.
#include <doctest/doctest.h>
#include <pthread.h>
#include <rocksdb/env.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "faults/faulty_file_system.h"
#include "faults/life.h"
#include "faults/recording_file_system.h"
#include "store/disk/ledger_files.h"
#include "support/poll_until.h"
#include "support/sample.h"
#include "support/temp_dir.h"

namespace nowcalls::faults {
namespace {

using store::RocksStore;

// Where a store begins, and how far it gets.
struct Beginning {
  DiskImage image;
  uint64_t from = 0;  // The last batch in it.
  uint64_t to = 0;
};

struct Outcome {
  std::string call;  // That failed; empty: there were not so many.
  bool reported = false;
  uint64_t acknowledged = 0;
  uint64_t begun = 0;
  std::string problem;
};

// One life of a store on a disk with a failure.
class FailingRun {
 public:
  // `beginning` is in `data_dir`.
  FailingRun(const Life& life, const Beginning& beginning, const std::string& data_dir,
             const Failure& failure)
      : life_(life),
        beginning_(beginning),
        data_dir_(data_dir),
        files_(std::make_shared<FaultyFileSystem>(
            std::make_shared<RecordingFileSystem>(data_dir + "/ledger", beginning.image), failure,
            [this](const std::string& call) { SetCall(call); })),
        env_(rocksdb::NewCompositeEnv(files_)) {}

  Outcome Run() {
    store::RocksStoreOptions options = SmallOptions();
    options.env = env_.get();
    options.on_background_error = [this](const Status& /*failure*/) { reported_ = true; };
    auto opened = RocksStore::Open(data_dir_, options);
    outcome_.acknowledged = outcome_.begun = beginning_.from;
    if (!opened.ok() || !Loads(opened->get())) {
      reported_ = true;
    } else {
      CommitAll(opened->get());
      if (!(*opened)->Close().ok()) reported_ = true;
    }
    if (opened.ok()) opened->reset();
    const std::lock_guard lock(mutex_);
    outcome_.reported = reported_;
    return outcome_;
  }

 private:
  void SetCall(const std::string& call) {
    const std::lock_guard lock(mutex_);
    outcome_.call = call;
  }

  // False: it could not, and said so.
  bool Loads(RocksStore* opened) {
    const store::Dump dump = store::DumpOf(opened);
    if (dump.size() == 1 && dump[0].find("cannot read") != std::string::npos) return false;
    outcome_.problem = store::DifferenceOf(dump, life_.states[beginning_.from]);
    return true;
  }

  // Goes on after a failure, as no server would, to see that nothing is taken any more.
  void CommitAll(RocksStore* opened) {
    bool failed = false;
    for (uint64_t batch = beginning_.from + 1; batch <= beginning_.to; ++batch) {
      const bool over = failed || reported_;
      if (!over) outcome_.begun = batch;
      const auto acknowledge = [&] {
        if (!over) outcome_.acknowledged = batch;
      };
      // What is told early holds whatever fails behind it.
      const Status status = opened->CommitTelling(life_.Batch(batch), acknowledge);
      if (status.ok() && over) outcome_.problem = "a batch was taken after a failure was reported";
      if (status.ok()) acknowledge();
      failed = failed || !status.ok();
    }
    reported_ = reported_ || failed;
  }

  const Life& life_;
  const Beginning& beginning_;
  const std::string data_dir_;
  const std::shared_ptr<FaultyFileSystem> files_;
  const std::unique_ptr<rocksdb::Env> env_;
  std::atomic<bool> reported_{false};
  std::mutex mutex_;
  Outcome outcome_;
};

// Empty when the ledger is there, with all that was acknowledged and nothing that was not asked.
std::string CheckAfterwards(const Life& life, const std::string& data_dir, const Outcome& outcome) {
  const auto env =
      rocksdb::NewCompositeEnv(std::make_shared<RecordingFileSystem>(data_dir + "/ledger"));
  store::RocksStoreOptions options = SmallOptions();
  options.env = env.get();
  const auto opened = RocksStore::Open(data_dir, options);
  if (!opened.ok()) return opened.status().ToString();
  uint64_t number = 0;
  std::string problem = CheckState(life, opened->get(), &number);
  if (problem.empty() && number < outcome.acknowledged) problem = "batches are lost";
  if (problem.empty() && number > outcome.begun) problem = "there are batches nobody asked for";
  return problem;
}

struct Counts {
  uint64_t failures = 0;
  uint64_t reported = 0;
  std::set<std::string> calls;  // Those that were reported: "sync witness", "append .log".
};

// Without the number of a file.
std::string KindOf(std::string call) {
  std::erase_if(call, [](char c) { return c >= '0' && c <= '9'; });
  return call;
}

// False: it has failed the test.
bool FailOnce(const Life& life, const Beginning& beginning, const Failure& failure, Counts* counts,
              bool* reached) {
  const testing::TempDir dir(testing::TempDir::Place::kMemory);
  WriteImage(beginning.image, dir.Sub("ledger"));
  const Outcome outcome = FailingRun(life, beginning, dir.path(), failure).Run();
  *reached = !outcome.call.empty();
  std::string problem = outcome.problem;
  if (*reached) {
    ++counts->failures;
    counts->reported += outcome.reported ? 1 : 0;
    if (outcome.reported) counts->calls.insert(KindOf(outcome.call));
    if (problem.empty() && !outcome.reported && !MayPass(outcome.call)) problem = "no word of it";
  } else if (outcome.acknowledged != beginning.to) {
    problem = "it fails by itself";
  }
  if (problem.empty()) problem = CheckAfterwards(life, dir.path(), outcome);
  if (problem.empty()) return true;
  FAIL_CHECK(failure.ToString(), ", ", outcome.call, ", acknowledged ", outcome.acknowledged,
             ", begun ", outcome.begun, ": ", problem);
  return false;
}

// A store that makes its ledger, and one that goes on after a kill, with flushes and a compaction.
std::vector<Beginning> Beginnings(const Life& life) {
  constexpr uint64_t kKilled = 14;
  const Recorded recorded = Record(life, {}, {.from = 0, .to = kKilled});
  REQUIRE(recorded.problem == "");
  Disk disk;
  for (const DiskChange& change : recorded.changes) disk.Apply(change);
  return {{{}, 0, 3}, {disk.CutPower(Disk::kSeedAll), kKilled, life.size()}};
}

// Of the calls, every so many-th fails: RocksDB waits a second after each flush that failed.
uint64_t Step() {
  const char* wanted = std::getenv("NOWCALLS_FAILURE_STEP");
  if (wanted != nullptr) return std::strtoull(wanted, nullptr, 10);
  return testing::Whole() ? 13 : 53;
}

void FailEach(bool sticky, bool disk_full) {
  constexpr int kBadMax = 10;
  const Life life(17, 26, 60);
  Counts counts;
  int bad = 0;
  for (const Beginning& beginning : Beginnings(life)) {
    bool reached = true;
    const uint64_t first = 1 + testing::SampleSeed() % Step();
    for (uint64_t nth = first; reached && bad < kBadMax; nth += Step()) {
      const Failure failure{.nth = nth, .sticky = sticky, .disk_full = disk_full};
      if (!FailOnce(life, beginning, failure, &counts, &reached)) ++bad;
    }
  }
  CHECK(counts.failures > 250 / Step());
  for (const char* call :
       {"append .log", "sync .log", "make .log", "append .sst", "sync .sst", "close .sst",
        "make .sst", "append MANIFEST-", "sync MANIFEST-", "rename CURRENT", "make witness.new",
        "append witness.new", "sync witness.new", "rename witness", "write witness", "sync witness",
        "sync directory witness", "sync directory CURRENT", "sync directory .log"}) {
    if (Step() > 1) break;
    CAPTURE(call);
    CHECK(counts.calls.contains(call));
  }
  MESSAGE(counts.failures, " failures injected, ", counts.reported, " reported");
}

// Every call that makes, writes or syncs the witness, or names it.
void FailWitness(bool sticky, bool disk_full) {
  const Life life(17, 26, 60);
  const std::vector<Beginning> beginnings = Beginnings(life);
  Counts counts;
  for (const char* call :
       {"make", "append", "sync", "close", "rename", "sync directory", "write"}) {
    CAPTURE(call);
    const uint64_t before = counts.reported;
    for (const Beginning& beginning : beginnings) {
      bool reached = true;
      for (uint64_t nth = 1; reached; ++nth) {
        const Failure failure{.nth = nth,
                              .sticky = sticky,
                              .disk_full = disk_full,
                              .only_call = call,
                              .only_file = "witness"};
        if (!FailOnce(life, beginning, failure, &counts, &reached)) return;
      }
    }
    CHECK(counts.reported > before);
  }
  CHECK(counts.reported == counts.failures);
  for (const char* call :
       {"make witness.new", "append witness.new", "sync witness.new", "close witness.new",
        "rename witness", "sync directory witness", "write witness", "sync witness"}) {
    CAPTURE(call);
    CHECK(counts.calls.contains(call));
  }
  MESSAGE(counts.failures, " failures injected, ", counts.reported, " reported");
}

TEST_CASE("a store whose witness cannot be written once says so and loses nothing") {
  FailWitness(false, false);
}

TEST_CASE("a store whose witness cannot be written for good says so and loses nothing") {
  FailWitness(true, false);
}

TEST_CASE("a store that has no room for its witness says so and loses nothing") {
  FailWitness(false, true);
}

TEST_CASE("a store of which any call fails once says so and loses nothing") {
  FailEach(false, false);
}

TEST_CASE("a store on a disk that fails for good says so and loses nothing") {
  FailEach(true, false);
}

TEST_CASE("a store on a disk that is full for a moment says so and loses nothing") {
  FailEach(false, true);
}

TEST_CASE("a store on a disk that is full says so and loses nothing") { FailEach(true, true); }

// Has no room for what compactions make, which run on threads of this name.
class NoRoomToCompact : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "nowcalls.NoRoomToCompact"; }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    std::array<char, 16> thread{};
    pthread_getname_np(pthread_self(), thread.data(), thread.size());
    if (path.ends_with(".sst") && std::string_view(thread.data()).starts_with("rocksdb:low")) {
      return rocksdb::IOStatus::NoSpace("none for compactions");
    }
    return FileSystemWrapper::NewWritableFile(path, options, file, context);
  }
};

// RocksDB itself goes on behind this failure.
TEST_CASE("a store whose compaction has no room takes no more batches") {
  constexpr int kBatches = 400;
  const Life life(18, kBatches, 60);
  const testing::TempDir dir(testing::TempDir::Place::kMemory);
  const auto env =
      rocksdb::NewCompositeEnv(std::make_shared<NoRoomToCompact>(rocksdb::FileSystem::Default()));
  std::atomic<bool> reported{false};
  store::RocksStoreOptions options = SmallOptions();
  options.durability = store::Durability::kNone;
  options.env = env.get();
  options.on_background_error = [&](const Status& /*failure*/) { reported = true; };
  const auto opened = RocksStore::Open(dir.path(), options);
  REQUIRE(opened.ok());
  uint64_t batch = 0;
  Status status;
  while (status.ok() && !reported && batch < life.size() - 1) {
    status = (*opened)->Commit(life.Batch(++batch));
    // It refuses batches that come faster than it can flush.
    constexpr int64_t kFlushMs = 1'000;
    testing::PollUntil(kFlushMs, [&] {
      return reported || store::LogNames(store::LedgerDir(dir.path())).size() <= 2;
    });
  }
  REQUIRE((status.ok() || reported));
  REQUIRE(testing::PollUntil(testing::kPatienceMs, [&] { return reported.load(); }));
  status = (*opened)->Commit(life.Batch(batch + 1));
  CHECK_FALSE(status.ok());
  CHECK(status.message().find("none for compactions") != std::string::npos);
}

}  // namespace
}  // namespace nowcalls::faults
