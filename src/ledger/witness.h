// The witness: a record of the ledger's end apart from the ledger, so that a lost end is noticed.
//
// Thread: any. Layout: FORMAT.md.
#ifndef NOWCALLS_LEDGER_WITNESS_H_
#define NOWCALLS_LEDGER_WITNESS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nowcalls::ledger {

inline constexpr std::string_view kWitnessName = "witness";
inline constexpr size_t kWitnessSlots = 2;
inline constexpr size_t kWitnessSlotBytes = 54;
inline constexpr size_t kWitnessSlotBytesV1 = 45;   // Of version 1, which is still read.
inline constexpr size_t kWitnessSlotStride = 4096;  // No page, and no sector, has both.
inline constexpr size_t kWitnessFileBytes = kWitnessSlots * kWitnessSlotStride;

struct Witness {
  uint64_t sequence = 0;      // Of the writes, from 1; slot sequence % 2 has it.
  uint64_t batch_number = 0;  // This batch was on the disk.
  // Logs of batches up to this one may be gone; logs of all later batches existed.
  uint64_t floor = 0;
  uint64_t manifest = 0;        // The number of the manifest that is meant by the next.
  uint64_t manifest_bytes = 0;  // So much of it was on the disk.
  // Logs with smaller numbers are obsolete: data files have their content.
  uint64_t first_log = 0;
  // Batches behind batch_number were answered unsynced; a machine crash may leave any part.
  bool unsynced = false;

  bool operator==(const Witness&) const = default;
};

std::string EncodeWitnessSlot(const Witness& witness);
// nullopt: never written, damaged, or of an unknown version.
std::optional<Witness> DecodeWitnessSlot(std::string_view bytes);

struct WitnessFound {
  std::optional<Witness> witness;  // The latest of the sound slots.
  bool damaged = false;            // A slot is not sound.
};
WitnessFound DecodeWitnessFile(std::string_view bytes);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_WITNESS_H_
