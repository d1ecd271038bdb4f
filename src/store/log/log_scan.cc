#include "store/log/log_scan.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "ledger/codec.h"
#include "store/disk/store_error.h"

namespace nowcalls::store {
namespace {

using rocksdb::IOStatus;

constexpr uint64_t kHeaderBytes = 7;
constexpr uint64_t kTypeOffset = 6;
// Looks at a log that grows meanwhile, before what is found behind its end is believed.
constexpr int kLooksMax = 100;

constexpr int kFull = 1;
constexpr int kFirst = 2;
constexpr int kLast = 4;

uint32_t Byte(const char* at) { return static_cast<uint8_t>(*at); }

uint64_t LengthIn(const char* header) { return Byte(header + 4) | Byte(header + 5) << 8; }

uint32_t ChecksumIn(const char* header) {
  return Byte(header) | Byte(header + 1) << 8 | Byte(header + 2) << 16 | Byte(header + 3) << 24;
}

// Log data as RocksDB logs it: a tag, a length, the bytes; the last of a record.
constexpr std::string_view kLogDataHead = "\x03\x0a";
constexpr size_t kTailBytes = kLogDataHead.size() + ledger::kLogDataBytes;

// Of the changes of a manifest only some of the first are shorter.
constexpr uint64_t kChangeBytesMin = 10;

// What a batch begins with (RocksDB's write_batch.cc), little-endian: the sequence number of its
// first change, below 2^56, and how many there are.
constexpr size_t kBatchHeadBytes = 12;

bool BeginsLikeBatch(std::string_view head, uint64_t bytes) {
  if (head.size() < kBatchHeadBytes || head[7] != '\0') return false;
  uint64_t changes = 0;
  for (size_t at = kBatchHeadBytes; at > 8; --at) changes = changes << 8 | Byte(&head[at - 1]);
  return changes > 0 && changes <= bytes;
}

bool IsType(int type) { return type >= kFull && type <= kLast; }
bool Begins(int type) { return type == kFull || type == kFirst; }
bool Ends(int type) { return type == kFull || type == kLast; }

// Each byte is like the one before it, and the first is zero: sixteen or more at a time.
bool IsZeros(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Behind the last byte that is not zero; 0 if all are.
size_t EndOfContent(std::string_view bytes) {
  constexpr size_t kPartBytes = 256;
  while (bytes.size() > kPartBytes && IsZeros(bytes.substr(bytes.size() - kPartBytes))) {
    bytes.remove_suffix(kPartBytes);
  }
  return bytes.find_last_not_of('\0') + 1;  // npos is -1.
}

}  // namespace

IOStatus HasNonZero(const rocksdb::FSRandomAccessFile& file, uint64_t size, bool* found) {
  *found = false;
  std::vector<char> buffer(LogScan::kBlockBytes);
  for (uint64_t at = 0; at < size && !*found; at += buffer.size()) {
    const size_t bytes = std::min<uint64_t>(buffer.size(), size - at);
    rocksdb::Slice read;
    IOStatus status = file.Read(at, bytes, rocksdb::IOOptions(), &read, buffer.data(), nullptr);
    if (!status.ok()) return status;
    *found = !IsZeros({read.data(), read.size()});
  }
  return IOStatus::OK();
}

uint64_t LogScan::SkipPadding(uint64_t at) {
  const uint64_t left = kBlockBytes - at % kBlockBytes;
  return left < kHeaderBytes ? at + left : at;
}

// As it is stored: a checksum over bytes that hold checksums is weak, so RocksDB turns it around.
uint32_t LogScan::MaskedChecksum(std::string_view covered) {
  const uint32_t crc = Crc32c(covered);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

void BatchRun::Add(uint64_t number, uint64_t at) {
  if (empty) first = number;
  if (!empty && number != last + 1 && !broken.has_value()) broken = Break{at, last, number};
  empty = false;
  last = number;
}

IOStatus FindLastNonZero(const rocksdb::FSRandomAccessFile& file, uint64_t from, uint64_t size,
                         uint64_t* end) {
  std::vector<char> buffer(LogScan::kBlockBytes);
  uint64_t to = size;
  while (to > from) {
    const uint64_t begin = std::max(from, (to - 1) / buffer.size() * buffer.size());
    rocksdb::Slice read;
    IOStatus status =
        file.Read(begin, to - begin, rocksdb::IOOptions(), &read, buffer.data(), nullptr);
    if (!status.ok()) return status;
    if (const size_t bytes = EndOfContent({read.data(), read.size()}); bytes > 0) {
      *end = begin + bytes;
      return status;
    }
    to = begin;
  }
  *end = from;
  return IOStatus::OK();
}

LogScan::LogScan(const rocksdb::FSRandomAccessFile* file, Kind kind)
    : file_(file), kind_(kind), block_(kBlockBytes) {}

IOStatus LogScan::ReadBlock(uint64_t at) {
  const uint64_t begin = at / kBlockBytes * kBlockBytes;
  if (begin == block_at_) return IOStatus::OK();
  Forget();
  rocksdb::Slice read;
  IOStatus status =
      file_->Read(begin, kBlockBytes, rocksdb::IOOptions(), &read, block_.data(), nullptr);
  if (!status.ok()) return status;
  if (read.data() != block_.data()) std::copy_n(read.data(), read.size(), block_.data());
  block_at_ = begin;
  block_bytes_ = read.size();
  return status;
}

IOStatus LogScan::ReadPiece(uint64_t at, Piece* piece) {
  *piece = {};
  IOStatus status = ReadBlock(at);
  const uint64_t offset = at - block_at_;
  if (!status.ok() || offset + kHeaderBytes > block_bytes_) return status;
  const char* header = block_.data() + offset;
  const uint64_t length = LengthIn(header);
  piece->type = static_cast<int>(Byte(header + kTypeOffset));
  piece->end = at + kHeaderBytes + length;
  if (!IsType(piece->type) || piece->end > block_at_ + block_bytes_) return status;
  const std::string_view covered(header + kTypeOffset, 1 + length);
  piece->sound = MaskedChecksum(covered) == ChecksumIn(header);
  piece->payload = covered.substr(1);
  return status;
}

IOStatus LogScan::ReadRecord(uint64_t at, uint64_t* end) {
  *end = 0;
  head_.clear();
  tail_.clear();
  bytes_read_ = 0;
  if (bytes_ != nullptr) bytes_->clear();
  for (bool inside = false;; inside = true) {
    at = SkipPadding(at);
    Piece piece;
    IOStatus status = ReadPiece(at, &piece);
    if (!status.ok()) return status;
    if (!piece.sound || Begins(piece.type) == inside) {
      failed_at_ = at;
      return status;
    }
    tail_.append(
        piece.payload.substr(piece.payload.size() - std::min(piece.payload.size(), kTailBytes)));
    if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
    head_.append(piece.payload.substr(0, kBatchHeadBytes - head_.size()));
    bytes_read_ += piece.payload.size();
    if (bytes_ != nullptr) bytes_->append(piece.payload);
    at = piece.end;
    if (Ends(piece.type)) {
      *end = at;
      return status;
    }
  }
}

IOStatus LogScan::Advance() {
  Forget();
  for (;;) {
    uint64_t end = 0;
    IOStatus status = ReadRecord(end_, &end);
    if (!status.ok() || end == 0) return status;
    if (const auto number = NumberRead(); number.has_value()) batches_.Add(*number, end_);
    last_begin_ = std::exchange(end_, end);
  }
}

std::optional<uint64_t> LogScan::NumberRead() const {
  const std::string_view tail = tail_;
  if (!tail.starts_with(kLogDataHead)) return {};
  return ledger::DecodeLogData(tail.substr(kLogDataHead.size()));
}

IOStatus LogScan::NextRecord(uint64_t from, uint64_t to, Record* record, bool* found) {
  Forget();
  *record = {};
  bytes_ = &record->bytes;
  record->begin = SkipPadding(from);
  IOStatus status = record->begin < to ? ReadRecord(record->begin, &record->end) : IOStatus::OK();
  *found = record->end != 0;
  if (status.ok() && !*found) {
    status = FindRecord(record->begin + 1, to, found, &record->begin);
    if (status.ok() && *found) status = ReadRecord(record->begin, &record->end);
  }
  bytes_ = nullptr;
  if (*found) record->batch = NumberRead();
  return status;
}

bool LogScan::IsRecord() const {
  if (kind_ == Kind::kManifest) return bytes_read_ >= kChangeBytesMin;
  if (!BeginsLikeBatch(head_, bytes_read_)) return false;
  if (batches_.empty) return true;
  const std::optional<uint64_t> number = NumberRead();
  return number.has_value() && *number > batches_.last && *number - batches_.last > 1;
}

IOStatus LogScan::FindRecord(uint64_t from, uint64_t to, bool* found, uint64_t* place) {
  *found = false;
  for (uint64_t at = from; at + kHeaderBytes <= to; ++at) {
    IOStatus status = ReadBlock(at);
    if (!status.ok()) return status;
    const uint64_t offset = at - block_at_;
    if (offset + kHeaderBytes > block_bytes_) continue;
    if (!Begins(static_cast<int>(Byte(block_.data() + offset + kTypeOffset)))) continue;
    uint64_t end = 0;
    status = ReadRecord(at, &end);
    *found = end != 0 && IsRecord();
    if (*found && place != nullptr) *place = at;
    if (!status.ok() || *found) return status;
  }
  return IOStatus::OK();
}

IOStatus LogScan::FindZeroSector(uint64_t from, uint64_t to, bool* found) {
  *found = false;
  for (uint64_t at = from; at < to && !*found;) {
    IOStatus status = ReadBlock(at);
    if (!status.ok()) return status;
    const uint64_t next = std::min(at / kSectorBytes * kSectorBytes + kSectorBytes, to);
    *found = IsZeros({block_.data() + (at - block_at_), next - at});
    at = next;
  }
  return IOStatus::OK();
}

IOStatus LogScan::IsCutShort(uint64_t content_end, bool* cut_short) {
  *cut_short = failed_at_ + kHeaderBytes > content_end;
  if (*cut_short) return IOStatus::OK();
  Piece piece;
  IOStatus status = ReadPiece(failed_at_, &piece);
  const uint64_t block_end = failed_at_ / kBlockBytes * kBlockBytes + kBlockBytes;
  *cut_short = IsType(piece.type) && piece.end > content_end && piece.end <= block_end;
  return status;
}

IOStatus LogScan::FindContentEnd(uint64_t size, uint64_t* content_end) const {
  return FindLastNonZero(*file_, end_, size, content_end);
}

IOStatus LogScan::LookBehind(uint64_t size, Rest* rest, uint64_t* content_end) {
  *rest = Rest::kNothing;
  IOStatus status = FindContentEnd(size, content_end);
  const uint64_t begin = SkipPadding(end_);
  if (!status.ok() || *content_end <= begin) return status;
  bool cut_short = false;
  status = IsCutShort(*content_end, &cut_short);
  if (!status.ok()) return status;
  bool found = false;
  status = FindRecord(begin + 1, *content_end, &found);
  if (!status.ok()) return status;
  *rest = found ? Rest::kRecord : Rest::kCutShort;
  if (found || cut_short) return status;
  status = FindZeroSector(begin, *content_end, &found);
  *rest = found ? Rest::kTorn : Rest::kDamaged;
  return status;
}

IOStatus FollowEnd(LogScan* scan, const std::function<IOStatus(uint64_t* bytes)>& size,
                   LogScan::Rest* rest, uint64_t* content_end) {
  for (int look = 0; look < kLooksMax; ++look) {
    const uint64_t before = scan->end();
    uint64_t bytes = 0;
    uint64_t was_there = 0;
    IOStatus sized = size(&bytes);
    const bool gone = IsAbsent(sized);
    if (!sized.ok() && !gone) return sized;
    IOStatus status = gone ? IOStatus::OK() : scan->FindContentEnd(bytes, &was_there);
    if (status.ok()) status = scan->Advance();
    // A record behind what is none was perhaps not there yet when that was looked at.
    if (!status.ok() || (look > 0 && scan->end() == before)) return status;
    if (gone) break;
    status = scan->LookBehind(was_there, rest, content_end);
    if (!status.ok() || *rest != LogScan::Rest::kRecord) return status;
  }
  *rest = LogScan::Rest::kNothing;
  *content_end = scan->end();
  return IOStatus::OK();
}

}  // namespace nowcalls::store
