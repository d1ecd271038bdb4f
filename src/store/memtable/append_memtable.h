// AppendMemtable: a memtable that appends, and sorts for a flush or a sweep.
//
// A flush leaves out pairs of put and single delete. REQUIRES: one write queue, no snapshots,
// flush_verify_memtable_count off.
//
// Thread: one writer (the store's, or recovery), any readers beside it.
#ifndef NOWCALLS_STORE_MEMTABLE_APPEND_MEMTABLE_H_
#define NOWCALLS_STORE_MEMTABLE_APPEND_MEMTABLE_H_

#include <rocksdb/memtablerep.h>

#include <cstddef>
#include <memory>

namespace nowcalls::store {

class AppendMemtableFactory : public rocksdb::MemTableRepFactory {
 public:
  // Keeps up to `pool_bytes_max` bytes of flushed tables for later ones.
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
