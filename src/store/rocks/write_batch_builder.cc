#include "store/rocks/write_batch_builder.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace nowcalls::store {
namespace {

// Form of RocksDB's log, which does not change; rocksdb::WriteBatch builds it through several
// layers.
//
//   sequence (8, set by RocksDB) | count (4, little-endian) | count times:
//     tag | family, unless the tag says it is 0 | key | value, if it is a put
// Families are varints; keys and values follow their lengths as varints. Tagged data for readers of
// the log may stand in between, and does not count.
constexpr size_t kCountOffset = 8;
constexpr size_t kBatchHeaderBytes = 12;
constexpr size_t kVarintBytesMax = 5;

char* StoreVarint(char* out, uint32_t value) {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<char>(value | 0x80);
  *out++ = static_cast<char>(value);
  return out;
}

template <size_t kHalf>
char* StoreHalves(char* out, std::string_view bytes) {
  const size_t behind = bytes.size() - kHalf;
  std::memcpy(out, bytes.data(), kHalf);
  std::memcpy(out + behind, bytes.data() + behind, kHalf);
  return out + bytes.size();
}

// A token has 16 and 45 bytes: two overlapping halves copy them without a call.
char* StoreBytes(char* out, std::string_view bytes) {
  if (bytes.size() >= 16 && bytes.size() <= 32) return StoreHalves<16>(out, bytes);
  if (bytes.size() >= 32 && bytes.size() <= 64) return StoreHalves<32>(out, bytes);
  return out + bytes.copy(out, bytes.size());  // Which may be none, from nowhere.
}

char* StoreSized(char* out, std::string_view bytes) {
  return StoreBytes(StoreVarint(out, static_cast<uint32_t>(bytes.size())), bytes);
}

}  // namespace

WriteBatchBuilder::WriteBatchBuilder(const FamilyNumbers& families, size_t bytes_expected)
    : families_(families), size_(kBatchHeaderBytes) {
  rep_.resize(kBatchHeaderBytes + bytes_expected);
}

void WriteBatchBuilder::Put(ledger::Family family, std::string_view key, std::string_view value) {
  char* out = Begin({.of_default = 0x1, .of_other = 0x5}, family, key.size() + value.size());
  End(StoreSized(StoreSized(out, key), value));
}

void WriteBatchBuilder::SingleDelete(ledger::Family family, std::string_view key) {
  End(StoreSized(Begin({.of_default = 0x7, .of_other = 0x8}, family, key.size()), key));
}

void WriteBatchBuilder::Delete(ledger::Family family, std::string_view key) {
  End(StoreSized(Begin({.of_default = 0x0, .of_other = 0x4}, family, key.size()), key));
}

void WriteBatchBuilder::LogData(std::string_view blob) {
  char* out = Room(blob.size());
  *out++ = '\x03';
  End(StoreSized(out, blob));
}

rocksdb::WriteBatch WriteBatchBuilder::Finish() {
  for (size_t i = 0; i < sizeof(count_); ++i) {
    rep_[kCountOffset + i] = static_cast<char>(count_ >> (8 * i));
  }
  rep_.resize(size_);
  return rocksdb::WriteBatch(std::move(rep_));
}

// Returns where to write a change, as Room.
char* WriteBatchBuilder::Begin(Tags tags, ledger::Family family, size_t bytes) {
  ++count_;
  char* out = Room(bytes);
  const uint32_t number = families_[static_cast<size_t>(family)];
  NOWCALLS_CHECK(number != kNoFamilyNumber);
  if (number == 0) {
    *out++ = tags.of_default;
    return out;
  }
  *out++ = tags.of_other;
  return StoreVarint(out, number);
}

// Returns where to write, with room for `bytes` of keys and values, and for their lengths. Grows by
// doubling; Finish cuts the rest off.
char* WriteBatchBuilder::Room(size_t bytes) {
  const size_t most = size_ + 1 + 3 * kVarintBytesMax + bytes;
  if (most > rep_.size()) rep_.resize(2 * most);
  return rep_.data() + size_;
}

void WriteBatchBuilder::End(const char* end) { size_ = static_cast<size_t>(end - rep_.data()); }

}  // namespace nowcalls::store
