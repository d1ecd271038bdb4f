#include "ledger/sealed_batch.h"

#include <limits>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "ledger/commit_batch.h"

namespace nowcalls::ledger {
namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kSummedHeaderBytes = kSealedBatchHeaderBytes - sizeof(uint32_t);

// The sum covers the header before it and the records behind it, so that neither can be exchanged.
uint32_t SumOf(std::string_view bytes) {
  const uint32_t header = Crc32c(bytes.substr(0, kSummedHeaderBytes));
  return ExtendCrc32c(header, bytes.substr(kSealedBatchHeaderBytes));
}

Status Damaged(const char* why) {
  return Status::Corruption(std::string("a sealed batch is damaged: ") + why);
}

}  // namespace

void SealBytes(uint64_t number, uint64_t term, char* bytes, size_t size) {
  NOWCALLS_CHECK(size >= kSealedBatchHeaderBytes && size <= std::numeric_limits<uint32_t>::max());
  char* out = StoreBigEndian(bytes, kVersion);
  out = StoreBigEndian(out, number);
  out = StoreBigEndian(out, term);
  out = StoreBigEndian(out, static_cast<uint32_t>(size - kSealedBatchHeaderBytes));
  StoreBigEndian(out, SumOf({bytes, size}));
}

SealedBatch::SealedBatch(const CommitBatch& batch)
    : number_(batch.number()), term_(batch.term()), bytes_(batch.sealed_bytes()) {}

Result<SealedBatch> SealedBatch::Parse(std::string_view bytes) {
  ByteReader reader(bytes);
  const auto version = reader.Read<uint8_t>();
  const auto number = reader.Read<uint64_t>();
  const auto term = reader.Read<uint64_t>();
  const auto size = reader.Read<uint32_t>();
  const auto sum = reader.Read<uint32_t>();
  if (!reader.ok()) return Damaged("it is shorter than its header");
  if (version != kVersion) return Damaged("its version is unknown");
  if (size != bytes.size() - kSealedBatchHeaderBytes) return Damaged("its size is another");
  if (sum != SumOf(bytes)) return Damaged("its sum is another");
  if (number == 0) return Damaged("its number is 0");
  return SealedBatch(number, term, bytes);
}

}  // namespace nowcalls::ledger
