// Which batches the witness says may be gone, when a log is deleted; for what blocks are reserved.
#include "store/rocks/ledger_file_system.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "store/disk/file_names.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOOptions;

using LogFile = std::unique_ptr<rocksdb::FSWritableFile>;

struct Fixture {
  Fixture() {
    auto taken = LedgerLock::Take(dir.path());
    REQUIRE(taken.ok());
    lock = *std::move(taken);
    files = std::make_unique<LedgerFileSystem>(rocksdb::FileSystem::Default(), lock.get());
    REQUIRE(files->Accept(6).ok());
  }
  ~Fixture() { files->StopHelpers(); }

  std::string Path(const std::string& name) const { return dir.Sub("ledger/" + name); }
  LogFile NewLog(const std::string& name) const {
    LogFile log;
    REQUIRE(files->NewWritableFile(Path(name), {}, &log, nullptr).ok());
    return log;
  }
  void Write(const LogFile& log, uint64_t batch) const {
    files->Begun(batch);
    REQUIRE(log->Append("a batch", IOOptions(), nullptr).ok());
  }
  uint64_t Floor() const {
    return ledger::DecodeWitnessFile(testing::ReadFileToString(Path("witness"))).witness->floor;
  }

  const testing::TempDir dir;
  std::unique_ptr<LedgerLock> lock;
  std::unique_ptr<LedgerFileSystem> files;
};

TEST_CASE_FIXTURE(Fixture, "when a log goes, all that was in it may be gone, and nothing else") {
  const LogFile first = NewLog("000007.log");
  Write(first, 7);
  files->Committed(7, true);
  Write(first, 8);
  LogFile second;
  SUBCASE("the next was begun between two commits") {
    files->Committed(8, true);
    second = NewLog("000009.log");
  }
  SUBCASE("the next was begun by a commit, for its batch") {
    files->Committed(8, true);
    files->Begun(9);
    second = NewLog("000009.log");
  }
  SUBCASE("the next was begun by a backup, before the store knew of its last batch") {
    second = NewLog("000009.log");
    files->Committed(8, true);
  }
  Write(second, 9);
  files->Committed(9, true);
  REQUIRE(files->DeleteFile(Path("000007.log"), IOOptions(), nullptr).ok());
  CHECK(Floor() == 8);
}

TEST_CASE_FIXTURE(Fixture,
                  "blocks are reserved for logs, and not for tables, which mostly stay small") {
  for (const char* name : {"000007.log", "000008.sst"}) {
    CAPTURE(name);
    std::unique_ptr<rocksdb::FSWritableFile> file;
    REQUIRE(files->NewWritableFile(Path(name), {}, &file, nullptr).ok());
    file->SetPreallocationBlockSize(64 * 1024);
    file->PrepareWrite(0, 10, IOOptions(), nullptr);
    size_t block_bytes = 0;
    size_t blocks = 0;
    file->GetPreallocationStatus(&block_bytes, &blocks);
    CHECK((blocks > 0) == IsLog(name));
    REQUIRE(file->Append("0123456789", IOOptions(), nullptr).ok());
    REQUIRE(file->Close(IOOptions(), nullptr).ok());
    CHECK(std::filesystem::file_size(Path(name)) == 10);
  }
}

// A disk whose directories can be made not to be synced.
class NoDirectorySync : public rocksdb::FileSystemWrapper {
 public:
  NoDirectorySync() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "NoDirectorySync"; }
  rocksdb::IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* made,
                                 rocksdb::IODebugContext* context) override {
    rocksdb::IOStatus status = FileSystemWrapper::NewDirectory(path, options, made, context);
    if (status.ok()) *made = std::make_unique<Directory>(std::move(*made), this);
    return status;
  }

  bool fails = false;

 private:
  class Directory : public rocksdb::FSDirectoryWrapper {
   public:
    Directory(std::unique_ptr<rocksdb::FSDirectory> target, NoDirectorySync* owner)
        : FSDirectoryWrapper(std::move(target)), owner_(*owner) {}
    rocksdb::IOStatus Fsync(const IOOptions& options, rocksdb::IODebugContext* context) override {
      if (owner_.fails) return rocksdb::IOStatus::IOError("no sync");
      return FSDirectoryWrapper::Fsync(options, context);
    }

   private:
    NoDirectorySync& owner_;
  };
};

TEST_CASE("a directory that is not synced for the witness is told of, since nobody else asks") {
  const testing::TempDir dir;
  auto lock = LedgerLock::Take(dir.path());
  REQUIRE(lock.ok());
  const auto disk = std::make_shared<NoDirectorySync>();
  std::string told;
  LedgerFileSystem files(disk, lock->get(), 0, nullptr,
                         [&](const rocksdb::IOStatus& failure, const std::string& doing) {
                           told = doing + ": " + failure.ToString();
                         });
  REQUIRE(files.Accept(6, /*unsynced=*/true).ok());
  const auto begin = [&](const std::string& name) {
    LogFile file;
    REQUIRE(files.NewWritableFile(dir.Sub("ledger/" + name), {}, &file, nullptr).ok());
    return file;
  };
  const LogFile first = begin("000007.log");
  files.Begun(7);
  REQUIRE(first->Append("a batch", IOOptions(), nullptr).ok());
  files.Committed(7, false);
  const LogFile second = begin("000009.log");
  REQUIRE(first->Sync(IOOptions(), nullptr).ok());
  const LogFile manifest = begin("MANIFEST-000010");
  REQUIRE(manifest->Append("an edit", IOOptions(), nullptr).ok());
  disk->fails = true;
  REQUIRE(manifest->Sync(IOOptions(), nullptr).ok());
  CHECK(told == "sync the ledger's directory: IO error: no sync");
  files.StopHelpers();
}

}  // namespace
}  // namespace nowcalls::store
