// AppendMemtable: a memtable for what is written far more often than it is read.
//
// Thread: one writer (the store's, or recovery); any number of readers beside it.
//
// An insertion appends a pointer. Order is made when somebody asks for it: a flush, or the sweep. A
// skiplist pays for order with every insertion; RocksDB's own vector sorts with a virtual call for
// each comparison, which took more of a busy server's time than all the rest of the commit path.
// Here the first 16 bytes of the keys, which are all of a token's, are compared as integers.
//
// What was put and single-deleted while the table was written to is left out of a flush:
// short-lived tokens never reach the disk but in the log. RocksDB would drop such a pair too, later
// and at more cost. It is exact because a table that is written no more holds no change that is not
// published yet (one write queue), and because there are no snapshots: nobody may still be looking
// between the two. RocksDB's count of flushed entries (flush_verify_memtable_count) must be off,
// since it misses these pairs; the table counts instead.
#ifndef NOWCALLS_STORE_APPEND_MEMTABLE_H_
#define NOWCALLS_STORE_APPEND_MEMTABLE_H_

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

#endif  // NOWCALLS_STORE_APPEND_MEMTABLE_H_
