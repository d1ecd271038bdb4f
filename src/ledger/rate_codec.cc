#include "ledger/rate_codec.h"

#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"

namespace nowcalls::ledger {
namespace {

constexpr uint8_t kRateVersion = 1;

// Says what is wrong with an entity, or nullptr. Encoder and decoder share it.
const char* ProblemOf(const RateKey& key) {
  if (key.flow.value <= 0) return "flow is not positive";
  if (key.begin_ms < 0 || key.begin_ms > kInstantMsMax) return "begin_ms is out of range";
  return nullptr;
}

const char* ProblemOf(const RateBucket& bucket) {
  if (bucket.passed < 0) return "passed is out of range";
  if (bucket.lent < 0) return "lent is out of range";
  return nullptr;
}

Status Corrupt(std::string_view what, const std::string& problem) {
  return Status::Corruption(std::string(what) + ": " + problem);
}

Status CheckSize(std::string_view what, std::string_view bytes, size_t expected) {
  if (bytes.size() == expected) return {};
  return Corrupt(what, "has " + std::to_string(bytes.size()) + " bytes instead of " +
                           std::to_string(expected));
}

}  // namespace

void EncodeRateKey(const RateKey& key, char out[kRateKeyBytes]) {
  NOWCALLS_CHECK(ProblemOf(key) == nullptr);
  // Big-endian: keys sort by flow, then from old to new.
  out = StoreBigEndian(out, key.flow.value);
  StoreBigEndian(out, key.begin_ms);
}

Result<RateKey> DecodeRateKey(std::string_view key) {
  NOWCALLS_RETURN_IF_ERROR(CheckSize("rate key", key, kRateKeyBytes));
  ByteReader reader(key);
  RateKey rate;
  rate.flow = FlowId(reader.Read<int64_t>());
  rate.begin_ms = reader.Read<int64_t>();
  if (const char* problem = ProblemOf(rate)) return Corrupt("rate key", problem);
  return rate;
}

void EncodeRateValue(const RateBucket& bucket, char out[kRateValueBytes]) {
  NOWCALLS_CHECK(ProblemOf(bucket) == nullptr);
  out = StoreBigEndian(out, kRateVersion);
  out = StoreBigEndian(out, bucket.passed);
  StoreBigEndian(out, bucket.lent);
}

Result<RateBucket> DecodeRate(std::string_view key, std::string_view value) {
  const Result<RateKey> rate_key = DecodeRateKey(key);
  if (!rate_key.ok()) return rate_key.status();
  NOWCALLS_RETURN_IF_ERROR(CheckSize("rate value", value, kRateValueBytes));
  ByteReader reader(value);
  const auto version = reader.Read<uint8_t>();
  if (version != kRateVersion) {
    return Corrupt("rate value", "version is " + std::to_string(version) + " instead of " +
                                     std::to_string(kRateVersion));
  }
  RateBucket bucket;
  bucket.key = *rate_key;
  bucket.passed = reader.Read<int64_t>();
  bucket.lent = reader.Read<int64_t>();
  if (const char* problem = ProblemOf(bucket)) return Corrupt("rate value", problem);
  return bucket;
}

}  // namespace nowcalls::ledger
