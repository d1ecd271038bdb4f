// A disk that refuses: the first failure ends a store for good, and is reported once.
#include <doctest/doctest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>

#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

using testing::TempDir;

// Which calls on which files fail while armed.
struct Faults {
  std::string suffix;
  std::atomic<bool> append{false};
  std::atomic<bool> sync{false};
  rocksdb::IOStatus error = rocksdb::IOStatus::IOError("the disk is on fire");

  bool Concerns(const std::string& path) const { return path.ends_with(suffix); }
};

class FaultyFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultyFile(std::unique_ptr<rocksdb::FSWritableFile> file, const Faults& faults)
      : rocksdb::FSWritableFileOwnerWrapper(std::move(file)), faults_(faults) {}

  using rocksdb::FSWritableFileOwnerWrapper::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* context) override {
    if (faults_.append) return faults_.error;
    return FSWritableFileOwnerWrapper::Append(data, options, context);
  }
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* context) override {
    if (faults_.sync) return faults_.error;
    return FSWritableFileOwnerWrapper::Sync(options, context);
  }

 private:
  const Faults& faults_;
};

class FaultyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  explicit FaultyFileSystem(const Faults& faults)
      : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()), faults_(faults) {}

  const char* Name() const override { return "FaultyFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewWritableFile(path, options, file, context);
    if (status.ok() && faults_.Concerns(path)) {
      *file = std::make_unique<FaultyFile>(std::move(*file), faults_);
    }
    return status;
  }

 private:
  const Faults& faults_;
};

// Refuses to open CURRENT for reading from the n-th time on.
class UnreadableCurrent : public rocksdb::FileSystemWrapper {
 public:
  explicit UnreadableCurrent(int nth)
      : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()), left_(nth) {}

  const char* Name() const override { return "UnreadableCurrent"; }
  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* context) override {
    if (Refuses(path)) return rocksdb::IOStatus::IOError("bad sector in " + path);
    return FileSystemWrapper::NewSequentialFile(path, options, file, context);
  }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override {
    if (Refuses(path)) return rocksdb::IOStatus::IOError("bad sector in " + path);
    return FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
  }
  bool refused() const { return left_ <= 0; }

 private:
  bool Refuses(const std::string& path) { return path.ends_with("/CURRENT") && --left_ <= 0; }

  int left_;
};

TEST_CASE("a file that cannot be read is an I/O error, at whatever step of the open") {
  const TempDir dir;
  REQUIRE(OpenTiny(dir.path())->Close().ok());
  bool refused = true;
  for (int nth = 1; refused; ++nth) {
    CAPTURE(nth);
    const auto files = std::make_shared<UnreadableCurrent>(nth);
    const auto env = rocksdb::NewCompositeEnv(files);
    RocksStoreOptions options = TinyOptions();
    options.env = env.get();
    const Status status = RocksStore::Open(dir.path(), options).status();
    refused = files->refused();
    CHECK(status.ok() == !refused);
    if (!refused) break;
    CAPTURE(status.message());
    CHECK(status.code() == StatusCode::kIoError);
    CHECK(status.message().find("bad sector") != std::string::npos);
    CHECK(status.message().find("check the disk") != std::string::npos);
    REQUIRE(nth < 20);
  }
}

class FaultyLedger {
 public:
  FaultyLedger(std::string suffix, Durability durability) {
    faults_.suffix = std::move(suffix);
    env_ = rocksdb::NewCompositeEnv(std::make_shared<FaultyFileSystem>(faults_));
    RocksStoreOptions options = TinyOptions();
    options.durability = durability;
    options.env = env_.get();
    options.on_background_error = [this](Status status) {
      ++reports_;
      report_ = std::move(status);
    };
    auto opened = RocksStore::Open(dir_.path(), options);
    REQUIRE_MESSAGE(opened.ok(), opened.status().ToString());
    store_ = *std::move(opened);
  }

  Status CommitOne() {
    ledger::CommitBatch batch;
    script_.NextBatch(20, &batch);
    return store_->Commit(batch);
  }

  Faults& faults() { return faults_; }
  RocksStore& store() { return *store_; }
  LedgerScript& script() { return script_; }
  const std::string& dir() const { return dir_.path(); }
  void Abandon() { store_.reset(); }
  int reports() const { return reports_; }
  const Status& report() const { return report_; }

