// Logs on their way to RocksDB: LogScan and LogViews over any bytes.
//
// The first byte says what the file is. Even: the rest of the input. Odd: records that are sound,
// then damage. Behind it come the number of records and for each its size (two bytes); then damage
// of three bytes each, which say what happens where: a byte is flipped, a sector or the rest
// becomes zeros, the file is cut, zeros follow.
#include <doctest/doctest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "fuzz/targets.h"
#include "store/log_scan.h"
#include "store/log_views.h"

namespace nowcalls::fuzz {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;
using store::LogScan;
using store::LogViews;

constexpr size_t kHeaderBytes = 7;
constexpr size_t kBytesMax = 80'000;  // Some blocks.

class BytesFile : public rocksdb::FSRandomAccessFile {
 public:
  explicit BytesFile(const std::string* bytes) : bytes_(bytes) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& /*options*/, rocksdb::Slice* result,
                char* scratch, rocksdb::IODebugContext* /*context*/) const override {
    const size_t from = std::min<uint64_t>(offset, bytes_->size());
    const size_t size = std::min(n, bytes_->size() - from);
    std::copy_n(bytes_->data() + from, size, scratch);
    *result = {scratch, size};
    return IOStatus::OK();
  }

 private:
  const std::string* const bytes_;
};

void AppendPiece(int type, std::string_view payload, std::string* log) {
  const std::string covered = static_cast<char>(type) + std::string(payload);
  const uint32_t crc = Crc32c(covered);
  const uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  for (int i = 0; i < 4; ++i) log->push_back(static_cast<char>(masked >> (8 * i)));
  log->push_back(static_cast<char>(payload.size()));
  log->push_back(static_cast<char>(payload.size() >> 8));
  log->push_back(static_cast<char>(type));
  log->append(payload);
}

// As RocksDB writes it (log_format.h).
void AppendRecord(std::string_view payload, std::string* log) {
  bool first = true;
  do {
    size_t room = LogScan::kBlockBytes - log->size() % LogScan::kBlockBytes;
    if (room < kHeaderBytes) {
      log->append(room, '\0');
      room = LogScan::kBlockBytes;
    }
    const std::string_view piece = payload.substr(0, room - kHeaderBytes);
    payload.remove_prefix(piece.size());
    const bool last = payload.empty();
    const int type = first ? (last ? 1 : 2) : (last ? 4 : 3);
    AppendPiece(type, piece, log);
    first = false;
  } while (!payload.empty());
}

uint16_t TakeNumber(std::string_view* input) {
  uint16_t number = 0;
  for (int i = 0; i < 2 && !input->empty(); ++i) {
    number = static_cast<uint16_t>(number << 8 | static_cast<uint8_t>(input->front()));
    input->remove_prefix(1);
  }
  return number;
}

struct Log {
  std::string bytes;
  std::vector<uint64_t> ends = {0};  // Of its records.
  uint64_t sound = 0;                // Before it nothing was changed.
};

void Damage(char how, uint64_t at, Log* log) {
  const auto step = static_cast<uint8_t>(how);
  // Places are thousandths of the file, or counted from its end.
  const uint64_t size = log->bytes.size();
  at = step >= 128 ? size - std::min(at, size) : std::min(at * size / 1000, size);
  switch (step % 5) {
    case 0:
      if (at < size) log->bytes[at] = static_cast<char>(log->bytes[at] ^ (1 << (step / 5 % 8)));
      break;
    case 1: {
      const uint64_t from = at / LogScan::kSectorBytes * LogScan::kSectorBytes;
      for (uint64_t i = from; i < std::min(size, from + LogScan::kSectorBytes); ++i) {
        log->bytes[i] = '\0';
      }
      at = from;
      break;
    }
    case 2: std::fill(log->bytes.begin() + static_cast<int64_t>(at), log->bytes.end(), '\0'); break;
    case 3: log->bytes.resize(at); break;
    default:
      log->bytes.append(1000, '\0');
      at = size;
      break;
  }
  log->sound = std::min(log->sound, at);
}

