#include "ledger/witness.h"

#include "base/bytes.h"
#include "base/crc32c.h"

namespace nowcalls::ledger {
namespace {

constexpr uint8_t kWitnessVersion = 2;
constexpr uint8_t kWitnessVersion1 = 1;

}  // namespace

std::string EncodeWitnessSlot(const Witness& witness) {
  std::string out;
  AppendBigEndian(&out, kWitnessVersion);
  for (const uint64_t number : {witness.sequence, witness.batch_number, witness.floor,
                                witness.manifest, witness.manifest_bytes, witness.first_log}) {
    AppendBigEndian(&out, number);
  }
  AppendBigEndian(&out, static_cast<uint8_t>(witness.unsynced ? 1 : 0));
  // The checksum covers all bytes before it.
  AppendBigEndian(&out, Crc32c(out));
  return out;
}

std::optional<Witness> DecodeWitnessSlot(std::string_view bytes) {
  // Version 1 is shorter. An upgrade reads the witness that the older server left.
  const bool old = !bytes.empty() && bytes.front() == static_cast<char>(kWitnessVersion1);
  const size_t size = old ? kWitnessSlotBytesV1 : kWitnessSlotBytes;
  if (bytes.size() < size) return {};
  ByteReader reader(bytes);
  Witness witness;
  const auto version = reader.Read<uint8_t>();
  for (uint64_t* number : {&witness.sequence, &witness.batch_number, &witness.floor,
                           &witness.manifest, &witness.manifest_bytes}) {
    *number = reader.Read<uint64_t>();
  }
  uint8_t unsynced = 0;
  if (!old) {
    witness.first_log = reader.Read<uint64_t>();
    unsynced = reader.Read<uint8_t>();
    witness.unsynced = unsynced == 1;
  }
  const bool sound = reader.Read<uint32_t>() == Crc32c(bytes.substr(0, size - sizeof(uint32_t)));
  // A torn write, another version, or flags of a later release: no slot.
  if (!sound || (!old && version != kWitnessVersion) || unsynced > 1) return {};
  if (witness.sequence == 0) return {};
  return witness;
}

WitnessFound DecodeWitnessFile(std::string_view bytes) {
  WitnessFound found;
  for (size_t i = 0; i < kWitnessSlots; ++i) {
    const size_t begin = i * kWitnessSlotStride;
    const std::string_view slot = begin < bytes.size() ? bytes.substr(begin) : std::string_view();
    const std::optional<Witness> read = DecodeWitnessSlot(slot);
    // A sound slot in the other slot's place was written by mistake: damaged, not used.
    if (!read.has_value() || read->sequence % kWitnessSlots != i) {
      found.damaged = true;
    } else if (!found.witness.has_value() || found.witness->sequence < read->sequence) {
      // Both slots sound: the later write wins. A torn write of one leaves the other.
      found.witness = read;
    }
  }
  return found;
}

}  // namespace nowcalls::ledger
