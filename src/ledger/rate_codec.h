// A bucket of a flow's window of calls a second, as bytes.
//
// Thread: any. Errors as in codec.h; layout in FORMAT.md.
#ifndef NOWCALLS_LEDGER_RATE_CODEC_H_
#define NOWCALLS_LEDGER_RATE_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ledger/entities.h"
#include "nowcalls/status.h"

namespace nowcalls::ledger {

inline constexpr size_t kRateKeyBytes = 16;
inline constexpr size_t kRateValueBytes = 17;

// A flow's buckets lie together, oldest first.
void EncodeRateKey(const RateKey& key, char out[kRateKeyBytes]);
Result<RateKey> DecodeRateKey(std::string_view key);

void EncodeRateValue(const RateBucket& bucket, char out[kRateValueBytes]);
Result<RateBucket> DecodeRate(std::string_view key, std::string_view value);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_RATE_CODEC_H_
