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

// Format of a log (RocksDB's log_format.h): blocks of 32 KiB. A record, one batch, has one piece or
// several; no piece crosses a block. A piece: masked CRC-32C (4 bytes), length (2), type (1),
// little-endian, then the bytes. The checksum covers type and bytes. Zeros fill a block's rest that
// is shorter than a header.
//
// A file may be longer than its log, by zeros (spare_logs.h). So a power cut leaves the write under
// way torn: any sector may still be zeros while later ones are written.
constexpr uint64_t kHeaderBytes = 7;
constexpr uint64_t kTypeOffset = 6;
// Tries on a growing log before a find behind its end is believed.
constexpr int kLooksMax = 100;

constexpr int kFull = 1;
constexpr int kFirst = 2;
constexpr int kLast = 4;

uint32_t Byte(const char* at) { return static_cast<uint8_t>(*at); }

uint64_t LengthIn(const char* header) { return Byte(header + 4) | Byte(header + 5) << 8; }

uint32_t ChecksumIn(const char* header) {
  return Byte(header) | Byte(header + 1) << 8 | Byte(header + 2) << 16 | Byte(header + 3) << 24;
}

// Log data in a record: a tag, a length, the bytes. It is the last entry of a record.
constexpr std::string_view kLogDataHead = "\x03\x0a";
constexpr size_t kTailBytes = kLogDataHead.size() + ledger::kLogDataBytes;

// Only some first changes of a manifest are shorter.
constexpr uint64_t kChangeBytesMin = 10;

// Head of a batch (RocksDB's write_batch.cc), little-endian: the sequence number of the first
// change, below 2^56, and the number of changes.
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

// The first byte is zero, and each byte equals its predecessor: sixteen or more at a time.
bool IsZeros(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == '\0' && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Offset behind the last non-zero byte; 0 if there is none.
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

// RocksDB rotates checksums: one over bytes that hold checksums is weak.
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

// Reads the block of `at` into block_, once until Forget.
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

// `end`: of the complete record at `at`; 0: none, failed_at_ is its first unsound piece.
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
    // A first piece inside a record, or a later one without a first, ends the search here.
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
    // A record without a number (of no batch) moves the end only.
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
    // No record at `from`: one may begin at any byte behind it.
    status = FindRecord(record->begin + 1, to, found, &record->begin);
    if (status.ok() && *found) status = ReadRecord(record->begin, &record->end);
  }
  bytes_ = nullptr;
  if (*found) record->batch = NumberRead();
  return status;
}

// A record behind the end proves damage, but a sound checksum is not yet a record. Clients choose 8
// bytes in a row (a request id), room for the header of an empty piece. So it must begin like a
// batch, and its number must not follow the last one: that would be the batch that was cut off.
bool LogScan::IsRecord() const {
  if (kind_ == Kind::kManifest) return bytes_read_ >= kChangeBytesMin;
  if (!BeginsLikeBatch(head_, bytes_read_)) return false;
  if (batches_.empty) return true;
  const std::optional<uint64_t> number = NumberRead();
  return number.has_value() && *number > batches_.last && *number - batches_.last > 1;
}

// Finds the first bytes that can only be a record; `place`, if not null: their offset.
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
  // Too few bytes for a header: nothing else can be behind.
  *cut_short = failed_at_ + kHeaderBytes > content_end;
  if (*cut_short) return IOStatus::OK();
  Piece piece;
  IOStatus status = ReadPiece(failed_at_, &piece);
  const uint64_t block_end = failed_at_ / kBlockBytes * kBlockBytes + kBlockBytes;
  // The header promises more than the content has, within its block: one write was cut.
  *cut_short = IsType(piece.type) && piece.end > content_end && piece.end <= block_end;
  return status;
}

IOStatus LogScan::FindContentEnd(uint64_t size, uint64_t* content_end) const {
  return FindLastNonZero(*file_, end_, size, content_end);
}

IOStatus LogScan::LookBehind(uint64_t size, Rest* rest, uint64_t* content_end) {
  *rest = Rest::kNothing;
  // Step 1: nothing but zeros, or padding: a clean end.
  IOStatus status = FindContentEnd(size, content_end);
  const uint64_t begin = SkipPadding(end_);
  if (!status.ok() || *content_end <= begin) return status;
  bool cut_short = false;
  // Step 2: a record behind the end is damage, whatever lies between.
  status = IsCutShort(*content_end, &cut_short);
  if (!status.ok()) return status;
  bool found = false;
  status = FindRecord(begin + 1, *content_end, &found);
  if (!status.ok()) return status;
  *rest = found ? Rest::kRecord : Rest::kCutShort;
  if (found || cut_short) return status;
  // Step 3: one write with a missing sector is torn; else bytes are wrong.
  status = FindZeroSector(begin, *content_end, &found);
  *rest = found ? Rest::kTorn : Rest::kDamaged;
  return status;
}

IOStatus FollowEnd(LogScan* scan, const std::function<IOStatus(uint64_t* bytes)>& size,
                   LogScan::Rest* rest, uint64_t* content_end) {
  // The rest is measured before the end is sought. A writer that appends record after record then
  // leaves only kNothing and kCutShort, as a rule.
  for (int look = 0; look < kLooksMax; ++look) {
    const uint64_t before = scan->end();
    uint64_t bytes = 0;
    uint64_t was_there = 0;
    IOStatus sized = size(&bytes);
    const bool gone = IsAbsent(sized);
    if (!sized.ok() && !gone) return sized;
    IOStatus status = gone ? IOStatus::OK() : scan->FindContentEnd(bytes, &was_there);
    if (status.ok()) status = scan->Advance();
    // The record behind may not have existed when the bytes before it were read: look again until
    // the end stands still.
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
