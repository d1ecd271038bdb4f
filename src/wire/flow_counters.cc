#include "wire/flow_counters.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "nowcalls/types.h"
#include "wire/row_fields.h"

namespace nowcalls::wire {
namespace {

constexpr std::array kEndReasons = {
    EndReason::kReleased,        EndReason::kReleasedLate, EndReason::kClientOffline,
    EndReason::kResourceTimeout, EndReason::kRuleRemoved,  EndReason::kAdmin,
    EndReason::kCancelled,
};
static_assert(kEndReasons.size() == kEndReasonCount - 1);

// Those that are not zero: a flow meets few of its limits.
void PackLimits(std::string_view key, const uint64_t (&counts)[kRefusedByCount], Packer* packer) {
  PackString(key, packer);
  packer->pack_map(static_cast<uint32_t>(std::count_if(std::begin(counts), std::end(counts),
                                                       [](uint64_t count) { return count > 0; })));
  for (size_t i = 0; i < std::size(counts); ++i) {
    if (counts[i] > 0) PackField(RefusedByName(static_cast<RefusedBy>(i)), counts[i], packer);
  }
}

bool ReadEnded(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  for (const EndReason reason : kEndReasons) {
    if (key != EndReasonName(reason)) continue;
    return fields->Required(key, &counters->ended[static_cast<size_t>(reason)]);
  }
  return fields->Skip(key);
}

bool ReadLimits(std::string_view key, FieldReader* fields, uint64_t (&counts)[kRefusedByCount]) {
  return fields->ForEachKey(key, [&](std::string_view limit) {
    for (size_t i = 1; i < std::size(counts); ++i) {
      if (limit == RefusedByName(static_cast<RefusedBy>(i))) {
        return fields->Required(limit, &counts[i]);
      }
    }
    return fields->Skip(limit);
  });
}

bool ReadHeld(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  if (key == "p50") return fields->Required(key, &counters->held_p50_ms);
  if (key == "p90") return fields->Required(key, &counters->held_p90_ms);
  if (key == "p99") return fields->Required(key, &counters->held_p99_ms);
  if (key == "longest") return fields->Required(key, &counters->held_longest_ms);
  return fields->Skip(key);
}

bool ReadCounter(std::string_view key, FieldReader* fields, FlowCounters* counters) {
  if (key == "granted") return fields->Required(key, &counters->granted);
  if (key == "kept") return fields->Required(key, &counters->kept);
  if (key == "queued") return fields->Required(key, &counters->queued);
  if (key == "granted_from_queue") return fields->Required(key, &counters->granted_from_queue);
  if (key == "longest_wait_ms") return fields->Required(key, &counters->longest_wait_ms);
  if (key == "refused") return ReadLimits(key, fields, counters->refused);
  if (key == "shadow_refused") return ReadLimits(key, fields, counters->shadow_refused);
  if (key == "held_ms") {
    return fields->ForEachKey(
        key, [&](std::string_view name) { return ReadHeld(name, fields, counters); });
  }
  if (key == "ended") {
    return fields->ForEachKey(
        key, [&](std::string_view reason) { return ReadEnded(reason, fields, counters); });
  }
  return fields->Skip(key);
}

}  // namespace

void PackValue(const FlowCounters& counters, Packer* packer) {
  packer->pack_map(9);
  PackField("granted", counters.granted, packer);
  PackLimits("refused", counters.refused, packer);
  PackLimits("shadow_refused", counters.shadow_refused, packer);
  PackField("queued", counters.queued, packer);
  PackField("granted_from_queue", counters.granted_from_queue, packer);
  PackField("longest_wait_ms", counters.longest_wait_ms, packer);
  PackField("kept", counters.kept, packer);
  PackString("ended", packer);
  packer->pack_map(static_cast<uint32_t>(kEndReasons.size()));
  for (const EndReason reason : kEndReasons) {
    PackField(EndReasonName(reason), counters.ended[static_cast<size_t>(reason)], packer);
  }
  PackString("held_ms", packer);
  packer->pack_map(4);
  PackField("p50", counters.held_p50_ms, packer);
  PackField("p90", counters.held_p90_ms, packer);
  PackField("p99", counters.held_p99_ms, packer);
  PackField("longest", counters.held_longest_ms, packer);
}

bool ReadValue(std::string_view key, FieldReader* fields, std::optional<FlowCounters>* counters) {
  if (fields->TakeMissing()) return true;
  counters->emplace();
  return fields->ForEachKey(
      key, [&](std::string_view name) { return ReadCounter(name, fields, &**counters); });
}

}  // namespace nowcalls::wire
