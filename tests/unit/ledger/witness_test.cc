// The witness as bytes: which of its two places is believed, and what is damage.
#include "ledger/witness.h"

#include <doctest/doctest.h>

#include "base/hex.h"
#include "support/golden.h"

namespace nowcalls::ledger {
namespace {

Witness Sample() {
  return {.sequence = 9,
          .batch_number = 3,
          .floor = 1,
          .manifest = 5,
          .manifest_bytes = 416,
          .first_log = 7,
          .unsynced = true};
}

// A file with `even` in the first place and `odd` in the other.
std::string FileOf(const std::string& even, const std::string& odd) {
  std::string bytes(kWitnessFileBytes, '\0');
  bytes.replace(0, even.size(), even);
  bytes.replace(kWitnessSlotStride, odd.size(), odd);
  return bytes;
}

TEST_CASE("a slot has the golden bytes, and they are decoded") {
  const auto golden = testing::LoadGolden(testing::GoldenPath("ledger_values.hex"));
  CHECK(ToHex(EncodeWitnessSlot(Sample())) == ToHex(golden.at("witness_slot")));
  CHECK(golden.at("witness_slot").size() == kWitnessSlotBytes);
  CHECK(DecodeWitnessSlot(golden.at("witness_slot")) == Sample());
}

TEST_CASE("a slot of version 1 says that every batch was on the disk before it was answered") {
  const auto golden = testing::LoadGolden(testing::GoldenPath("ledger_values.hex"));
  const std::string& slot = golden.at("witness_slot_v1");
  CHECK(slot.size() == kWitnessSlotBytesV1);
  Witness witness = Sample();
  witness.first_log = 0;
  witness.unsynced = false;
  CHECK(DecodeWitnessSlot(slot) == witness);
  CHECK_FALSE(DecodeWitnessSlot(slot.substr(0, slot.size() - 1)).has_value());
  CHECK(DecodeWitnessFile(FileOf("", slot)).witness == witness);
}

TEST_CASE("a slot with any bit changed, or cut short, is none") {
  const std::string whole = EncodeWitnessSlot(Sample());
  for (size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = whole;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      CHECK_FALSE(DecodeWitnessSlot(bad).has_value());
    }
    CHECK_FALSE(DecodeWitnessSlot(whole.substr(0, at)).has_value());
  }
  CHECK_FALSE(DecodeWitnessSlot(std::string(kWitnessSlotBytes, '\0')).has_value());
}

TEST_CASE("the later of two sound slots is believed, the other when it is damaged") {
  Witness later = Sample();
  later.sequence = 10;
  later.batch_number = 4;
  const std::string odd = EncodeWitnessSlot(Sample());
  const std::string even = EncodeWitnessSlot(later);
  const WitnessFound both = DecodeWitnessFile(FileOf(even, odd));
  CHECK(both.witness == later);
  CHECK_FALSE(both.damaged);
  const WitnessFound one = DecodeWitnessFile(FileOf("", odd));
  CHECK(one.witness == Sample());
  CHECK(one.damaged);
  CHECK(DecodeWitnessFile(even).witness == later);
  CHECK(DecodeWitnessFile(even).damaged);
  for (const std::string& none : {FileOf("", ""), FileOf(odd, even), std::string()}) {
    const WitnessFound found = DecodeWitnessFile(none);
    CHECK_FALSE(found.witness.has_value());
    CHECK(found.damaged);
  }
}

}  // namespace
}  // namespace nowcalls::ledger
