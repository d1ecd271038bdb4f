// ParamValues: values of parameters, and the calls a second of each.
//
// Thread: loop. Limits of dropped values begin anew.
//
// Memory: 256 bytes a value, 12 in the index, 16 and 8 a bucket of a window. Text beyond 15 bytes.
#ifndef NOWCALLS_CORE_RATES_PARAM_VALUES_H_
#define NOWCALLS_CORE_RATES_PARAM_VALUES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "base/allocated.h"
#include "core/rates/hotspot_pace.h"
#include "core/rates/recent_calls.h"
#include "core/rates/sliding_window.h"
#include "core/tables/slot.h"
#include "core/tables/slot_arena.h"
#include "core/tables/slot_table.h"
#include "nowcalls/param.h"

namespace nowcalls::core {

struct FlowValues;

enum class ValueOrder : uint8_t { kAll = 0, kFlow = 1 };

struct ValueLink {
  ValueSlot newer;
  ValueSlot older;
};

struct ValueList {
  ValueSlot newest;
  ValueSlot oldest;
  size_t size = 0;
};

struct ValueRate {
  ParamValue value;
  FlowValues* owner = nullptr;  // Null: the slot is free.
  std::array<ValueLink, 2> links;
  uint32_t hash = 0;
  uint32_t rule_number = 0;  // Flow::rule_number that `count` was taken from; 0: none.
  double count = 0;          // What the rule says of the value.
  int64_t asked = 0;         // Calls that the request at hand asks for; 0 between requests.
  int64_t busy_ms = 0;       // Until then its limit differs from that of a new value.
  int64_t idle_ms = 0;       // From then on nothing is limited or shown.
  RecentCalls recent;        // What is shown of it.
  RecentCalls minute;
  std::variant<std::monostate, SlidingWindow, TokenBucket, LeakyBucket> pace;
};

static_assert(sizeof(ValueRate) == 256);

// A rule's values; does not move while it has any.
struct FlowValues {
  SlotTable<ValueSlot> index;
  ValueList list;
  uint64_t forgotten = 0;  // Dropped while busy, for want of room.
};

class ParamValues {
 public:
  ParamValues(const std::array<uint64_t, 2>& hash_key, size_t bytes_max)
      : hash_key_(hash_key), bytes_max_(bytes_max) {}

  ValueSlot Find(const FlowValues& values, const Param& value) const;
  // Made if need be; now the most recently used.
  ValueSlot Use(FlowValues* values, const Param& value);
  // Drops the least recently used values beyond `values_max` or the table's bytes, and some idle
  // ones.
  void Trim(FlowValues* values, size_t values_max, int64_t now_ms);
  void Clear(FlowValues* values);

  ValueRate& at(ValueSlot slot) { return values_[slot]; }
  const ValueRate& at(ValueSlot slot) const { return values_[slot]; }
  // Used before it, of the same rule.
  ValueSlot Older(ValueSlot slot) const { return LinkOf(slot, ValueOrder::kFlow).older; }
  size_t size() const { return all_.size; }
  size_t bytes() const { return bytes_; }
  uint64_t forgotten() const { return forgotten_; }  // Also of erased rules.
  // `buckets`: of its window, if it has one.
  template <typename PaceType>
  PaceType& Begin(ValueSlot slot, PaceType pace, size_t buckets = 0) {
    bytes_ += WindowBytes(buckets);
    return at(slot).pace.template emplace<PaceType>(std::move(pace));
  }

 private:
  static size_t WindowBytes(size_t buckets) {
    return buckets == 0 ? 0 : AllocatedBytes(buckets * sizeof(int64_t));
  }
  static size_t BytesOf(const ValueRate& value);
  uint32_t HashOf(const Param& value) const;
  ValueLink& LinkOf(ValueSlot slot, ValueOrder order) {
    return at(slot).links[static_cast<size_t>(order)];
  }
  const ValueLink& LinkOf(ValueSlot slot, ValueOrder order) const {
    return at(slot).links[static_cast<size_t>(order)];
  }
  void Link(ValueList* list, ValueOrder order, ValueSlot slot);
  void Unlink(ValueList* list, ValueOrder order, ValueSlot slot);
  void Forget(ValueSlot slot, int64_t now_ms);
  void Drop(ValueSlot slot);

  static constexpr uint32_t kChunk = 256;

  const std::array<uint64_t, 2> hash_key_;
  const size_t bytes_max_;
  SlotArena<ValueSlot, ValueRate, kChunk> values_;
  ValueList all_;
  size_t bytes_ = 0;
  uint64_t forgotten_ = 0;
};

}  // namespace nowcalls::core

#endif  // NOWCALLS_CORE_RATES_PARAM_VALUES_H_
