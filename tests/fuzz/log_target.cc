// Logs on their way to RocksDB: LogScan, LogViews and the chain of batches, over any bytes.
//
// The first byte says what the file is. Even: the rest of the input. Odd: records that are sound,
// then damage. Behind it come what else is in the directory (one byte) and the number of records,
// and for each two bytes: the first says how it is numbered and where it ends (see TakeSize), the
// second how long it is; then damage of three bytes each, which say what happens where: a byte is
// flipped, a sector or the rest becomes zeros, the file is cut, zeros follow, sectors of the last
// record are zeros as a power cut leaves them.
#include <doctest/doctest.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "fuzz/byte_source.h"
#include "fuzz/targets.h"
#include "ledger/codec.h"
#include "store/log/log_chain.h"
#include "store/log/log_scan.h"
#include "store/log/log_views.h"
#include "store/salvage/log_salvage.h"

namespace nowcalls::fuzz {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;
using store::BatchRun;
using store::LogScan;
using store::LogViews;

constexpr size_t kHeaderBytes = 7;
constexpr size_t kBytesMax = 70'000;  // More than two blocks.
constexpr uint64_t kFirstBatch = 5;

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

struct Record {
  uint64_t begin = 0;  // Of its first piece.
  uint64_t end = 0;
  std::optional<uint64_t> batch;
  size_t bytes = 0;       // Of its payload.
  bool is_batch = false;  // It begins like one.
};

struct Log {
  std::string bytes;
  std::string sound;  // As it was before the damage.
  std::vector<Record> records;
  bool torn = false;  // As a power cut leaves it, or not damaged at all.
  uint8_t beside = 0;
};

bool IsIntact(const Log& log, const Record& record) {
  const size_t size = record.end - record.begin;
  return record.end <= log.bytes.size() &&
         log.bytes.compare(record.begin, size, log.sound, record.begin, size) == 0;
}

// A record is so long, or ends so close to the end of its block.
size_t TakeSize(uint8_t how, ByteSource* input, uint64_t log_bytes) {
  const size_t number = input->Byte();
  switch (how % 4) {
    case 0: return number;
    case 1: return number * 20;
    case 2: return number * 256;
    default: {
      const uint64_t place = log_bytes % LogScan::kBlockBytes + 2 * kHeaderBytes;
      const uint64_t left = LogScan::kBlockBytes + number % 64 - 32;
      return left > place ? left - place : number;
    }
  }
}

// In the last record that a power cut interrupted, sectors may be zeros, in any order.
void Tear(uint64_t which, Log* log) {
  if (log->records.empty()) return;
  const Record& last = log->records.back();
  const uint64_t from = log->records.size() < 2 ? 0 : log->records[log->records.size() - 2].end;
  uint64_t at = std::max(last.begin, from);
  for (int sector = 0; at < std::min<uint64_t>(last.end, log->bytes.size()); ++sector) {
    const uint64_t next =
        at / LogScan::kSectorBytes * LogScan::kSectorBytes + LogScan::kSectorBytes;
    const uint64_t to = std::min({next, last.end, uint64_t{log->bytes.size()}});
    if ((which >> (sector % 16)) % 2 == 1) {
      std::fill(log->bytes.begin() + static_cast<int64_t>(at),
                log->bytes.begin() + static_cast<int64_t>(to), '\0');
    }
    at = next;
  }
}

void Damage(uint8_t step, uint64_t at, Log* log) {
  // Places are thousandths of the file, or counted from its end.
  const uint64_t size = log->bytes.size();
  const uint64_t number = at;
  at = step >= 128 ? size - std::min(at, size) : std::min(at * size / 1000, size);
  const bool harmless = step % 6 >= 4;
  log->torn = log->torn && harmless;
  switch (step % 6) {
    case 0:
      if (at < size) log->bytes[at] = static_cast<char>(log->bytes[at] ^ (1 << (step / 6 % 8)));
      break;
    case 1: {
      const uint64_t from = at / LogScan::kSectorBytes * LogScan::kSectorBytes;
      for (uint64_t i = from; i < std::min(size, from + LogScan::kSectorBytes); ++i) {
        log->bytes[i] = '\0';
      }
      break;
    }
    case 2: std::fill(log->bytes.begin() + static_cast<int64_t>(at), log->bytes.end(), '\0'); break;
    case 3: log->bytes.resize(at); break;
    case 4: log->bytes.append(1000, '\0'); break;
    default: Tear(number, log);
  }
}

// The number of a record; nothing if it has none.
std::optional<uint64_t> NumberOf(uint8_t how, uint64_t* next) {
  switch (how / 4 % 16) {
    case 1: return {};
    case 2: *next += 2; break;  // One is missing.
    case 3: break;              // It is there twice.
    default: ++*next;
  }
  return *next - 1;
}

// Bytes that are no header, some that could be one, and some that are sound records: what clients
// may choose is enough for some of up to one byte.
std::string PayloadOf(size_t size, size_t number) {
  constexpr char kFills[] = {'\0', 'x', '\xff', '\1'};
  if (number % 5 < std::size(kFills))
    return std::string(size, size < 600 ? kFills[number % 5] : 'x');
  std::string record;
  AppendPiece(1, std::string_view("y").substr(0, number / 5 % 2), &record);
  std::string payload(number % 7, 'x');
  while (payload.size() < size) payload += record + "xx";
  payload.resize(size);
  return payload;
}

void AddRecord(ByteSource* input, uint64_t* next_batch, Log* log) {
  const uint8_t how = input->Byte();
  const std::optional<uint64_t> batch = NumberOf(how, next_batch);
  const size_t size = TakeSize(how, input, log->bytes.size());
  const bool is_batch = size % 8 != 7;
  std::string payload = is_batch ? std::string("\2\1\0\0\0\0\0\0\1\0\0\0", 12) : std::string();
  payload += PayloadOf(size, log->records.size());
  // The last byte of a record is not zero; of those before some may be.
  payload += batch.has_value() ? "\x03\x0a" + ledger::EncodeLogData(*batch) : "\1";
  const uint64_t begin = LogScan::SkipPadding(log->bytes.size());
  AppendRecord(payload, &log->bytes);
  store::AppendLogRecord(payload, &log->sound);
  log->records.push_back({begin, log->bytes.size(), batch, payload.size(), is_batch});
}

Log MakeLog(ByteSource input) {
  Log log;
  log.torn = true;
  log.beside = input.Byte();
  const size_t records = input.Byte() % 32;
  uint64_t next_batch = kFirstBatch;
  for (size_t i = 0; i < records && log.bytes.size() < kBytesMax; ++i) {
    AddRecord(&input, &next_batch, &log);
  }
  REQUIRE((log.bytes == log.sound));
  while (input.size() >= 3 && log.bytes.size() < kBytesMax + 4000) {
    const uint8_t how = input.Byte();
    Damage(how, input.Number(), &log);
  }
  return log;
}

// What is told of batches must be this.
BatchRun RunOf(const Log& log, uint64_t end) {
  BatchRun run;
  for (const Record& record : log.records) {
    if (record.end <= end && record.batch.has_value()) run.Add(*record.batch, record.begin);
  }
  return run;
}

void RequireSame(const BatchRun& found, const BatchRun& wanted) {
  REQUIRE(found.empty == wanted.empty);
  if (found.empty) return;
  REQUIRE(found.first == wanted.first);
  REQUIRE(found.last == wanted.last);
  REQUIRE(found.broken.has_value() == wanted.broken.has_value());
  if (!found.broken.has_value()) return;
  REQUIRE(found.broken->before == wanted.broken->before);
  REQUIRE(found.broken->found == wanted.broken->found);
}

// A directory in memory, with the log, and perhaps others.
class Directory {
 public:
  explicit Directory(const Log& log)
      : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())), files_(env_->GetFileSystem()) {
    REQUIRE(files_->CreateDirIfMissing("/ledger", IOOptions(), nullptr).ok());
    Write(path(), log.bytes);
    std::string another;
    switch (log.beside % 8) {
      case 1: Write("/ledger/000008.log", std::string(700, '\0')); break;
      case 2: Write("/ledger/000008.log", ""); break;
      case 3:
        AppendRecord("\x03\x0a" + ledger::EncodeLogData(kFirstBatch + 1), &another);
        Write("/ledger/000008.log", another);
        newest_ = false;
        break;
      case 4: Write("/ledger/000006.log", "damage"); break;
      case 5: Write("/ledger/MANIFEST-000004", log.bytes); break;
      default: break;
    }
  }

  static std::string path() { return "/ledger/000007.log"; }
  const std::shared_ptr<rocksdb::FileSystem>& files() const { return files_; }
  bool newest() const { return newest_; }

 private:
  void Write(const std::string& path, const std::string& bytes) {
    std::unique_ptr<rocksdb::FSWritableFile> file;
    REQUIRE(files_->NewWritableFile(path, {}, &file, nullptr).ok());
    REQUIRE(file->Append(bytes, IOOptions(), nullptr).ok());
    REQUIRE(file->Close(IOOptions(), nullptr).ok());
  }

  const std::unique_ptr<rocksdb::Env> env_;
  const std::shared_ptr<rocksdb::FileSystem> files_;
  bool newest_ = true;
};

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

