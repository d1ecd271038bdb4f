// The witness: what a ledger's directory says of its end apart from the ledger itself, so that an
// end that was lost is noticed.
//
// Thread: any; pure. The file `witness` is two slots of kWitnessSlotBytes at the distance
// kWitnessSlotStride, written in turns, so that one is sound whenever the machine stops. Layout and
// an example are in FORMAT.md.
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
  // The logs of the batches up to this one may be gone; those of all later ones were there.
  uint64_t floor = 0;
  uint64_t manifest = 0;        // The number of the manifest that is meant by the next.
  uint64_t manifest_bytes = 0;  // So much of it was on the disk.
  // Logs with smaller numbers are left over: what of them belongs to the ledger is in data files.
  uint64_t first_log = 0;
  // Batches behind batch_number were answered without being on the disk, so a crash of the machine
  // may have left any part of their logs.
  bool unsynced = false;

  bool operator==(const Witness&) const = default;
};

std::string EncodeWitnessSlot(const Witness& witness);
// Nothing for bytes that are no slot: never written, damaged, or of an unknown version. In version
// 1 there was nothing behind manifest_bytes.
std::optional<Witness> DecodeWitnessSlot(std::string_view bytes);

// What a file says.
struct WitnessFound {
  std::optional<Witness> witness;  // The latest of the sound slots.
  bool damaged = false;            // A slot is not sound.
};
WitnessFound DecodeWitnessFile(std::string_view bytes);

}  // namespace nowcalls::ledger

#endif  // NOWCALLS_LEDGER_WITNESS_H_
