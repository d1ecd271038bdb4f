// SealedBatch: a commit batch as anybody can keep or send it (FORMAT.md).
//
// Thread: any. A view of a sealed CommitBatch or of a log's bytes.
#ifndef NOWCALLS_LEDGER_SEALED_BATCH_H_
#define NOWCALLS_LEDGER_SEALED_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nowcalls/status.h"

namespace nowcalls::ledger {

class CommitBatch;

// Version, number, term, size of the records, CRC-32C.
inline constexpr size_t kSealedBatchHeaderBytes = 1 + 8 + 8 + 4 + 4;

class SealedBatch {
 public:
  // REQUIRES: `batch` is sealed, and outlives this unchanged.
  SealedBatch(const CommitBatch& batch);  // NOLINT(google-explicit-constructor)

  // kCorruption: `bytes` are not one batch, whole and undamaged. The records are not looked at.
  static Result<SealedBatch> Parse(std::string_view bytes);

  uint64_t number() const { return number_; }  // Consecutive from 1.
  uint64_t term() const { return term_; }      // Of its writer; 0 while a ledger has but one.
  std::string_view records() const { return bytes_.substr(kSealedBatchHeaderBytes); }
  std::string_view bytes() const { return bytes_; }

 private:
  SealedBatch(uint64_t number, uint64_t term, std::string_view bytes)
      : number_(number), term_(term), bytes_(bytes) {}

  uint64_t number_;
  uint64_t term_;
  std::string_view bytes_;
};

// Writes the header into `bytes`, before the records of batch `number`. `size`: of the whole, at
// most 2^32 - 1.
void SealBytes(uint64_t number, uint64_t term, char* bytes, size_t size);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_SEALED_BATCH_H_
