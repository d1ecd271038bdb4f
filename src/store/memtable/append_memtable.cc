#include "store/memtable/append_memtable.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/prefetch.h"
#include "store/memtable/memtable_items.h"

namespace nowcalls::store {
namespace {

using rocksdb::MemTableRep;
using rocksdb::Slice;
using SortedItems = std::shared_ptr<const MemtableItems>;

// Entries in order of insertion. Readers see the entries of the moment when they began.
class EntryLog {
 public:
  EntryLog() = default;
  ~EntryLog() {
    for (Chunk* chunk = first_.next.load(); chunk != nullptr;) {
      const std::unique_ptr<Chunk> gone(chunk);
      chunk = gone->next.load();
    }
  }
  EntryLog(const EntryLog&) = delete;
  EntryLog& operator=(const EntryLog&) = delete;

  // Thread: the writer.
  void Append(const char* entry) {
    const size_t size = size_.load(std::memory_order_relaxed);
    if (size > 0 && size % kChunkEntries == 0) {
      last_->next.store(std::make_unique<Chunk>().release(), std::memory_order_release);
      last_ = last_->next.load(std::memory_order_relaxed);
    }
    // The entry before the size: readers look only below a size that they have seen.
    last_->entries[size % kChunkEntries] = entry;
    size_.store(size + 1, std::memory_order_release);
  }

  size_t size() const { return size_.load(std::memory_order_acquire); }
  size_t MemoryUsage() const { return size() * sizeof(const char*); }

  // REQUIRES: `to` is at most a size() that this thread has seen.
  template <typename Visit>
  void ForEach(size_t from, size_t to, Visit visit) const {
    const Chunk* chunk = &first_;
    for (size_t begin = 0; begin < to; begin += kChunkEntries) {
      if (begin > 0) chunk = chunk->next.load(std::memory_order_acquire);
      const size_t end = std::min(begin + kChunkEntries, to);
      for (size_t i = std::max(begin, from); i < end; ++i) visit(chunk->entries[i - begin]);
    }
  }

 private:
  static constexpr size_t kChunkEntries = 1024;
  struct Chunk {
    std::array<const char*, kChunkEntries> entries{};
    std::atomic<Chunk*> next{nullptr};
  };

  Chunk first_;
  Chunk* last_ = &first_;  // The writer's.
  std::atomic<size_t> size_{0};
};

// Memory that flushed tables hand on, as much as one table needs. With fresh memory a busy server
// would spend more on page faults than on entries.
class BlockPool {
 public:
  using Block = std::unique_ptr<char[]>;
  static constexpr size_t kBlockBytes = 128 * 1024;

  explicit BlockPool(size_t bytes_max) : blocks_max_(bytes_max / kBlockBytes) {}

  Block Take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique_for_overwrite<char[]>(kBlockBytes);
    Block block = std::move(free_.back());
    free_.pop_back();
    return block;
  }

  void GiveBack(std::vector<Block> blocks) {
    const std::lock_guard lock(mutex_);
    for (Block& block : blocks) {
      if (free_.size() < blocks_max_) free_.push_back(std::move(block));
    }
  }

 private:
  const size_t blocks_max_;
  std::mutex mutex_;
  std::vector<Block> free_;  // Guarded by mutex_.
};

// Memory of entries.
class EntryArena {
 public:
  explicit EntryArena(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}
  ~EntryArena() { pool_->GiveBack(std::move(blocks_)); }
  EntryArena(const EntryArena&) = delete;
  EntryArena& operator=(const EntryArena&) = delete;

  // Thread: the writer. Not aligned; entries are bytes.
  char* Allocate(size_t bytes) {
    used_.store(bytes_used() + bytes, std::memory_order_relaxed);
    // A large entry gets memory of its own and wastes no rest of a block.
    if (bytes > BlockPool::kBlockBytes / 4) return AllocateApart(bytes);
    if (bytes > left_) {
      blocks_.push_back(pool_->Take());
      next_ = blocks_.back().get();
      left_ = BlockPool::kBlockBytes;
    }
    left_ -= bytes;
    // The flush that read these lines may have run on another CPU.
    if (left_ > kPrefetchBytes) PrefetchForWriting(next_ + kPrefetchBytes);
    return std::exchange(next_, next_ + bytes);
  }

  size_t bytes_used() const { return used_.load(std::memory_order_relaxed); }

 private:
  char* AllocateApart(size_t bytes) {
    apart_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    return apart_.back().get();
  }