// What was found out about the log without a view.
struct Truth {
  uint64_t end = 0;
  uint64_t content_end = 0;
  LogScan::Rest rest{};
  BatchRun batches;
};

// What RocksDB is shown of the log, at rest.
void CheckShown(const Directory& directory, const Log& log, const Truth& truth) {
  const bool damaged = truth.rest == LogScan::Rest::kRecord ||
                       truth.rest == LogScan::Rest::kDamaged ||
                       (truth.rest == LogScan::Rest::kTorn && !directory.newest());
  LogViews views(directory.files(), LogViews::State::kAtRest);
  std::string shown;
  const IOStatus read = ReadView(&views, Directory::path(), &shown);
  REQUIRE(read.ok() != damaged);
  uint64_t size = 0;
  REQUIRE(views.GetFileSize(Directory::path(), IOOptions(), &size, nullptr).ok() == read.ok());
  std::map<uint64_t, store::LogSegment> segments;
  REQUIRE(views.FindSegments("/ledger", &segments).ok());
  REQUIRE(segments.contains(7) == read.ok());
  REQUIRE(segments.contains(8) == (log.beside % 8 >= 1 && log.beside % 8 <= 3));
  if (!read.ok()) {
    REQUIRE(read.IsCorruption());
    return;
  }
  // Of an older log RocksDB is to see that it is cut short.
  const bool whole = directory.newest() || truth.rest != LogScan::Rest::kCutShort;
  const uint64_t end = whole ? truth.end : truth.content_end;
  REQUIRE(size == end);
  REQUIRE((shown == log.bytes.substr(0, end)));
  RequireSame(segments.at(7).batches, truth.batches);
  // Sound alone when no batch is missing: those of the log follow each other, up to the last.
  if (segments.size() > 1 || truth.batches.empty || truth.batches.last == UINT64_MAX) return;
  store::KnownBatches known{.sealed = truth.batches.last,
                            .witnessed = truth.batches.last,
                            .floor = truth.batches.first - 1};
  REQUIRE(store::CheckChain("/ledger", segments, known).ok() == !truth.batches.broken.has_value());
  ++known.witnessed;
  REQUIRE_FALSE(store::CheckChain("/ledger", segments, known).ok());
}

