// A bucket of calls a second as bytes, against the golden ones and against what is nearly right.
#include "ledger/rate_codec.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "base/hex.h"
#include "support/golden.h"
#include "unit/ledger/samples.h"

namespace nowcalls::ledger {
namespace {

const std::map<std::string, std::string>& GoldenRates() {
  static const std::map<std::string, std::string> vectors =
      testing::LoadGolden(testing::GoldenPath("ledger_values.hex"));
  return vectors;
}

std::string WhyNoRate(const std::string& key, const std::string& value) {
  return DecodeRate(key, value).status().message();
}

TEST_CASE("a bucket has its golden bytes, and they decode to it again") {
  const std::string& key = GoldenRates().at("rate_key");
  const std::string& value = GoldenRates().at("rate_value");
  char key_bytes[kRateKeyBytes];
  char value_bytes[kRateValueBytes];
  EncodeRateKey(SampleRateBucket().key, key_bytes);
  EncodeRateValue(SampleRateBucket(), value_bytes);
  CHECK(ToHex({key_bytes, sizeof(key_bytes)}) == ToHex(key));
  CHECK(ToHex({value_bytes, sizeof(value_bytes)}) == ToHex(value));
  CHECK(*DecodeRate(key, value) == SampleRateBucket());
}

TEST_CASE("a bucket that is cut short, of another version or out of range is refused by name") {
  const std::string& key = GoldenRates().at("rate_key");
  const std::string& value = GoldenRates().at("rate_value");
  CHECK(WhyNoRate(key.substr(1), value) == "rate key: has 15 bytes instead of 16");
  CHECK(WhyNoRate(key + "x", value) == "rate key: has 17 bytes instead of 16");
  CHECK(WhyNoRate(key, value.substr(1)) == "rate value: has 16 bytes instead of 17");
  CHECK(WhyNoRate(key, "") == "rate value: has 0 bytes instead of 17");
  CHECK(WhyNoRate(key, '\2' + value.substr(1)) == "rate value: version is 2 instead of 1");
  const std::string zero8(8, '\0');
  const std::string negative8 = '\x80' + std::string(7, '\0');
  CHECK(WhyNoRate(zero8 + key.substr(8), value) == "rate key: flow is not positive");
  CHECK(WhyNoRate(key.substr(0, 8) + negative8, value) == "rate key: begin_ms is out of range");
  CHECK(WhyNoRate(key, value.substr(0, 1) + negative8 + zero8) ==
        "rate value: passed is out of range");
  CHECK(WhyNoRate(key, value.substr(0, 1) + zero8 + negative8) ==
        "rate value: lent is out of range");
}

}  // namespace
}  // namespace nowcalls::ledger