  const std::shared_ptr<BlockPool> pool_;
  std::vector<BlockPool::Block> blocks_;
  std::vector<std::unique_ptr<char[]>> apart_;
  char* next_ = nullptr;
  size_t left_ = 0;
  std::atomic<size_t> used_{0};
};

// Memory for iterators. RocksDB passes an arena, but no public header tells how to allocate from
// it, and it destroys an iterator there without delete. So iterators live in memory of ours, reused
// after their destruction.
class Shells {
 public:
  static constexpr size_t kBytes = 128;

  void* Take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      all_.push_back(std::make_unique<Shell>());
      return all_.back()->bytes;
    }
    void* shell = free_.back();
    free_.pop_back();
    return shell;
  }

  void GiveBack(void* shell) {
    const std::lock_guard lock(mutex_);
    free_.push_back(shell);
  }

 private:
  struct Shell {
    alignas(std::max_align_t) char bytes[kBytes];
  };

  std::mutex mutex_;
  std::vector<std::unique_ptr<Shell>> all_;  // Guarded by mutex_, as is the next.
  std::vector<void*> free_;
};

// First base: destroyed last, when nothing touches the memory any more.
class ShellReturner {
 public:
  ShellReturner(Shells* shells, void* shell) : shells_(shells), shell_(shell) {}
  ~ShellReturner() { shells_->GiveBack(shell_); }
  ShellReturner(const ShellReturner&) = delete;
  ShellReturner& operator=(const ShellReturner&) = delete;

 private:
  Shells* const shells_;
  void* const shell_;
};

// Looks up one key in another table, as RocksDB's Get does by default. The default never deletes
// its iterator, and its key has a type that no public header declares.
class Lookup final : public MemTableRep {
 public:
  Lookup(MemTableRep* table, rocksdb::Allocator* allocator)
      : MemTableRep(allocator), table_(table) {}

  Iterator* GetIterator(rocksdb::Arena*) override {
    iterator_.reset(table_->GetIterator());
    return iterator_.get();
  }
  void Insert(rocksdb::KeyHandle handle) override { table_->Insert(handle); }
  bool Contains(const char* key) const override { return table_->Contains(key); }
  size_t ApproximateMemoryUsage() override { return 0; }

 private:
  MemTableRep* const table_;
  std::unique_ptr<Iterator> iterator_;
};

class Less {
 public:
  explicit Less(const MemTableRep::KeyComparator& compare) : compare_(compare) {}

  bool operator()(const MemtableItem& a, const MemtableItem& b) const {
    // Two integers hold a whole token key: the virtual call is left for equal prefixes. A skiplist
    // would pay for order at each insertion; RocksDB's vector makes the call at each comparison.
    if (a.high != b.high) return a.high < b.high;
    if (a.low != b.low) return a.low < b.low;
    return compare_(a.entry, b.entry) < 0;
  }

 private:
  const MemTableRep::KeyComparator& compare_;
};

class AppendMemtable : public MemTableRep {
 public:
  AppendMemtable(const KeyComparator& compare, rocksdb::Allocator* allocator,
                 std::shared_ptr<BlockPool> blocks)
      : MemTableRep(allocator), compare_(compare), arena_(std::move(blocks)) {}

  rocksdb::KeyHandle Allocate(size_t bytes, char** buffer) override {
    *buffer = arena_.Allocate(bytes);
    return *buffer;
  }
  void Insert(rocksdb::KeyHandle handle) override { log_.Append(static_cast<const char*>(handle)); }
  bool Contains(const char* key) const override;
  void Get(const rocksdb::LookupKey& key, void* context,
           bool (*visit)(void*, const char*)) override {
    Lookup(this, allocator_).Get(key, context, visit);
  }
  void MarkReadOnly() override { read_only_.store(true, std::memory_order_release); }
  size_t ApproximateMemoryUsage() override { return log_.MemoryUsage() + arena_.bytes_used(); }
  Iterator* GetIterator(rocksdb::Arena* arena) override;

 private:
  class SortedIterator;

  // The first `entries` in the order of their keys; without pairs if `read_only`.
  SortedItems Sorted(size_t entries, bool read_only);

  const KeyComparator& compare_;
  EntryArena arena_;
  EntryLog log_;
  std::atomic<bool> read_only_{false};
  Shells shells_;

  std::mutex mutex_;
  // Guarded by mutex_: the first `sorted_entries_` of the log, without their pairs if
  // `pairs_erased_`.
  SortedItems sorted_ = std::make_shared<MemtableItems>();
  size_t sorted_entries_ = 0;
  bool pairs_erased_ = false;
};