Log MakeLog(std::string_view input) {
  Log log;
  const size_t records = input.empty() ? 0 : static_cast<uint8_t>(input.front()) % 32;
  if (!input.empty()) input.remove_prefix(1);
  for (size_t i = 0; i < records && log.bytes.size() < kBytesMax; ++i) {
    // The last byte of a record is not zero; of those before some may be.
    std::string payload(TakeNumber(&input) + 1, static_cast<char>(i % 3));
    payload.back() = 1;
    AppendRecord(payload, &log.bytes);
    log.ends.push_back(log.bytes.size());
  }
  log.sound = log.bytes.size();
  while (input.size() >= 3 && log.bytes.size() < kBytesMax) {
    const char how = input.front();
    input.remove_prefix(1);
    Damage(how, TakeNumber(&input), &log);
  }
  return log;
}

// What the views show of the log, and whether they refuse it.
IOStatus ReadView(LogViews* views, const std::string& path, std::string* shown) {
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  IOStatus status = views->NewSequentialFile(path, {}, &file, nullptr);
  std::vector<char> scratch(10'000);
  while (status.ok()) {
    rocksdb::Slice piece;
    status = file->Read(scratch.size(), IOOptions(), &piece, scratch.data(), nullptr);
    if (!status.ok() || piece.empty()) break;
    shown->append(piece.data(), piece.size());
  }
  return status;
}

void WriteFile(rocksdb::FileSystem* files, const std::string& path, const std::string& bytes) {
  std::unique_ptr<rocksdb::FSWritableFile> file;
  REQUIRE(files->NewWritableFile(path, {}, &file, nullptr).ok());
  REQUIRE(file->Append(bytes, IOOptions(), nullptr).ok());
  REQUIRE(file->Close(IOOptions(), nullptr).ok());
}

void CheckViews(const std::string& bytes, uint64_t end, LogScan::Rest rest) {
  const std::unique_ptr<rocksdb::Env> env(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  const std::shared_ptr<rocksdb::FileSystem> files = env->GetFileSystem();
  REQUIRE(files->CreateDirIfMissing("/ledger", IOOptions(), nullptr).ok());
  WriteFile(files.get(), "/ledger/000007.log", bytes);
  for (const LogViews::State state : {LogViews::State::kAtRest, LogViews::State::kBeingWritten}) {
    LogViews views(files, state);
    std::string shown;
    const IOStatus read = ReadView(&views, "/ledger/000007.log", &shown);
    uint64_t size = 0;
    const IOStatus sized = views.GetFileSize("/ledger/000007.log", IOOptions(), &size, nullptr);
    REQUIRE(read.ok() == sized.ok());
    if (read.ok()) {
      REQUIRE(size == end);
      REQUIRE(shown == bytes.substr(0, end));
    } else {
      REQUIRE(read.IsCorruption());
    }
    const bool damaged = rest == LogScan::Rest::kRecord || rest == LogScan::Rest::kDamaged;
    if (state == LogViews::State::kAtRest) REQUIRE(read.ok() != damaged);
  }
}

void Check(const Log& log) {
  const BytesFile file(&log.bytes);
  LogScan scan(&file);
  REQUIRE(scan.Advance().ok());
  const uint64_t end = scan.end();
  REQUIRE(end <= log.bytes.size());
  // Every record before the first damage is found.
  uint64_t whole = 0;
  for (const uint64_t record_end : log.ends) {
    if (record_end <= log.sound) whole = record_end;
  }
  REQUIRE(end >= whole);
  LogScan::Rest rest{};
  uint64_t content_end = 0;
  REQUIRE(scan.LookBehind(log.bytes.size(), &rest, &content_end).ok());
  REQUIRE(scan.Advance().ok());
  REQUIRE(scan.end() == end);
  REQUIRE(content_end >= end);
  REQUIRE(content_end <= log.bytes.size());
  const bool zeros = log.bytes.find_first_not_of('\0', end) == std::string::npos;
  REQUIRE(zeros == (rest == LogScan::Rest::kNothing));
  CheckViews(log.bytes, end, rest);
}

}  // namespace

void FuzzLog(std::string_view input) {
  if (input.empty()) return;
  const bool any = input.front() % 2 == 0;
  input.remove_prefix(1);
  Log log;
  if (any) {
    log.bytes = input.substr(0, kBytesMax);
  } else {
    log = MakeLog(input);
  }
  Check(log);
}

}  // namespace nowcalls::fuzz