 private:
  const TempDir dir_;
  Faults faults_;
  std::unique_ptr<rocksdb::Env> env_;
  std::atomic<int> reports_{0};
  Status report_;
  LedgerScript script_{21};
  std::unique_ptr<RocksStore> store_;
};

TEST_CASE("after a failed commit no other is taken, though the disk has recovered") {
  for (const bool at_sync : {false, true}) {
    CAPTURE(at_sync);
    FaultyLedger ledger(".log", Durability::kSync);
    REQUIRE(ledger.CommitOne().ok());
    REQUIRE(ledger.CommitOne().ok());
    (at_sync ? ledger.faults().sync : ledger.faults().append) = true;
    const Status failed = ledger.CommitOne();
    CHECK(failed.code() == StatusCode::kIoError);
    CHECK(failed.message().starts_with("batch 3: cannot commit: IO error: the disk is on fire"));
    CHECK(failed.message().find(ledger.dir() + "/ledger") != std::string::npos);
    ledger.faults().append = false;
    ledger.faults().sync = false;
    CHECK(ledger.CommitOne().message() == failed.message());
    CHECK(ledger.store().Sync().message() == failed.message());
  }
}

TEST_CASE("what was acknowledged before a failed commit is there after the next open") {
  FaultyLedger ledger(".log", Durability::kSync);
  for (int i = 0; i < 5; ++i) REQUIRE(ledger.CommitOne().ok());
  const Dump acknowledged = ledger.script().Expected();
  ledger.faults().append = true;
  REQUIRE_FALSE(ledger.CommitOne().ok());
  const Dump attempted = ledger.script().Expected();
  ledger.Abandon();
  ledger.faults().append = false;
  const auto store = OpenTiny(ledger.dir());
  const Dump dump = DumpOf(store.get());
  CHECK((dump == acknowledged || dump == attempted));
}

TEST_CASE("a failed sync between commits ends the store too") {
  FaultyLedger ledger(".log", Durability::kInterval);
  REQUIRE(ledger.CommitOne().ok());
  REQUIRE(ledger.store().Sync().ok());
  REQUIRE(ledger.CommitOne().ok());
  ledger.faults().sync = true;
  const Status failed = ledger.store().Sync();
  CHECK(failed.code() == StatusCode::kIoError);
  ledger.faults().sync = false;
  CHECK(ledger.CommitOne().message() == failed.message());
  CHECK(ledger.store().Sync().message() == failed.message());
}

TEST_CASE("the first batch of a process is synced in every durability, later ones as it says") {
  for (const Durability durability : {Durability::kInterval, Durability::kNone}) {
    FaultyLedger refused(".log", durability);
    refused.faults().sync = true;
    CHECK(refused.CommitOne().code() == StatusCode::kIoError);

    FaultyLedger ledger(".log", durability);
    REQUIRE(ledger.CommitOne().ok());
    ledger.faults().sync = true;
    CHECK(ledger.CommitOne().ok());
  }
}

TEST_CASE("a full disk is told as such") {
  FaultyLedger ledger(".log", Durability::kSync);
  ledger.faults().error = rocksdb::IOStatus::NoSpace("no space left");
  ledger.faults().append = true;
  const Status failed = ledger.CommitOne();
  CHECK(failed.code() == StatusCode::kIoError);
  CHECK(failed.message().find("free space on the file system") != std::string::npos);
}

TEST_CASE("a failed flush is reported once, by close too, and refuses what follows") {
  FaultyLedger ledger(".sst", Durability::kNone);
  for (int i = 0; i < 5; ++i) REQUIRE(ledger.CommitOne().ok());
  const Dump acknowledged = ledger.script().Expected();
  ledger.faults().append = true;
  CHECK(ledger.store().Close().code() == StatusCode::kIoError);
  CHECK(ledger.reports() == 1);
  CHECK(ledger.report().code() == StatusCode::kIoError);
  CHECK(ledger.report().message().starts_with(
      "cannot write the ledger in the background: IO error: the disk is on fire"));
  ledger.faults().append = false;
  const auto store = OpenTiny(ledger.dir());
  CHECK(DifferenceOf(DumpOf(store.get()), acknowledged) == "");
}

}  // namespace
}  // namespace nowcalls::store
