#include "store/write_batch_builder.h"

#include <utility>

namespace nowcalls::store {
namespace {

constexpr size_t kCountOffset = 8;
constexpr size_t kHeaderBytes = 12;

}  // namespace

WriteBatchBuilder::WriteBatchBuilder(const FamilyNumbers& families, size_t bytes_expected)
    : families_(families) {
  rep_.reserve(kHeaderBytes + bytes_expected);
  rep_.resize(kHeaderBytes);
}

void WriteBatchBuilder::Put(ledger::Family family, std::string_view key, std::string_view value) {
  Begin({.of_default = 0x1, .of_other = 0x5}, family);
  Append(key);
  Append(value);
}

void WriteBatchBuilder::SingleDelete(ledger::Family family, std::string_view key) {
  Begin({.of_default = 0x7, .of_other = 0x8}, family);
  Append(key);
}

void WriteBatchBuilder::Delete(ledger::Family family, std::string_view key) {
  Begin({.of_default = 0x0, .of_other = 0x4}, family);
  Append(key);
}

void WriteBatchBuilder::LogData(std::string_view blob) {
  rep_ += '\x03';
  Append(blob);
}

rocksdb::WriteBatch WriteBatchBuilder::Finish() {
  for (size_t i = 0; i < sizeof(count_); ++i) {
    rep_[kCountOffset + i] = static_cast<char>(count_ >> (8 * i));
  }
  return rocksdb::WriteBatch(std::move(rep_));
}

void WriteBatchBuilder::Begin(Tags tags, ledger::Family family) {
  ++count_;
  const uint32_t number = families_[static_cast<size_t>(family)];
  if (number == 0) {
    rep_ += tags.of_default;
  } else {
    rep_ += tags.of_other;
    AppendVarint(number);
  }
}

void WriteBatchBuilder::Append(std::string_view sized) {
  AppendVarint(static_cast<uint32_t>(sized.size()));
  rep_ += sized;
}

void WriteBatchBuilder::AppendVarint(uint32_t value) {
  for (; value >= 0x80; value >>= 7) rep_ += static_cast<char>(value | 0x80);
  rep_ += static_cast<char>(value);
}

}  // namespace nowcalls::store
