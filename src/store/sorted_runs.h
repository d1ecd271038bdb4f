// SortedRuns: a memtable's entries in the order of their keys, while more come.
//
// Thread: one at a time; what a cursor walks never changes, so cursors may be anywhere.
//
// Merging what came since the last look into all that was there would copy a busy memtable ten
// times a second. So new entries become a run of their own, and two runs are merged when the older
// one is less than twice as long. There are no more runs than the number of entries has binary
// digits, and an entry is copied about twice as often, at most.
#ifndef NOWCALLS_STORE_SORTED_RUNS_H_
#define NOWCALLS_STORE_SORTED_RUNS_H_

#include <rocksdb/memtablerep.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "store/memtable_items.h"

namespace nowcalls::store {

using KeyComparator = rocksdb::MemTableRep::KeyComparator;

// Memory of runs that are no more, for later ones, of this and of other memtables: fresh memory
// costs a page fault for each 170 entries, and more than their sorting does.
//
// Thread: any.
class RunsMemory {
 public:
  explicit RunsMemory(size_t bytes_max) : items_max_(bytes_max / sizeof(MemtableItem)) {}

  // Empty, with room for so many.
  MemtableItems Take(size_t size);
  void GiveBack(MemtableItems items);

 private:
  const size_t items_max_;
  std::mutex mutex_;
  std::vector<MemtableItems> free_;  // Guarded by mutex_, as is the next.
  size_t free_items_ = 0;            // Their capacities.
};

class SortedRuns {
 public:
  using Runs = std::vector<std::shared_ptr<const MemtableItems>>;

  explicit SortedRuns(std::shared_ptr<RunsMemory> memory) : memory_(std::move(memory)) {}

  // In whatever order they are; of RunsMemory or not. REQUIRES: no two of all entries have the same
  // internal key.
  void Add(MemtableItems items, const KeyComparator& compare);

  // Each is at least twice as long as the next.
  const Runs& runs() const { return runs_; }

 private:
  std::shared_ptr<const MemtableItems> Shared(MemtableItems items) const;

  std::shared_ptr<RunsMemory> memory_;
  Runs runs_;
};

// A place in the order of several runs.
class RunsCursor {
 public:
  RunsCursor(const SortedRuns& sorted, const KeyComparator& compare);

  bool Valid() const { return current_ < runs_.size(); }
  // REQUIRES: Valid().
  const char* entry() const { return runs_[current_].Item().entry; }
  void Next();
  void Prev();

  void SeekToFirst();
  void SeekToLast();
  // To the first entry for which `before(entry)` does not hold. REQUIRES: it holds for no later
  // one.
  template <typename Before>
  void Seek(const Before& before);

 private:
  struct Run {
    std::shared_ptr<const MemtableItems> items;
    size_t at = 0;  // The first that is not before the current one.

    const MemtableItem& Item() const { return (*items)[at]; }
  };

  bool Precedes(size_t a, size_t b) const;
  void TakeLeast();

  const KeyComparator& compare_;
  std::vector<Run> runs_;
  size_t current_;  // Of runs_: the one with the current entry.
};

template <typename Before>
void RunsCursor::Seek(const Before& before) {
  for (Run& run : runs_) {
    run.at = 0;
    for (size_t left = run.items->size(); left > 0;) {
      const size_t half = left / 2;
      const bool behind = before((*run.items)[run.at + half].entry);
      if (behind) run.at += half + 1;
      left = behind ? left - half - 1 : half;
    }
  }
  TakeLeast();
}

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_SORTED_RUNS_H_
