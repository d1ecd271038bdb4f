// AppendMemtable: a memtable for a ledger, which is written far more often than it is read.
//
// An insertion appends a pointer. A flush or a sweep makes the order when it asks for it. A
// skiplist pays for order with every insertion. RocksDB's own vector sorts with a virtual call for
// each comparison, which took more of a busy server's time than the rest of the commit path. This
// table compares the first 16 bytes of keys, which are all of a token's, as integers.
//
// A flush leaves out what was put and single-deleted while the table was written to, so short-lived
// tokens reach the disk in the log only. RocksDB would drop such a pair too, later and at more
// cost. That is exact for two reasons. A table that is written no more holds no change that is not
// published yet (one write queue). And there are no snapshots, so no reader looks between the two.
// RocksDB's count of flushed entries (flush_verify_memtable_count) must be off, since it misses
// these pairs; the table counts instead.
//
// Thread: one writer (the store's, or recovery); any number of readers beside it.
#ifndef NOWCALLS_STORE_MEMTABLE_APPEND_MEMTABLE_H_
#define NOWCALLS_STORE_MEMTABLE_APPEND_MEMTABLE_H_

#include <rocksdb/memtablerep.h>

#include <cstddef>
#include <memory>

namespace nowcalls::store {

class AppendMemtableFactory : public rocksdb::MemTableRepFactory {
 public:
  // Keeps up to `pool_bytes_max` of flushed tables' memory for later ones.
  explicit AppendMemtableFactory(size_t pool_bytes_max = 0);
  ~AppendMemtableFactory() override;

  using rocksdb::MemTableRepFactory::CreateMemTableRep;
  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& compare,
                                          rocksdb::Allocator* allocator,
                                          const rocksdb::SliceTransform* transform,
                                          rocksdb::Logger* logger) override;
  const char* Name() const override { return "nowcalls.AppendMemtable"; }

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_MEMTABLE_APPEND_MEMTABLE_H_
