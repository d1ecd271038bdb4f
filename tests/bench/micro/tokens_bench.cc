// Where tokens are kept and found: ids, the index, the table. "live" of them are there all the
// time; each step works on one of them that nothing has touched for long.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/prefetch.h"
#include "base/prng.h"
#include "bench/micro/items.h"
#include "core/tables/slot_index.h"
#include "core/tables/token_ids.h"
#include "core/tables/token_table.h"

namespace nowcalls::microbench {
namespace {

constexpr std::array<uint64_t, 2> kKey = {0x0123456789abcdef, 0xfedcba9876543210};

void TokenIdFromFence(benchmark::State& state) {
  const core::TokenIds ids(kKey);
  uint64_t fence = 5'000'000'000;
  for ([[maybe_unused]] auto iteration : state) {
    benchmark::DoNotOptimize(ids.FromFence(Fence{++fence}));
  }
  CountItems(&state, state.iterations());
}

void TokenIdToFence(benchmark::State& state) {
  const core::TokenIds ids(kKey);
  uint64_t id = 5'000'000'000;
  for ([[maybe_unused]] auto iteration : state)
    benchmark::DoNotOptimize(ids.ToFence(TokenId{++id}));
  CountItems(&state, state.iterations());
}

// Slots 0 .. live - 1 under the ids of their fences, which come round in random order.
class FilledIndex {
 public:
  struct Entry {
    uint64_t hash = 0;
    core::TokenSlot slot = core::kNoToken;
  };

  explicit FilledIndex(size_t live) {
    for (size_t i = 0; i < live; ++i) {
      entries_.push_back({NextHash(), static_cast<core::TokenSlot>(i)});
      index_.Insert(entries_[i].hash, entries_[i].slot);
    }
    Prng prng(1);
    for (size_t i = live; i > 1; --i) std::swap(entries_[i - 1], entries_[prng.Below(i)]);
  }

  Entry& Next() {
    next_ = next_ + 1 == entries_.size() ? 0 : next_ + 1;
    return entries_[next_];
  }
  uint64_t NextHash() { return ids_.FromFence(Fence{++fence_}).value; }
  core::SlotIndex<core::TokenSlot>& index() { return index_; }

 private:
  core::TokenIds ids_{kKey};
  core::SlotIndex<core::TokenSlot> index_;
  std::vector<Entry> entries_;
  uint64_t fence_ = 0;
  size_t next_ = 0;
};

void SlotIndexFind(benchmark::State& state) {
  FilledIndex filled(static_cast<size_t>(state.range(0)));
  for ([[maybe_unused]] auto iteration : state) {
    const FilledIndex::Entry& entry = filled.Next();
    const auto is_it = [&](core::TokenSlot slot) { return slot == entry.slot; };
    benchmark::DoNotOptimize(filled.index().Find(entry.hash, is_it));
  }
  CountItems(&state, state.iterations());
}

// The hash of a new token takes the place of an old one's; it is counted, being a part of it.
void SlotIndexEraseInsert(benchmark::State& state) {
  FilledIndex filled(static_cast<size_t>(state.range(0)));
  for ([[maybe_unused]] auto iteration : state) {
    FilledIndex::Entry& entry = filled.Next();
    filled.index().Erase(entry.hash, entry.slot);
    entry.hash = filled.NextHash();
    filled.index().Insert(entry.hash, entry.slot);
  }
  CountItems(&state, 2 * state.iterations());
}

// A table with live tokens of 64 sessions and 1000 flows, and which of them is replaced next.
class FilledTable {
 public:
  FilledTable(size_t live, bool request_ids)
      : request_ids_(request_ids), table_(kKey), held_(live), of_flow_(1000), of_session_(64) {
    for (uint64_t& fence : held_) fence = Insert();
  }

