#include "store/sorted_runs.h"

#include <doctest/doctest.h>
#include <rocksdb/db.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"

namespace nowcalls::store {
namespace {

// Entries whose keys are numbers; of some the first 16 bytes are the same.
class Numbers final : public KeyComparator {
 public:
  MemtableItem Item(uint32_t number) {
    entries_.emplace_back(reinterpret_cast<const char*>(&number), sizeof(number));
    return {number / 16, 0, entries_.back().data()};
  }
  static uint32_t Of(const char* entry) {
    uint32_t number = 0;
    memcpy(&number, entry, sizeof(number));
    return number;
  }

  int operator()(const char* a, const char* b) const override {
    return Of(a) < Of(b) ? -1 : Of(a) > Of(b) ? 1 : 0;
  }
  int operator()(const char*, const rocksdb::Slice&) const override { return 0; }

 private:
  std::deque<std::string> entries_;
};

std::vector<uint32_t> Forward(RunsCursor* cursor) {
  std::vector<uint32_t> seen;
  for (; cursor->Valid(); cursor->Next()) seen.push_back(Numbers::Of(cursor->entry()));
  return seen;
}

std::vector<uint32_t> Backward(RunsCursor* cursor) {
  std::vector<uint32_t> seen;
  for (; cursor->Valid(); cursor->Prev()) seen.push_back(Numbers::Of(cursor->entry()));
  return seen;
}

TEST_CASE("runs of any lengths are walked as one order, from anywhere and both ways") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Prng prng(seed);
    std::vector<uint32_t> numbers(2000);
    for (uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = 2 * i;
    for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[prng.Below(i)]);

    Numbers entries;
    SortedRuns sorted(std::make_shared<RunsMemory>(prng.Below(100'000)));
    for (size_t at = 0; at < numbers.size();) {
      const size_t end = std::min(numbers.size(), at + prng.Below(prng.Below(10) == 0 ? 500 : 20));
      MemtableItems items;
      for (; at < end; ++at) items.push_back(entries.Item(numbers[at]));
      sorted.Add(std::move(items), entries);
    }
    std::sort(numbers.begin(), numbers.end());

    RunsCursor cursor(sorted, entries);
    CHECK_FALSE(cursor.Valid());
    cursor.SeekToFirst();
    REQUIRE(Forward(&cursor) == numbers);
    cursor.SeekToLast();
    REQUIRE(Backward(&cursor) == std::vector<uint32_t>(numbers.rbegin(), numbers.rend()));

    for (int i = 0; i < 50; ++i) {
      const auto from = static_cast<uint32_t>(prng.Below(2 * numbers.size() + 2));
      cursor.Seek([&](const char* entry) { return Numbers::Of(entry) < from; });
      size_t at = static_cast<size_t>(std::lower_bound(numbers.begin(), numbers.end(), from) -
                                      numbers.begin());
      // A walk that turns.
      for (int step = 0; step < 30; ++step) {
        REQUIRE(cursor.Valid() == (at < numbers.size()));
        if (!cursor.Valid()) break;
        REQUIRE(Numbers::Of(cursor.entry()) == numbers[at]);
        if (prng.Below(2) == 0) {
          cursor.Next();
          ++at;
        } else {
          cursor.Prev();
          at = at == 0 ? numbers.size() : at - 1;
        }
      }
    }
  }
}

TEST_CASE("there are few runs however many pieces came, and most entries are in the first") {
  Numbers entries;
  SortedRuns sorted(std::make_shared<RunsMemory>(0));
  uint32_t added = 0;
  for (uint32_t pieces = 1; pieces <= 1000; ++pieces) {
    MemtableItems items;
    for (uint32_t i = 0; i < 1 + pieces % 7; ++i) items.push_back(entries.Item(added++));
    sorted.Add(std::move(items), entries);
    const SortedRuns::Runs& runs = sorted.runs();
    for (size_t i = 1; i < runs.size(); ++i) REQUIRE(runs[i - 1]->size() >= 2 * runs[i]->size());
  }
  CHECK(sorted.runs().size() <= 12);
}

TEST_CASE("a cursor goes on over what was there when it was made") {
  Numbers entries;
  SortedRuns sorted(std::make_shared<RunsMemory>(0));
  sorted.Add({entries.Item(5), entries.Item(1)}, entries);
  RunsCursor before(sorted, entries);
  before.SeekToFirst();
  sorted.Add({entries.Item(3), entries.Item(7), entries.Item(2)}, entries);
  CHECK(Forward(&before) == std::vector<uint32_t>{1, 5});
  RunsCursor after(sorted, entries);
  after.SeekToFirst();
  CHECK(Forward(&after) == std::vector<uint32_t>{1, 2, 3, 5, 7});
}

TEST_CASE("nothing is nowhere") {
  const Numbers entries;
  SortedRuns sorted(std::make_shared<RunsMemory>(0));
  sorted.Add({}, entries);
  CHECK(sorted.runs().empty());
  RunsCursor cursor(sorted, entries);
  cursor.SeekToFirst();
  CHECK_FALSE(cursor.Valid());
  cursor.SeekToLast();
  CHECK_FALSE(cursor.Valid());
}

TEST_CASE("memory of runs that are no more is taken again, the smallest that suffices") {
  RunsMemory memory(100 * sizeof(MemtableItem));
  MemtableItems large = memory.Take(60);
  MemtableItems small = memory.Take(30);
  MemtableItems excess = memory.Take(50);
  const MemtableItem* const at_large = large.data();
  const MemtableItem* const at_small = small.data();
  large.push_back({});
  memory.GiveBack(std::move(large));
  memory.GiveBack(std::move(small));
  memory.GiveBack(std::move(excess));  // Not kept: it would be 140.

  const MemtableItems ten = memory.Take(10);
  CHECK(ten.data() == at_small);
  const MemtableItems forty = memory.Take(40);
  CHECK(forty.data() == at_large);
  CHECK(forty.empty());
  CHECK(memory.Take(40).capacity() >= 40);
}

TEST_CASE("a run's memory comes back when no cursor is in it any more") {
  Numbers entries;
  const auto memory = std::make_shared<RunsMemory>(1000 * sizeof(MemtableItem));
  SortedRuns sorted(memory);
  MemtableItems items = memory->Take(100);
  const MemtableItem* const at = items.data();
  for (uint32_t i = 0; i < 100; ++i) items.push_back(entries.Item(i));
  sorted.Add(std::move(items), entries);
  {
    const RunsCursor cursor(sorted, entries);
    sorted = SortedRuns(memory);
    MemtableItems other = memory->Take(100);
    CHECK(other.data() != at);
  }
  CHECK(memory->Take(100).data() == at);
}

}  // namespace
}  // namespace nowcalls::store