// Sorts when first positioned, on the reading thread.
class AppendMemtable::SortedIterator final : public ShellReturner, public MemTableRep::Iterator {
 public:
  SortedIterator(AppendMemtable* table, void* shell)
      : ShellReturner(&table->shells_, shell),
        table_(table),
        read_only_(table->read_only_.load(std::memory_order_acquire)),
        entries_(table->log_.size()) {}
  // The memory went back to the table (ShellReturner).
  static void operator delete(void*) {}  // NOLINT(misc-new-delete-overloads): made in a shell.

  bool Valid() const override { return items_ != nullptr && at_ < items_->size(); }
  const char* key() const override { return (*items_)[at_].entry; }
  void Next() override { ++at_; }
  void Prev() override { at_ = at_ == 0 ? items_->size() : at_ - 1; }
  void Seek(const Slice& internal_key, const char* memtable_key) override {
    Sort();
    const auto place =
        std::partition_point(items_->begin(), items_->end(), [&](const MemtableItem& item) {
          return Compare(item.entry, internal_key, memtable_key) < 0;
        });
    at_ = static_cast<size_t>(place - items_->begin());
  }
  void SeekForPrev(const Slice& internal_key, const char* memtable_key) override {
    Seek(internal_key, memtable_key);
    if (!Valid() || Compare(key(), internal_key, memtable_key) != 0) Prev();
  }
  void SeekToFirst() override {
    Sort();
    at_ = 0;
  }
  void SeekToLast() override {
    Sort();
    at_ = items_->size();
    Prev();
  }

 private:
  void Sort() {
    if (items_ == nullptr) items_ = table_->Sorted(entries_, read_only_);
  }
  int Compare(const char* entry, const Slice& internal_key, const char* memtable_key) const {
    return memtable_key != nullptr ? table_->compare_(entry, memtable_key)
                                   : table_->compare_(entry, internal_key);
  }

  AppendMemtable* const table_;
  const bool read_only_;
  const size_t entries_;
  SortedItems items_;  // nullptr until it is positioned.
  size_t at_ = 0;      // Of items_; their size: nowhere.
};

bool AppendMemtable::Contains(const char* key) const {
  bool found = false;
  log_.ForEach(0, log_.size(), [&](const char* entry) { found |= compare_(entry, key) == 0; });
  return found;
}

MemTableRep::Iterator* AppendMemtable::GetIterator(rocksdb::Arena*) {
  static_assert(sizeof(SortedIterator) <= Shells::kBytes);
  void* shell = shells_.Take();
  return new (shell) SortedIterator(this, shell);
}

SortedItems AppendMemtable::Sorted(size_t entries, bool read_only) {
  const std::lock_guard lock(mutex_);
  if (sorted_entries_ == entries && pairs_erased_ == read_only) return sorted_;
  // A growing table sorts only entries since the last look, and merges.
  const bool grows = !read_only && !pairs_erased_ && sorted_entries_ < entries;
  const size_t from = grows ? sorted_entries_ : 0;
  MemtableItems items;
  items.reserve(entries - from);
  log_.ForEach(from, entries, [&](const char* entry) { items.push_back(MemtableItemOf(entry)); });
  // Exact for two reasons. A table that is written no more holds no unpublished change (one write
  // queue). And no reader looks between put and delete, since there are no snapshots.
  if (read_only) ErasePairs(&items);
  const Less less(compare_);
  std::sort(items.begin(), items.end(), less);
  if (from > 0) {
    MemtableItems merged;
    merged.reserve(entries);
    std::merge(sorted_->begin(), sorted_->end(), items.begin(), items.end(),
               std::back_inserter(merged), less);
    items = std::move(merged);
  }
  auto sorted = std::make_shared<const MemtableItems>(std::move(items));
  // An older iterator needs fewer entries than the last look found: sorted for it alone.
  if (!grows && !read_only) return sorted;
  sorted_ = std::move(sorted);
  sorted_entries_ = entries;
  pairs_erased_ = read_only;
  return sorted_;
}

}  // namespace

struct AppendMemtableFactory::Impl {
  std::shared_ptr<BlockPool> blocks;
};

AppendMemtableFactory::AppendMemtableFactory(size_t pool_bytes_max)
    : impl_(std::make_unique<Impl>(Impl{std::make_shared<BlockPool>(pool_bytes_max)})) {}

AppendMemtableFactory::~AppendMemtableFactory() = default;

MemTableRep* AppendMemtableFactory::CreateMemTableRep(const MemTableRep::KeyComparator& compare,
                                                      rocksdb::Allocator* allocator,
                                                      const rocksdb::SliceTransform*,
                                                      rocksdb::Logger*) {
  return new AppendMemtable(compare, allocator, impl_->blocks);
}

}  // namespace nowcalls::store
