// RocksDB's own log: bounded, kept over some starts, and never a reason to end.
#include "store/rocks/info_log.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "support/process.h"
#include "support/temp_dir.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

size_t FilesIn(const std::string& dir) {
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(dir)) ++files;
  return files;
}

TEST_CASE("starts go on in one log until it is full, and those of RocksDB's own go") {
  constexpr size_t kBytesMax = 1000;
  const TempDir dir;
  WriteStringToFile(dir.Sub("LOG.old.1700000000000000"), "made by RocksDB");
  for (int start = 1; start <= 6; ++start) {
    InfoLog log(dir.path(), kBytesMax);
    rocksdb::Info(&log, "start %d", start);
  }
  CHECK(FilesIn(dir.path()) == 1);
  CHECK(Contains(ReadFileToString(dir.Sub("LOG")), "start 1\n"));
  CHECK(Contains(ReadFileToString(dir.Sub("LOG")), "start 6\n"));
  fs::resize_file(dir.Sub("LOG"), kBytesMax);
  {
    InfoLog log(dir.path(), kBytesMax);
    rocksdb::Info(&log, "start 7");
  }
  CHECK(Contains(ReadFileToString(dir.Sub("LOG")), "start 7\n"));
  CHECK(Contains(ReadFileToString(dir.Sub("LOG.old.1")), "start 6\n"));
  CHECK(FilesIn(dir.path()) == 2);
}

TEST_CASE("what is no file in the place of a log is put aside, without waiting for it") {
  const TempDir dir;
  REQUIRE(mkfifo(dir.Sub("LOG").c_str(), 0600) == 0);
  InfoLog log(dir.path());
  rocksdb::Info(&log, "heard");
  CHECK(Contains(ReadFileToString(dir.Sub("LOG")), "heard\n"));
  CHECK(fs::is_fifo(dir.Sub("LOG.old.1")));
}

TEST_CASE("a log that is full makes room for the next, and none grows beyond its bound") {
  constexpr size_t kBytesMax = 1000;
  const TempDir dir;
  InfoLog log(dir.path(), kBytesMax);
  for (int line = 0; line < 500; ++line) rocksdb::Warn(&log, "line %d.", line);
  std::string all;
  for (const char* name : {"LOG.old.3", "LOG.old.2", "LOG.old.1", "LOG"}) {
    const std::string text = ReadFileToString(dir.Sub(name));
    CHECK(text.size() <= kBytesMax);
    all += text;
  }
  CHECK(all.size() > 3 * kBytesMax);
  CHECK(Contains(all, "[WARN] line 499.\n"));
  CHECK_FALSE(Contains(all, "line 1."));
  CHECK_FALSE(fs::exists(dir.Sub("LOG.old.4")));
}

// While it lives, no file of this process can grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_CASE("lines that cannot be written are counted in the next that can") {
  const TempDir dir;
  InfoLog log(dir.path());
  rocksdb::Info(&log, "before");
  {
    const FileSizeLimit none(1);
    for (int i = 0; i < 3; ++i) rocksdb::Info(&log, "lost");
  }
  rocksdb::Info(&log, "after");
  const std::string text = ReadFileToString(dir.Sub("LOG"));
  CHECK(Contains(text, "before\n(3 lines were lost here)\n"));
  CHECK(Contains(text, "after\n"));
  CHECK_FALSE(Contains(text, " lost\n"));
}

TEST_CASE("where there is no directory, lines go nowhere") {
  const testing::TempDir dir;
  const std::string absent = dir.Sub("absent");
  InfoLog log(absent);
  rocksdb::Info(&log, "unheard");
  CHECK_FALSE(std::filesystem::exists(absent));
  CHECK(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace nowcalls::store
