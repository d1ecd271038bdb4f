#include "ledger/witness.h"

#include "base/bytes.h"
#include "base/crc32c.h"

namespace nowcalls::ledger {
namespace {

constexpr uint8_t kWitnessVersion = 1;

}  // namespace

std::string EncodeWitnessSlot(const Witness& witness) {
  std::string out;
  AppendBigEndian(&out, kWitnessVersion);
  for (const uint64_t number : {witness.sequence, witness.batch_number, witness.floor,
                                witness.manifest, witness.manifest_bytes}) {
    AppendBigEndian(&out, number);
  }
  AppendBigEndian(&out, Crc32c(out));
  return out;
}

std::optional<Witness> DecodeWitnessSlot(std::string_view bytes) {
  if (bytes.size() < kWitnessSlotBytes) return {};
  ByteReader reader(bytes);
  Witness witness;
  const auto version = reader.Read<uint8_t>();
  for (uint64_t* number : {&witness.sequence, &witness.batch_number, &witness.floor,
                           &witness.manifest, &witness.manifest_bytes}) {
    *number = reader.Read<uint64_t>();
  }
  const size_t covered = kWitnessSlotBytes - sizeof(uint32_t);
  const bool sound = reader.Read<uint32_t>() == Crc32c(bytes.substr(0, covered));
  if (!sound || version != kWitnessVersion || witness.sequence == 0) return {};
  return witness;
}

WitnessFound DecodeWitnessFile(std::string_view bytes) {
  WitnessFound found;
  for (size_t i = 0; i < kWitnessSlots; ++i) {
    const size_t begin = i * kWitnessSlotStride;
    const std::string_view slot = begin < bytes.size() ? bytes.substr(begin) : std::string_view();
    const std::optional<Witness> read = DecodeWitnessSlot(slot);
    if (!read.has_value() || read->sequence % kWitnessSlots != i) {
      found.damaged = true;
    } else if (!found.witness.has_value() || found.witness->sequence < read->sequence) {
      found.witness = read;
    }
  }
  return found;
}

}  // namespace nowcalls::ledger