  // Finds and erases one, inserts and links another.
  void ReplaceOne() {
    uint64_t& fence = held_[next_];
    next_ = prng_.Below(held_.size());
    PrefetchForReading(&held_[next_]);
    const core::TokenSlot slot = table_.Find(fence);
    NOWCALLS_CHECK(slot != core::kNoToken);
    const core::TokenEntry& entry = table_.at(slot);
    table_.Erase(slot, &of_flow_[entry.flow_slot.value], &of_session_[entry.session_slot.value]);
    fence = Insert();
  }

  // As when an acquire is asked again.
  core::TokenSlot FindOneByRequest() {
    const uint64_t fence = held_[next_];
    next_ = prng_.Below(held_.size());
    PrefetchForReading(&held_[next_]);
    return table_.FindRequest(SessionOf(fence), fence);
  }

 private:
  // The fence is the request id, too.
  core::SessionSlot SessionOf(uint64_t fence) const {
    return static_cast<core::SessionSlot>(fence % of_session_.size());
  }

  uint64_t Insert() {
    ++fence_;
    const core::TokenSlot slot = table_.Insert(fence_);
    core::TokenEntry& entry = table_.at(slot);
    entry.flow_slot = static_cast<core::FlowSlot>(prng_.Below(of_flow_.size()));
    entry.session_slot = SessionOf(fence_);
    if (request_ids_) {
      // Nobody sets one without having looked.
      NOWCALLS_CHECK(table_.FindRequest(entry.session_slot, fence_) == core::kNoToken);
      table_.SetRequest(slot, fence_);
    }
    table_.Link(slot, &of_flow_[entry.flow_slot.value], &of_session_[entry.session_slot.value]);
    return fence_;
  }

  const bool request_ids_;
  core::TokenTable table_;
  std::vector<uint64_t> held_;
  std::vector<core::TokenList> of_flow_;
  std::vector<core::TokenList> of_session_;
  Prng prng_{1};
  uint64_t fence_ = 0;
  size_t next_ = 0;
};

FilledTable& TableWith(int64_t live, bool request_ids) {
  static std::unique_ptr<FilledTable> table;
  static std::pair<int64_t, bool> made_for;
  const std::pair wanted(live, request_ids);
  if (table == nullptr || made_for != wanted) {
    table.reset();  // Before the next one, so that two never share the memory.
    table = std::make_unique<FilledTable>(static_cast<size_t>(live), request_ids);
    made_for = wanted;
  }
  return *table;
}

void TokenTableReplace(benchmark::State& state) {
  FilledTable& table = TableWith(state.range(0), /*request_ids=*/false);
  for ([[maybe_unused]] auto iteration : state) table.ReplaceOne();
  CountItems(&state, 2 * state.iterations());
}

void TokenTableReplaceWithRequestIds(benchmark::State& state) {
  FilledTable& table = TableWith(state.range(0), /*request_ids=*/true);
  for ([[maybe_unused]] auto iteration : state) table.ReplaceOne();
  CountItems(&state, 2 * state.iterations());
}

void TokenTableFindRequest(benchmark::State& state) {
  FilledTable& table = TableWith(state.range(0), /*request_ids=*/true);
  for ([[maybe_unused]] auto iteration : state) {
    NOWCALLS_CHECK(table.FindOneByRequest() != core::kNoToken);
  }
  CountItems(&state, state.iterations());
}

BENCHMARK(TokenIdFromFence);
BENCHMARK(TokenIdToFence);
BENCHMARK(SlotIndexFind)->ArgName("live")->Arg(1000)->Arg(1'000'000);
BENCHMARK(SlotIndexEraseInsert)->ArgName("live")->Arg(1000)->Arg(1'000'000);
BENCHMARK(TokenTableReplace)->ArgName("live")->Arg(1000)->Arg(1'000'000);
BENCHMARK(TokenTableFindRequest)->ArgName("live")->Arg(1000);
BENCHMARK(TokenTableReplaceWithRequestIds)->ArgName("live")->Arg(1000);
BENCHMARK(TokenTableFindRequest)->ArgName("live")->Arg(1'000'000);
BENCHMARK(TokenTableReplaceWithRequestIds)->ArgName("live")->Arg(1'000'000);

}  // namespace
}  // namespace nowcalls::microbench
