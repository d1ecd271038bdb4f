// The values in the counters of a flow's row: counts by reason, and times.
//
// Thread: any.
#ifndef NOWCALLS_WIRE_FLOW_VALUES_H_
#define NOWCALLS_WIRE_FLOW_VALUES_H_

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>

#include "nowcalls/call_outcome.h"
#include "nowcalls/types.h"
#include "wire/field_reader.h"
#include "wire/packing.h"
#include "wire/row_fields.h"
#include "wire/rows.h"

namespace nowcalls::wire {

inline std::string_view WordOf(RefusedBy limit) { return RefusedByName(limit); }
inline std::string_view WordOf(EndReason reason) { return EndReasonName(reason); }
inline std::string_view WordOf(CallOutcome outcome) { return CallOutcomeName(outcome); }

template <typename Reason>
std::string_view WordAt(size_t index) {
  return WordOf(static_cast<Reason>(index));
}

// All reasons are sent, also those of 0.
template <typename Reason, size_t kCount>
void PackValue(const CountsBy<Reason, kCount>& counts, Packer* packer) {
  packer->pack_map(kCount - 1);
  for (size_t i = 1; i < kCount; ++i) PackField(WordAt<Reason>(i), counts[i], packer);
}
// Limits that refused nothing are left out.
inline void PackValue(const LimitCounts& counts, Packer* packer) {
  packer->pack_map(static_cast<uint32_t>(
      std::count_if(counts.begin(), counts.end(), [](uint64_t count) { return count > 0; })));
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) PackField(WordAt<RefusedBy>(i), counts[i], packer);
  }
}
// Words of a later server are skipped.
template <typename Reason, size_t kCount>
bool ReadValue(std::string_view key, FieldReader* fields, CountsBy<Reason, kCount>* counts) {
  return fields->ForEachKey(key, [&](std::string_view word) {
    for (size_t i = 1; i < kCount; ++i) {
      if (word == WordAt<Reason>(i)) return fields->Required(word, &(*counts)[i]);
    }
    return fields->Skip(word);
  });
}

// Outcomes are sent once a call has ended badly.
inline uint32_t Pairs(const OutcomeCounts& counts) {
  return std::any_of(counts.begin(), counts.end(), [](uint64_t count) { return count > 0; }) ? 1
                                                                                             : 0;
}
inline void PackField(std::string_view key, const OutcomeCounts& counts, Packer* packer) {
  if (Pairs(counts) == 0) return;
  PackString(key, packer);
  PackValue(counts, packer);
}

inline void PackValue(const CountsBelow& counts, Packer* packer) {
  packer->pack_array(static_cast<uint32_t>(counts.size()));
  for (const uint64_t count : counts) packer->pack_uint64(count);
}
// In the order of kTimeBoundsMs. Bounds that this version does not know are skipped.
inline bool ReadValue(std::string_view key, FieldReader* fields, CountsBelow* counts) {
  size_t known = 0;
  return fields->ForEachElement(key, [&] {
    if (known == counts->size()) return fields->Skip("count");
    return fields->Required("count", &(*counts)[known++]);
  });
}

inline constexpr auto kQuantiles = std::tuple{
    Field{"p50", &Times::p50_ms}, Field{"p90", &Times::p90_ms}, Field{"p99", &Times::p99_ms}};
inline constexpr auto kSums = std::tuple{
    Field{"sum", &Times::sum_ms}, Field{"count", &Times::count}, Field{"upto", &Times::upto}};
template <>
inline constexpr auto kFieldsOf<Times> = std::tuple_cat(kQuantiles, kSums);
template <>
inline constexpr auto kFieldsOf<HeldTimes> =
    std::tuple_cat(kQuantiles, std::tuple{Field{"longest", &HeldTimes::longest_ms}}, kSums);

// Waits are sent once one has ended.
inline uint32_t Pairs(const Times& times) { return times.count > 0 ? 1 : 0; }
inline void PackField(std::string_view key, const Times& times, Packer* packer) {
  if (times.count == 0) return;
  PackString(key, packer);
  PackRow(times, packer);
}
// Held times are sent always; without a count no sum and no bounds.
inline void PackValue(const HeldTimes& times, Packer* packer) {
  if (times.count > 0) return PackRow(times, packer);
  packer->pack_map(4);
  PackField("p50", times.p50_ms, packer);
  PackField("p90", times.p90_ms, packer);
  PackField("p99", times.p99_ms, packer);
  PackField("longest", times.longest_ms, packer);
}

// A map that may lack any key.
template <typename Row>
bool ReadMap(std::string_view key, FieldReader* fields, Row* row) {
  return fields->ForEachKey(key,
                            [&](std::string_view name) { return ReadField(name, fields, row); });
}
inline bool ReadValue(std::string_view key, FieldReader* fields, Times* times) {
  return ReadMap(key, fields, times);
}
inline bool ReadValue(std::string_view key, FieldReader* fields, HeldTimes* times) {
  return ReadMap(key, fields, times);
}

}  // namespace nowcalls::wire

#endif  // NOWCALLS_WIRE_FLOW_VALUES_H_