// The same while a server writes it.
void CheckFollowed(const Directory& directory, const Log& log, const Truth& truth) {
  if (!directory.newest()) return;
  LogViews views(directory.files(), LogViews::State::kBeingWritten);
  std::string shown;
  const IOStatus read = ReadView(&views, Directory::path(), &shown);
  REQUIRE(read.ok() == (truth.rest != LogScan::Rest::kRecord));
  if (read.ok()) REQUIRE((shown == log.bytes.substr(0, truth.end)));
}

// A manifest is shown like the newest log; `truth` is that of one.
void CheckManifest(const Directory& directory, const Log& log, const Truth& truth) {
  if (log.beside % 8 != 5) return;
  LogViews views(directory.files(), LogViews::State::kAtRest);
  std::string shown;
  const IOStatus read = ReadView(&views, "/ledger/MANIFEST-000004", &shown);
  const bool damaged =
      truth.rest == LogScan::Rest::kRecord || truth.rest == LogScan::Rest::kDamaged;
  REQUIRE(read.ok() == !damaged);
  if (read.ok()) REQUIRE((shown == log.bytes.substr(0, truth.end)));
}

// What a repair finds: every record that is intact, and no other. Where what is before it is none,
// only its beginning shows that it is a record.
void CheckSalvage(const Log& log) {
  const BytesFile file(&log.bytes);
  LogScan scan(&file, LogScan::Kind::kLog);
  uint64_t at = 0;
  for (const Record& record : log.records) {
    if (!IsIntact(log, record)) continue;
    if (record.begin != LogScan::SkipPadding(at) && !record.is_batch) continue;
    LogScan::Record found;
    bool is_found = false;
    REQUIRE(scan.NextRecord(at, log.bytes.size(), &found, &is_found).ok());
    REQUIRE(is_found);
    REQUIRE(found.begin == record.begin);
    REQUIRE(found.end == record.end);
    REQUIRE((found.batch == record.batch));
    at = found.end;
  }
  LogScan::Record found;
  bool is_found = false;
  REQUIRE(scan.NextRecord(at, log.bytes.size(), &found, &is_found).ok());
  REQUIRE_FALSE(is_found);
}

