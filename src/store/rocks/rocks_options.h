// RocksDB's options; reasons in rocks_options.cc.
#ifndef NOWCALLS_STORE_ROCKS_ROCKS_OPTIONS_H_
#define NOWCALLS_STORE_ROCKS_ROCKS_OPTIONS_H_

#include <rocksdb/options.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "store/memtable/append_memtable.h"
#include "store/rocks/rocks_store.h"

namespace nowcalls::store {

// Of a server, without `env`. `report` hears of the first background error, on RocksDB's thread,
// naming `dir`.
rocksdb::DBOptions ServerDbOptions(const RocksStoreOptions& options, const std::string& dir,
                                   std::function<void(const Status&)> report);

// Of a reading tool. Writes no file, not even LOG.
rocksdb::DBOptions ReaderDbOptions();

rocksdb::ColumnFamilyOptions FamilyOptions(size_t write_buffer_bytes,
                                           std::shared_ptr<AppendMemtableFactory> memtables);

rocksdb::WriteOptions CommitOptions(Durability durability);

// Size of spare logs; 0: none.
uint64_t SpareLogBytes(const RocksStoreOptions& options);

}  // namespace nowcalls::store

#endif  // NOWCALLS_STORE_ROCKS_ROCKS_OPTIONS_H_
