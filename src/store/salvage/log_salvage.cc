#include "store/salvage/log_salvage.h"

#include <algorithm>
#include <memory>

#include "store/disk/store_error.h"
#include "store/log/log_scan.h"

namespace nowcalls::store {
namespace {

constexpr size_t kRecordHeaderBytes = 7;
constexpr int kFullRecord = 1;
constexpr int kFirstRecord = 2;
constexpr int kMiddleRecord = 3;
constexpr int kLastRecord = 4;

int TypeOf(bool begins, bool ends) {
  if (begins) return ends ? kFullRecord : kFirstRecord;
  return ends ? kLastRecord : kMiddleRecord;
}

}  // namespace

// Trailing zeros are those of a spare log: no loss.
StoreError SalvageLog(const std::string& path,
                      const std::function<void(const SalvagedRecord& record)>& show,
                      const std::function<void(const SkippedBytes& skipped)>& skip) {
  const std::shared_ptr<rocksdb::FileSystem> files = rocksdb::FileSystem::Default();
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  uint64_t size = 0;
  uint64_t content_end = 0;
  rocksdb::IOStatus status =
      files->NewRandomAccessFile(path, rocksdb::FileOptions(), &file, nullptr);
  if (status.ok()) status = files->GetFileSize(path, rocksdb::IOOptions(), &size, nullptr);
  if (status.ok()) status = FindLastNonZero(*file, 0, size, &content_end);
  if (!status.ok()) return ErrorFromRocks(status, "read a log", path);
  LogScan scan(file.get(), LogScan::Kind::kLog);
  for (uint64_t at = 0; at < content_end;) {
    LogScan::Record record;
    bool found = false;
    status = scan.NextRecord(at, content_end, &record, &found);
    if (!status.ok()) return ErrorFromRocks(status, "read a log", path);
    const uint64_t next = found ? record.begin : content_end;
    // Padding between records is no loss either.
    if (next > at && (!found || next > LogScan::SkipPadding(at))) skip({at, next});
    if (!found) return {};
    show({record.begin, record.end, record.bytes, record.batch});
    at = record.end;
  }
  return {};
}

// Splits the record into pieces of blocks, as log_scan.cc describes.
void AppendLogRecord(std::string_view bytes, std::string* log) {
  for (bool begins = true, ends = false; !ends; begins = false) {
    log->resize(LogScan::SkipPadding(log->size()));
    const size_t room =
        LogScan::kBlockBytes - log->size() % LogScan::kBlockBytes - kRecordHeaderBytes;
    const std::string_view piece = bytes.substr(0, room);
    bytes.remove_prefix(piece.size());
    ends = bytes.empty();
    std::string covered(1, static_cast<char>(TypeOf(begins, ends)));
    covered += piece;
    const uint32_t crc = LogScan::MaskedChecksum(covered);
    for (int shift = 0; shift < 32; shift += 8) *log += static_cast<char>(crc >> shift);
    *log += static_cast<char>(piece.size());
    *log += static_cast<char>(piece.size() >> 8);
    *log += covered;
  }
}

}  // namespace nowcalls::store
