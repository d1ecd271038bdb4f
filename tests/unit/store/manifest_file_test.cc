// Manifests: a record is on the disk before the next one is written.
#include "store/log/manifest_file.h"

#include <doctest/doctest.h>

#include "support/process.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOStatus;
using testing::TempDir;

// What is done to a file: "w" for a record, "s" for a sync, "f" for one with all that stat shows.
class NotedFile : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  NotedFile(std::unique_ptr<rocksdb::FSWritableFile> file, std::string* notes)
      : FSWritableFileOwnerWrapper(std::move(file)), notes_(*notes) {}
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  rocksdb::IODebugContext* context) override {
    notes_ += 'w';
    return target()->Append(data, options, context);
  }
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*verification*/,
                  rocksdb::IODebugContext* context) override {
    return Append(data, options, context);
  }
  IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) override {
    notes_ += 's';
    if (sync_fails) return IOStatus::IOError("no");
    return target()->Sync(options, context);
  }
  IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* context) override {
    notes_ += 'f';
    return target()->Fsync(options, context);
  }

  bool sync_fails = false;

 private:
  std::string& notes_;
};

struct Manifest {
  Manifest() {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    const std::string path = dir.Sub("MANIFEST-000001");
    REQUIRE(rocksdb::FileSystem::Default()->NewWritableFile(path, {}, &file, nullptr).ok());
    auto made = std::make_unique<NotedFile>(std::move(file), &notes);
    noted = made.get();
    manifest = std::make_unique<ManifestFile>(std::move(made));
  }
  void Write() const { REQUIRE(manifest->Append("record", {}, nullptr).ok()); }

  const TempDir dir;
  std::string notes;
  NotedFile* noted = nullptr;
  std::unique_ptr<rocksdb::FSWritableFile> manifest;
};

TEST_CASE_FIXTURE(Manifest, "a manifest is begun with one sync and goes on record by record") {
  for (int i = 0; i < 3; ++i) Write();
  REQUIRE(manifest->Sync({}, nullptr).ok());
  CHECK(notes == "wwws");
  for (int i = 0; i < 3; ++i) Write();
  REQUIRE(manifest->Append("record", {}, rocksdb::DataVerificationInfo(), nullptr).ok());
  REQUIRE(manifest->Fsync({}, nullptr).ok());
  Write();
  CHECK(notes == "wwwswswswswfw");
  CHECK(testing::ReadFileToString(dir.Sub("MANIFEST-000001")).size() == 8 * 6);
}

TEST_CASE_FIXTURE(Manifest, "a record is not written behind one that could not be synced") {
  Write();
  REQUIRE(manifest->Sync({}, nullptr).ok());
  Write();
  noted->sync_fails = true;
  CHECK_FALSE(manifest->Append("record", {}, nullptr).ok());
  CHECK_FALSE(manifest->Append("record", {}, rocksdb::DataVerificationInfo(), nullptr).ok());
  noted->sync_fails = false;
  Write();
  CHECK(notes == "wswsssw");
}

}  // namespace
}  // namespace nowcalls::store
