// Files that are deleted are freed bit by bit, and only those that nobody sees.
#include "store/disk/freed_files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <rocksdb/file_system.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>

#include "store/disk/file_use.h"
#include "support/poll_until.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using rocksdb::IOStatus;
using testing::kPatienceMs;
using testing::PollUntil;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

constexpr size_t kLarge = 9 * 1024 * 1024;

struct Freed {
  std::string Make(const std::string& name, size_t bytes) const {
    WriteStringToFile(dir.Sub(name), "x");
    fs::resize_file(dir.Sub(name), bytes);
    return dir.Sub(name);
  }
  IOStatus Delete(const std::string& path) { return freed.Delete(path, {}, nullptr); }

  const TempDir dir;
  std::atomic<int> name_syncs{0};
  IOStatus on_sync;  // Set before the first Delete.
  FreedFiles freed{rocksdb::FileSystem::Default(), [this] {
                     ++name_syncs;
                     return on_sync;
                   }};
};

// What is behind a descriptor that outlives the name.
size_t SizeBehind(int fd) {
  struct stat status {};
  REQUIRE(fstat(fd, &status) == 0);
  return static_cast<size_t>(status.st_size);
}

class Reader {
 public:
  explicit Reader(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    REQUIRE(fd_ >= 0);
  }
  ~Reader() { close(fd_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  size_t size() const { return SizeBehind(fd_); }

 private:
  const int fd_;
};

TEST_CASE_FIXTURE(Freed, "a file has no name at once, and is freed when that is durable") {
  REQUIRE(Delete(Make("large", kLarge)).ok());
  CHECK_FALSE(fs::exists(dir.Sub("large")));
  CHECK(PollUntil(kPatienceMs, [&] { return freed.bytes_left() == 0; }));
  CHECK(name_syncs == 1);
}

TEST_CASE_FIXTURE(Freed, "small files are deleted as any") {
  REQUIRE(Delete(Make("small", 100'000)).ok());
  CHECK_FALSE(fs::exists(dir.Sub("small")));
  CHECK(freed.bytes_left() == 0);
  CHECK(name_syncs == 0);
}

TEST_CASE_FIXTURE(Freed, "where room is scarce large files are freed as any, too") {
  REQUIRE(Delete(Make("before", kLarge)).ok());
  freed.FreeAtOnce(true);
  REQUIRE(PollUntil(kPatienceMs, [&] { return freed.bytes_left() == 0; }));
  const int syncs = name_syncs;
  REQUIRE(Delete(Make("large", kLarge)).ok());
  CHECK(freed.bytes_left() == 0);
  freed.FreeAtOnce(false);
  REQUIRE(Delete(Make("after", kLarge)).ok());
  REQUIRE(PollUntil(kPatienceMs, [&] { return freed.bytes_left() == 0; }));
  CHECK(name_syncs == syncs + 1);
}

TEST_CASE_FIXTURE(Freed, "what somebody has open, or under another name, stays as it is") {
  const std::string path = Make("large", kLarge);
  SUBCASE("another process or this one reads it") {
    const Reader reader(path);
    REQUIRE(Delete(path).ok());
    REQUIRE(PollUntil(kPatienceMs, [&] { return freed.bytes_left() == 0; }));
    CHECK(reader.size() == kLarge);
  }
  SUBCASE("a backup has linked it") {
    fs::create_hard_link(path, dir.Sub("linked"));
    REQUIRE(Delete(path).ok());
    REQUIRE(PollUntil(kPatienceMs, [&] { return freed.bytes_left() == 0; }));
    CHECK(fs::file_size(dir.Sub("linked")) == kLarge);
  }
  CHECK_FALSE(fs::exists(path));
  CHECK(name_syncs == 1);
}

TEST_CASE_FIXTURE(Freed, "a file is not cut while a power cut could bring back its name") {
  on_sync = IOStatus::IOError("no");
  REQUIRE(Delete(Make("large", kLarge)).ok());
  CHECK(PollUntil(kPatienceMs, [&] { return freed.bytes_left() == 0 && name_syncs == 1; }));
}

TEST_CASE_FIXTURE(Freed, "a file that cannot be deleted is told, and stays") {
  CHECK(Delete(dir.Sub("none")).IsPathNotFound());
  const std::string path = dir.Sub("directory");
  fs::create_directory(path);
  CHECK_FALSE(Delete(path).ok());
  CHECK(fs::exists(path));
  CHECK(freed.bytes_left() == 0);
}

TEST_CASE_FIXTURE(Freed, "many files and a stop in the middle leave nothing behind") {
  for (int i = 0; i < 80; ++i) {
    REQUIRE(Delete(Make("large" + std::to_string(i), kLarge)).ok());
  }
  freed.Stop();
  CHECK(freed.bytes_left() == 0);
  CHECK(fs::is_empty(dir.path()));
  REQUIRE(Delete(Make("later", kLarge)).ok());
  CHECK(freed.bytes_left() == 0);
  CHECK(fs::is_empty(dir.path()));
}

TEST_CASE("files are freed at 32 MB a second or faster, and within some two seconds") {
  using std::chrono::microseconds;
  constexpr uint64_t kMiB = 1 << 20;
  CHECK(FreePause(0) == microseconds(64'000));
  CHECK(FreePause(8 * kMiB) == microseconds(64'000));
  CHECK(FreePause(200 * kMiB) == microseconds(20'000));
  CHECK(FreePause(2048 * kMiB) < microseconds(2'000));
}

TEST_CASE("a file is unused when nobody has it open and it has one name") {
  const TempDir dir;
  const std::string path = dir.Sub("file");
  WriteStringToFile(path, "four");
  uint64_t bytes = 0;
  CHECK(IsUnused(path, &bytes));
  CHECK(bytes == 4);
  {
    const Reader reader(path);
    CHECK_FALSE(IsUnused(path, &bytes));
  }
  CHECK(IsUnused(path, &bytes));
  fs::create_hard_link(path, dir.Sub("other"));
  CHECK_FALSE(IsUnused(path, &bytes));
  fs::remove(path);
  CHECK_FALSE(IsUnused(path, &bytes));
  fs::create_symlink(dir.Sub("other"), path);
  CHECK_FALSE(IsUnused(path, &bytes));
  CHECK_FALSE(IsUnused(dir.path(), &bytes));
  CHECK(ReadFileToString(dir.Sub("other")) == "four");
}

}  // namespace
}  // namespace nowcalls::store