// Whether an intact record behind those of `before` shows that there is damage between.
bool ShowsDamage(const Record& record, const Truth& before, LogScan::Kind kind) {
  if (kind == LogScan::Kind::kManifest) return record.bytes >= 10;
  if (!record.is_batch || before.batches.empty) return record.is_batch;
  return record.batch.has_value() && *record.batch > before.batches.last &&
         *record.batch != before.batches.last + 1;
}

// The scan finds the intact records before the first that is none, and says of the rest what it is.
void CheckMade(const Log& log, LogScan::Kind kind, const Truth& truth) {
  uint64_t end = 0;
  bool intact = true;
  bool more = false;
  for (const Record& record : log.records) {
    intact = intact && IsIntact(log, record);
    if (intact) end = record.end;
    if (intact || !IsIntact(log, record)) continue;
    more = more || ShowsDamage(record, truth, kind);
  }
  REQUIRE(truth.end == end);
  RequireSame(truth.batches, RunOf(log, end));
  REQUIRE((truth.rest == LogScan::Rest::kRecord) == more);
  if (log.torn) REQUIRE(truth.rest != LogScan::Rest::kDamaged);
}

Truth TruthOf(const Log& log, LogScan::Kind kind) {
  const BytesFile file(&log.bytes);
  LogScan scan(&file, kind);
  REQUIRE(scan.Advance().ok());
  Truth truth{.end = scan.end(), .batches = scan.batches()};
  REQUIRE(truth.end <= log.bytes.size());
  REQUIRE(scan.LookBehind(log.bytes.size(), &truth.rest, &truth.content_end).ok());
  REQUIRE(scan.Advance().ok());
  REQUIRE(scan.end() == truth.end);
  REQUIRE(truth.content_end >= truth.end);
  REQUIRE(truth.content_end <= log.bytes.size());
  const bool zeros = log.bytes.find_first_not_of('\0', truth.end) == std::string::npos;
  REQUIRE(zeros == (truth.rest == LogScan::Rest::kNothing));
  return truth;
}

void Check(const Log& log, bool made) {
  const Truth truth = TruthOf(log, LogScan::Kind::kLog);
  const Truth manifest = TruthOf(log, LogScan::Kind::kManifest);
  if (made) {
    CheckMade(log, LogScan::Kind::kLog, truth);
    CheckMade(log, LogScan::Kind::kManifest, manifest);
    CheckSalvage(log);
  }
  const Directory directory(log);
  CheckShown(directory, log, truth);
  CheckFollowed(directory, log, truth);
  CheckManifest(directory, log, manifest);
}

}  // namespace

void FuzzLog(std::string_view input) {
  if (input.empty()) return;
  const bool any = input.front() % 2 == 0;
  input.remove_prefix(1);
  if (!any) return Check(MakeLog(ByteSource(input)), true);
  Log log;
  log.bytes = input.substr(0, kBytesMax);
  Check(log, false);
}

}  // namespace nowcalls::fuzz
