// Logs with zeros behind them, and what a power cut leaves of their last write: where they end.
#include "store/log/log_views.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "store/disk/file_names.h"
#include "store/log/log_scan.h"
#include "store/salvage/log_salvage.h"
#include "support/process.h"
#include "support/sample.h"
#include "support/temp_dir.h"
#include "unit/store/rocks_fixture.h"

namespace nowcalls::store {
namespace {

namespace fs = std::filesystem;
using testing::ReadFileToString;
using testing::TempDir;
using testing::WriteStringToFile;
using State = LogViews::State;

constexpr uint64_t kSector = LogScan::kSectorBytes;

// What is shown of the log at `path`; nothing if it is refused as damaged.
std::optional<std::string> Shown(const std::string& path, State state = State::kAtRest) {
  LogViews views(rocksdb::FileSystem::Default(), state);
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  const rocksdb::IOStatus opened = views.NewSequentialFile(path, {}, &file, nullptr);
  uint64_t size = 0;
  const rocksdb::IOStatus sized = views.GetFileSize(path, {}, &size, nullptr);
  REQUIRE(opened.code() == sized.code());
  if (opened.IsCorruption()) {
    CHECK(opened.ToString().find(path) != std::string::npos);
    return std::nullopt;
  }
  REQUIRE_MESSAGE(opened.ok(), opened.ToString());
  std::string shown;
  std::vector<char> buffer(10'000);
  rocksdb::Slice read;
  do {
    REQUIRE(file->Read(buffer.size(), {}, &read, buffer.data(), nullptr).ok());
    shown.append(read.data(), read.size());
  } while (!read.empty());
  CHECK(shown.size() == size);
  return shown;
}

// A log, and where each of its batches ends.
struct MadeLog {
  std::string bytes;
  std::vector<uint64_t> ends;

  uint64_t BeginOfLast() const { return ends[ends.size() - 2]; }
};

// `last` records are in the last batch.
MadeLog MakeLog(int batches, int last) {
  const TempDir dir;
  const auto store = RocksStore::Open(dir.path(), {});
  REQUIRE(store.ok());
  LedgerScript script(71);
  const std::string path = LedgerFiles(dir.path(), ".log").back();
  MadeLog log;
  log.ends.push_back(SizeOf(path));
  for (int i = 1; i <= batches; ++i) {
    CommitMany(&script, 1, i == batches ? last : 40, store->get());
    log.ends.push_back(SizeOf(path));
  }
  log.bytes = ReadFileToString(path);
  return log;
}

// The log with zeros behind it.
std::string Padded(std::string bytes, size_t size) {
  bytes.resize(size);
  return bytes;
}

// A file that is changed in place, since so many are tried.
class LogOnDisk {
 public:
  LogOnDisk(const MadeLog& log, size_t zeros, const std::string& name = "000012.log")
      : whole_(Padded(log.bytes, log.bytes.size() + zeros)), path_(dir_.Sub(name)) {
    WriteStringToFile(path_, whole_);
    file_.open(path_, std::ios::in | std::ios::out | std::ios::binary);
  }
  // Zeros from `begin` to `end`.
  void Zero(uint64_t begin, uint64_t end) { Put(begin, std::string(end - begin, '\0')); }
  void Flip(uint64_t at, int mask) {
    Put(at, std::string(1, static_cast<char>(whole_[at] ^ mask)));
  }
  void Restore(uint64_t begin, uint64_t end) { Put(begin, whole_.substr(begin, end - begin)); }
  const std::string& path() const { return path_; }

 private:
  void Put(uint64_t at, const std::string& bytes) {
    file_.seekp(static_cast<std::streamoff>(at));
    file_ << bytes << std::flush;
    REQUIRE(file_.good());
  }

  const TempDir dir_;
  const std::string whole_;
  const std::string path_;
  std::fstream file_;
};

// Calls `visit` with the part of each sector that [begin, end) covers.
template <typename Visit>
void ForEachSector(uint64_t begin, uint64_t end, const Visit& visit) {
  for (uint64_t at = begin; at < end;) {
    const uint64_t next = std::min(at / kSector * kSector + kSector, end);
    visit(at, next);
    at = next;
  }
}

TEST_CASE("only a number and .log is the name of a log") {
  for (const char* path : {"/a/000012.log", "000012.log", "/a/1234567.log"}) CHECK(IsLog(path));
  for (const char* path : {"/a/LOG", "/a/.log", "/a/x.log", "/a/12x.log", "/a/12.log.away",
                           "/a/12.sst", "/a/12.log/MANIFEST-000001"}) {
    CHECK_FALSE(IsLog(path));
  }
}

// As RocksDB does it: the size first.
TEST_CASE("what is opened for its size is what is read then, once, and while nobody writes") {
  const MadeLog log = MakeLog(3, 40);
  const TempDir dir;
  const std::string path = dir.Sub("000012.log");
  const auto put = [&](uint64_t end) {
    WriteStringToFile(path, Padded(log.bytes.substr(0, end), log.bytes.size() + 9'000));
  };
  LogViews views(rocksdb::FileSystem::Default(), State::kAtRest);
  const auto size = [&] {
    uint64_t bytes = 0;
    REQUIRE(views.GetFileSize(path, {}, &bytes, nullptr).ok());
    return bytes;
  };
  const auto read = [&] {
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    REQUIRE(views.NewSequentialFile(path, {}, &file, nullptr).ok());
    std::string buffer(log.bytes.size() + 9'000, 'x');
    rocksdb::Slice shown;
    REQUIRE(file->Read(buffer.size(), {}, &shown, buffer.data(), nullptr).ok());
    return shown.ToString();
  };
  put(log.ends[1]);
  CHECK(size() == log.ends[1]);
  CHECK(size() == log.ends[1]);
  CHECK(read() == log.bytes.substr(0, log.ends[1]));
  std::map<uint64_t, LogSegment> segments;
  REQUIRE(views.FindSegments(dir.path(), &segments).ok());
  CHECK(segments.at(12).end == log.ends[1]);
  // The second is no longer the one whose size was asked for.
  put(log.ends[2]);
  CHECK(read() == log.bytes.substr(0, log.ends[2]));
  CHECK(size() == log.ends[2]);
  views.SetState(State::kBeingWritten);
  put(log.ends[3]);
  CHECK(read() == log.bytes);
  CHECK(size() == log.bytes.size());
}

TEST_CASE("the last byte that is not zero is found wherever it is") {
  const TempDir dir;
  const std::string path = dir.Sub("zeros");
  constexpr uint64_t kBytes = 3 * LogScan::kBlockBytes + 700;
  const auto found = [&](uint64_t from) {
    std::unique_ptr<rocksdb::FSRandomAccessFile> file;
    REQUIRE(rocksdb::FileSystem::Default()->NewRandomAccessFile(path, {}, &file, nullptr).ok());
    uint64_t end = 0;
    REQUIRE(FindLastNonZero(*file, from, kBytes, &end).ok());
    bool any = false;
    REQUIRE(HasNonZero(*file, kBytes, &any).ok());
    CHECK(any == (end > 0));
    return end;
  };
  std::string bytes(kBytes, '\0');
  WriteStringToFile(path, bytes);
  CHECK(found(0) == 0);
  for (uint64_t at = 0; at < kBytes; at += at < 600 || at + 1'300 > kBytes ? 1 : 977) {
    bytes[at] = '\x80';
    WriteStringToFile(path, bytes);
    bytes[at] = '\0';
    if (found(0) != at + 1 || found(at) != at + 1 || found(at + 1) != at + 1) FAIL("byte " << at);
  }
}

TEST_CASE("zeros behind a log are not shown, however many") {
  const MadeLog log = MakeLog(40, 40);
  REQUIRE(log.bytes.size() > 2 * LogScan::kBlockBytes);
  for (const size_t zeros : {0, 1, 6, 7, 511, 512, 40'000, 1'000'000}) {
    CAPTURE(zeros);
    const LogOnDisk disk(log, zeros);
    CHECK(Shown(disk.path()) == log.bytes);
    CHECK(Shown(disk.path(), State::kBeingWritten) == log.bytes);
  }
}

TEST_CASE("a log without a record is empty") {
  for (const size_t zeros : {0, 1, 100'000}) CHECK(Shown(LogOnDisk({}, zeros).path()) == "");
}

TEST_CASE("of a last batch that is written in part only what is before it is shown") {
  for (const int last : {1, 40, 3000}) {
    CAPTURE(last);
    const MadeLog log = MakeLog(20, last);
    const std::string before = log.bytes.substr(0, log.BeginOfLast());
    LogOnDisk disk(log, 5000);
    const uint64_t bytes = log.bytes.size() - before.size();
    for (const uint64_t kept : testing::SampleOf(bytes, 40, 150)) {
      const uint64_t cut = before.size() + kept;
      CAPTURE(cut);
      disk.Zero(cut, log.bytes.size());
      REQUIRE(Shown(disk.path()) == before);
      REQUIRE(Shown(disk.path(), State::kBeingWritten) == before);
      disk.Restore(cut, log.bytes.size());
    }
    REQUIRE(Shown(disk.path()) == log.bytes);
  }
}

TEST_CASE("of a last batch that lacks sectors anywhere only what is before it is shown") {
  for (const int last : {40, 150, 1500}) {
    CAPTURE(last);
    const MadeLog log = MakeLog(20, last);
    const uint64_t begin = log.BeginOfLast();
    const uint64_t end = log.bytes.size();
    const std::string before = log.bytes.substr(0, begin);
    LogOnDisk disk(log, 5000);
    const uint64_t stride = 1 + (end - begin) / (testing::Whole() ? 5'000 : 700);
    const uint64_t rest = testing::SampleSeed() % stride;
    ForEachSector(begin, end, [&](uint64_t first, uint64_t first_end) {
      disk.Zero(first, first_end);
      ForEachSector(first, end, [&](uint64_t second, uint64_t second_end) {
        if (second > first_end && second / kSector % stride != rest) return;
        CAPTURE(first);
        CAPTURE(second);
        disk.Zero(second, second_end);
        REQUIRE(Shown(disk.path()) == before);
        disk.Restore(second, second_end);
        disk.Zero(first, first_end);
      });
      disk.Restore(first, first_end);
    });
    REQUIRE(Shown(disk.path()) == log.bytes);
  }
}

TEST_CASE("a sector that is missing before the last batch is damage") {
  const MadeLog log = MakeLog(40, 40);
  LogOnDisk disk(log, 5000);
  ForEachSector(0, log.BeginOfLast(), [&](uint64_t begin, uint64_t end) {
    CAPTURE(begin);
    disk.Zero(begin, end);
    REQUIRE(Shown(disk.path()) == std::nullopt);
    disk.Restore(begin, end);
  });
}

TEST_CASE("a bit that changed before the last batch is damage, or where nothing is") {
  const MadeLog log = MakeLog(60, 40);
  LogOnDisk disk(log, 5000);
  int refused = 0;
  int tried = 0;
  for (const uint64_t at : testing::SampleOf(log.BeginOfLast(), 150, 2'000)) {
    CAPTURE(at);
    disk.Flip(at, 1 << (at % 8));
    const std::optional<std::string> shown = Shown(disk.path());
    ++tried;
    refused += shown ? 0 : 1;
    if (shown) REQUIRE(shown->size() == log.bytes.size());
    disk.Restore(at, at + 1);
  }
  CHECK(refused >= tried * 98 / 100);
}

TEST_CASE("a bit that changed in the last batch does not make it one that was cut off") {
  const MadeLog log = MakeLog(20, 40);
  LogOnDisk disk(log, 5000);
  constexpr uint64_t kHeaderBytes = 7;
  const uint64_t begin = log.BeginOfLast() + kHeaderBytes;
  for (const uint64_t offset : testing::SampleOf(log.bytes.size() - begin, 200)) {
    const uint64_t at = begin + offset;
    CAPTURE(at);
    disk.Flip(at, 1 << (at % 8));
    REQUIRE(Shown(disk.path()) == std::nullopt);
    disk.Restore(at, at + 1);
  }
}

TEST_CASE(
    "a log without batch numbers, of a first version, is damaged where a later batch shows it") {
  const TempDir dir;
  const std::string path = dir.Sub("000012.log");
  const std::string head("\2\1\0\0\0\0\0\0\1\0\0\0", 12);
  std::string whole;
  std::vector<uint64_t> ends;
  for (int i = 0; i < 3; ++i) {
    AppendLogRecord(head + std::string(1000, 'x') + "\1", &whole);
    ends.push_back(whole.size());
  }
  WriteStringToFile(path, whole);
  REQUIRE(Shown(path) == whole);
  for (const uint64_t at : {uint64_t{4}, uint64_t{600}, ends[0] + 600}) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] ^= 0x10;
    WriteStringToFile(path, damaged);
    CHECK(Shown(path) == std::nullopt);
    size_t found = 0;
    const auto count = [&](const SalvagedRecord&) { ++found; };
    CHECK(SalvageLog(path, count, [](const SkippedBytes&) {}).ok());
    CHECK(found == 2);
  }
  // Zeros in the first one.
  WriteStringToFile(path, whole.substr(0, 512) + std::string(489, '\0') + whole.substr(1001));
  CHECK(Shown(path) == std::nullopt);
}

TEST_CASE("only of the newest log that has anything in it the last batch may be missing in part") {
  const MadeLog log = MakeLog(20, 100);
  LogOnDisk disk(log, 5000);
  const uint64_t sector = (log.BeginOfLast() / kSector + 2) * kSector;
  disk.Zero(sector, sector + kSector);
  const std::string before = log.bytes.substr(0, log.BeginOfLast());
  const std::string newer = fs::path(disk.path()).parent_path() / "000015.log";
  CHECK(Shown(disk.path()) == before);
  WriteStringToFile(newer, "");
  CHECK(Shown(disk.path()) == before);
  WriteStringToFile(newer, std::string(70'000, '\0'));
  CHECK(Shown(disk.path()) == before);
  WriteStringToFile(newer, log.bytes);
  CHECK(Shown(disk.path()) == std::nullopt);
  CHECK(Shown(newer) == log.bytes);
}

TEST_CASE("a manifest is shown as the newest log is, whatever else there is") {
  const MadeLog log = MakeLog(20, 100);
  LogOnDisk disk(log, 5000, "MANIFEST-000012");
  const std::string before = log.bytes.substr(0, log.BeginOfLast());
  WriteStringToFile(fs::path(disk.path()).parent_path() / "000015.log", log.bytes);
  for (const State state : {State::kAtRest, State::kBeingWritten}) {
    CHECK(Shown(disk.path(), state) == log.bytes);
    ForEachSector(log.BeginOfLast(), log.bytes.size(), [&](uint64_t begin, uint64_t end) {
      CAPTURE(begin);
      disk.Zero(begin, end);
      REQUIRE(Shown(disk.path(), state) == before);
      disk.Restore(begin, end);
    });
  }
  ForEachSector(0, log.BeginOfLast(), [&](uint64_t begin, uint64_t end) {
    CAPTURE(begin);
    disk.Zero(begin, end);
    REQUIRE(Shown(disk.path()) == std::nullopt);
    disk.Restore(begin, end);
  });
}

TEST_CASE("a log that grows over zeros is shown batch by batch, none in part") {
  const MadeLog log = MakeLog(30, 700);
  const TempDir dir;
  const std::string path = dir.Sub("000012.log");
  WriteStringToFile(path, std::string(log.bytes.size() + 5000, '\0'));
  LogViews views(rocksdb::FileSystem::Default(), State::kBeingWritten);
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  REQUIRE(views.NewSequentialFile(path, {}, &file, nullptr).ok());
  std::fstream writer(path, std::ios::in | std::ios::out | std::ios::binary);
  std::string shown;
  std::vector<char> buffer(LogScan::kBlockBytes);
  for (uint64_t written = 0; written < log.bytes.size();) {
    const uint64_t next = std::min<uint64_t>(written + 333, log.bytes.size());
    writer << log.bytes.substr(written, next - written) << std::flush;
    written = next;
    rocksdb::Slice read;
    do {
      REQUIRE(file->Read(buffer.size(), {}, &read, buffer.data(), nullptr).ok());
      shown.append(read.data(), read.size());
    } while (!read.empty());
    uint64_t whole = 0;
    for (const uint64_t end : log.ends) whole = end <= written ? end : whole;
    REQUIRE(shown == log.bytes.substr(0, whole));
  }
  CHECK(shown == log.bytes);
}

// Gives no log back that ends with `name`.
class Unreadable : public rocksdb::FileSystemWrapper {
 public:
  explicit Unreadable(std::string name)
      : FileSystemWrapper(rocksdb::FileSystem::Default()), name_(std::move(name)) {}
  const char* Name() const override { return "Unreadable"; }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* context) override {
    if (path.ends_with(name_)) return rocksdb::IOStatus::IOError(path, "Permission denied");
    return FileSystemWrapper::NewRandomAccessFile(path, options, file, context);
  }

 private:
  const std::string name_;
};

TEST_CASE("a log that cannot be read is a failure, one that is damaged is left out") {
  const TempDir dir;
  const MadeLog log = MakeLog(3, 2);
  WriteStringToFile(dir.Sub("000005.log"), log.bytes);
  WriteStringToFile(dir.Sub("000006.log"), log.bytes);
  FlipByte(dir.Sub("000005.log"), 9, 1);
  std::map<uint64_t, LogSegment> segments;
  LogViews views(rocksdb::FileSystem::Default(), State::kAtRest);
  REQUIRE(views.FindSegments(dir.path(), &segments).ok());
  CHECK(segments.size() == 1);
  CHECK(segments.contains(6));
  LogViews refused(std::make_shared<Unreadable>("000006.log"), State::kAtRest);
  const rocksdb::IOStatus found = refused.FindSegments(dir.path(), &segments);
  CHECK(found.IsIOError());
  CHECK(found.ToString().find("000006.log") != std::string::npos);
  CHECK_FALSE(refused.FindSegments(dir.Sub("nowhere"), &segments).ok());
}

}  // namespace
}  // namespace nowcalls::store
