#include "store/sorted_runs.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace nowcalls::store {
namespace {

class Less {
 public:
  explicit Less(const KeyComparator& compare) : compare_(compare) {}

  bool operator()(const MemtableItem& a, const MemtableItem& b) const {
    if (a.high != b.high) return a.high < b.high;
    if (a.low != b.low) return a.low < b.low;
    return compare_(a.entry, b.entry) < 0;
  }

 private:
  const KeyComparator& compare_;
};

}  // namespace

// The smallest that has room enough; of one that has not, the excess wraps.
MemtableItems RunsMemory::Take(size_t size) {
  MemtableItems items;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::min_element(
        free_.begin(), free_.end(),
        [&](const auto& a, const auto& b) { return a.capacity() - size < b.capacity() - size; });
    if (found != free_.end() && found->capacity() >= size) {
      items = std::move(*found);
      free_items_ -= items.capacity();
      *found = std::move(free_.back());
      free_.pop_back();
    }
  }
  items.reserve(size);
  return items;
}

void RunsMemory::GiveBack(MemtableItems items) {
  items.clear();
  const std::lock_guard lock(mutex_);
  if (items.capacity() == 0 || free_items_ + items.capacity() > items_max_) return;
  free_items_ += items.capacity();
  free_.push_back(std::move(items));
}

std::shared_ptr<const MemtableItems> SortedRuns::Shared(MemtableItems items) const {
  auto owned = std::make_unique<MemtableItems>(std::move(items));
  return {owned.release(), [memory = memory_](MemtableItems* done) {
            memory->GiveBack(std::move(*done));
            delete done;
          }};
}

void SortedRuns::Add(MemtableItems items, const KeyComparator& compare) {
  if (items.empty()) return memory_->GiveBack(std::move(items));
  const Less less(compare);
  std::sort(items.begin(), items.end(), less);
  auto last = Shared(std::move(items));
  while (!runs_.empty() && runs_.back()->size() < 2 * last->size()) {
    const MemtableItems& older = *runs_.back();
    MemtableItems merged = memory_->Take(older.size() + last->size());
    std::merge(older.begin(), older.end(), last->begin(), last->end(), std::back_inserter(merged),
               less);
    last = Shared(std::move(merged));
    runs_.pop_back();
  }
  runs_.push_back(std::move(last));
}

RunsCursor::RunsCursor(const SortedRuns& sorted, const KeyComparator& compare)
    : compare_(compare), current_(sorted.runs().size()) {
  for (const auto& items : sorted.runs()) runs_.push_back({items, items->size()});
}

bool RunsCursor::Precedes(size_t a, size_t b) const {
  return Less(compare_)(runs_[a].Item(), runs_[b].Item());
}

void RunsCursor::TakeLeast() {
  current_ = runs_.size();
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].at == runs_[i].items->size()) continue;
    if (!Valid() || Precedes(i, current_)) current_ = i;
  }
}

void RunsCursor::Next() {
  ++runs_[current_].at;
  TakeLeast();
}

// Each run's next one back is tried; all but the greatest of them step forward again.
void RunsCursor::Prev() {
  current_ = runs_.size();
  for (size_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].at == 0) continue;
    --runs_[i].at;
    const size_t lesser = !Valid() || Precedes(current_, i) ? std::exchange(current_, i) : i;
    if (lesser < runs_.size()) ++runs_[lesser].at;
  }
}

void RunsCursor::SeekToFirst() {
  for (Run& run : runs_) run.at = 0;
  TakeLeast();
}

void RunsCursor::SeekToLast() {
  for (Run& run : runs_) run.at = run.items->size();
  Prev();
}

}  // namespace nowcalls::store
